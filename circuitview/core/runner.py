"""The forward pass of a transformer, straight from its folded weights.

Attention-only or with MLPs, plain or gated, behind attention or beside it; learned, shortformer,
rotary or no positions; heads that share keys and values. Cost for n tokens, in multiplications:
n_layers x (4 n d_model n_heads d_head + 2 n² n_heads d_head + 2 or 3 n d_model d_mlp)
+ n d_model d_vocab. The logits of all positions are kept, so that a change of dest or target needs
no second run.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from types import MappingProxyType

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from circuitview.core.config import ModelConfig
from circuitview.core.edits import Edits
from circuitview.core.frozen import impose, put_z, require_length, run_frozen
from circuitview.core.mlp import MLP
from circuitview.core.names import Head
from circuitview.core.observation import LayerOutputs, Observation
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.weights import Weights


def run(weights: Weights, prompt: Prompt, edits: Edits | None = None) -> Recording:
    """The recording of `prompt`, computed in the weights' precision.

    Args:
        weights: folded; float32 or float64.
        prompt: its tokens, BOS included.
        edits: what to change; None runs the model as it is.

    Raises:
        CircuitviewError: where the prompt is longer than the model's context, a token lies outside
            its vocabulary, or a frozen run has another length.
    """
    edits = edits or Edits()
    prompt.require_readable(weights.config)
    if edits.frozen is not None:
        return run_frozen(_imposed(edits.frozen, weights, prompt), edits)
    with torch.inference_mode():
        return _run(weights, prompt, edits)


def _imposed(frozen: Recording, weights: Weights, prompt: Prompt) -> Recording:
    """`frozen` with the weights and the embeddings of this run: it may be another prompt's, or
    another model's."""
    require_length(frozen, len(prompt))
    with torch.inference_mode():
        tokens = torch.tensor(prompt.token_ids)
        positions = None if weights.W_pos is None else weights.W_pos[: len(tokens)]
        embedding = weights.W_E[tokens]  # [pos, d_model]
    read = replace(
        frozen,
        prompt=prompt,
        weights=weights,
        tokens=tokens,
        stream=embedding.unsqueeze(0),
        embedding=embedding,
        positions=positions,
        rerun=partial(run, weights, prompt),
    )
    return impose(frozen, read)


def _run(
    weights: Weights,
    prompt: Prompt,
    edits: Edits,
    seen: list[tuple[Tensor, Tensor]] | None = None,
) -> Recording:
    """The forward pass. What a recording does not keep is added to `seen`, where that is given: of
    each layer attn_out, and the stream once it is added."""
    config = weights.config
    tokens = torch.tensor(prompt.token_ids)
    n, L, H, D = len(tokens), config.n_layers, config.n_heads, config.d_model
    stream = weights.W_E.new_empty(L + 1, n, D)
    pattern = stream.new_zeros(L, H, n, n)
    z, ln_scale = stream.new_empty(L, H, n, config.d_head), stream.new_ones(L, n)
    mlp_out = mlp_scale = None
    if weights.blocks:
        mlp_out, mlp_scale = stream.new_empty(L, n, D), stream.new_ones(L, n)
    embedding = weights.W_E[tokens] if edits.embedding is None else edits.embedding
    positions = None if weights.W_pos is None else weights.W_pos[:n]  # [pos, d_model]
    stream[0] = embedding if positions is None else embedding + positions
    for layer in range(L):
        x = stream[layer]
        ln_scale[layer] = scale_of(config, x)
        normed = x / ln_scale[layer].unsqueeze(-1)  # [pos, d_model]
        pattern[layer], z[layer] = attend(weights, layer, normed, edits.patterns)
        put_z(edits, layer, z[layer])
        attn_out = written_by(weights, layer, z[layer])  # [pos, d_model]
        stream[layer + 1] = x + attn_out
        if seen is not None:
            seen.append((attn_out, stream[layer + 1].clone()))
        if mlp_out is not None and mlp_scale is not None:
            read = x if config.parallel_attn_mlp else stream[layer + 1]
            mlp_scale[layer] = scale_of(config, read)
            mlp_out[layer] = mlp_output(weights.blocks[layer], read, mlp_scale[layer])
            if layer in edits.mlp_out:
                mlp_out[layer] = edits.mlp_out[layer]
            stream[layer + 1] += mlp_out[layer]
    if edits.added is not None:
        stream[L] += edits.added
    last = stream[L]
    final_scale = scale_of(config, last)
    logits = (last / final_scale.unsqueeze(-1)) @ weights.W_U + weights.b_U  # [pos, d_vocab]
    return Recording(
        prompt=prompt,
        weights=weights,
        tokens=tokens,
        pattern=pattern,
        z=z,
        stream=stream,
        ln_scale=ln_scale,
        final_scale=final_scale,
        logits=logits,
        embedding=embedding,
        positions=positions,
        mlp_out=mlp_out,
        mlp_scale=mlp_scale,
        rerun=partial(run, weights, prompt),
    )


def attend(
    weights: Weights,
    layer: int,
    normed: Float[Tensor, "*batch pos d_model"],
    patterns: Mapping[Head, Float[Tensor, "dest src"]] = MappingProxyType({}),
) -> tuple[Float[Tensor, "*batch head dest src"], Float[Tensor, "*batch head pos d_head"]]:
    """The pattern and z of one layer's heads, those of `patterns` put in place of their own."""
    read, n = normed.unsqueeze(-3), normed.shape[-2]  # [.., 1, pos, d_model]
    q = read @ weights.W_Q[layer] + weights.b_Q[layer].unsqueeze(1)  # [.., head, pos, d_head]
    k = read @ weights.W_K[layer] + weights.b_K[layer].unsqueeze(1)  # [.., kv_head, pos, d_head]
    v = read @ weights.W_V[layer] + weights.b_V[layer].unsqueeze(1)  # [.., kv_head, pos, d_head]
    if weights.pos_Q is not None and weights.pos_K is not None:
        q, k = q + weights.pos_Q[layer, :, :n], k + weights.pos_K[layer, :, :n]
    scores = _scores(weights, q, k.repeat_interleave(weights.group, -3))  # [.., head, dest, src]
    pattern = scores.masked_fill_(_future(n), -torch.inf).softmax(-1)
    for head, weight in patterns.items():
        if head.layer == layer:
            pattern[..., head.head, :, :] = weight
    return pattern, pattern @ v.repeat_interleave(weights.group, -3)  # [.., head, dest, d_head]


def _future(n: int) -> Bool[Tensor, "dest src"]:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def _scores(
    weights: Weights, q: Float[Tensor, "*heads pos d_head"], k: Float[Tensor, "*heads pos d_head"]
) -> Float[Tensor, "*heads dest src"]:
    """The scores of unrotated queries and keys, those of the future as well."""
    config, n = weights.config, q.shape[-2]
    if config.n_rotated:
        cos, sin = rotation(config, n, q.dtype)
        q, k = rotate(config, q, cos, sin), rotate(config, k, cos, sin)
    return (q / config.score_scale) @ k.mT  # [.., dest, src]


def head_scores(weights: Weights, recording: Recording, head: Head) -> Float[Tensor, "dest src"]:
    """The scores of one head, made anew from the recorded stream, so that runs need not keep those
    of all heads; 0 in the future."""
    layer, n, kv_head = head.layer, len(recording.tokens), head.head // weights.group
    with torch.inference_mode():
        normed = recording.stream[layer] / recording.ln_scale[layer].unsqueeze(-1)
        q = normed @ weights.W_Q[layer, head.head] + weights.b_Q[layer, head.head]  # [pos, d_head]
        k = normed @ weights.W_K[layer, kv_head] + weights.b_K[layer, kv_head]  # [pos, d_head]
        if weights.pos_Q is not None and weights.pos_K is not None:
            q = q + weights.pos_Q[layer, head.head, :n]
            k = k + weights.pos_K[layer, kv_head, :n]
        return _scores(weights, q, k).masked_fill_(_future(n), 0.0)


def written_by(
    weights: Weights, layer: int, z: Float[Tensor, "*batch head pos d_head"]
) -> Float[Tensor, "*batch pos d_model"]:
    """What one layer's attention adds to the stream."""
    flat = z.transpose(-3, -2).flatten(-2)  # [.., pos, head x d_head]
    return flat @ weights.W_O[layer].flatten(0, 1) + weights.b_O[layer]  # [.., pos, d_model]


def mlp_output(
    mlp: MLP, stream: Float[Tensor, "*batch pos d_model"], scale: Float[Tensor, "*batch pos"]
) -> Float[Tensor, "*batch pos d_model"]:
    """What an MLP of folded weights adds to the stream that it reads."""
    read = mlp.normed(stream, scale)
    neurons = read @ mlp.W_in + mlp.b_in  # [pos, d_mlp]
    if mlp.W_gate is None:
        neurons = mlp.act(neurons)
    else:
        gate = read @ mlp.W_gate  # [pos, d_mlp]
        neurons = mlp.act(gate if mlp.b_gate is None else gate + mlp.b_gate) * neurons
    return neurons @ mlp.W_out + mlp.b_out  # [pos, d_model]


@lru_cache(maxsize=8)
def rotation(
    config: ModelConfig, n: int, dtype: torch.dtype
) -> tuple[Float[Tensor, "pos n_rotated"], Float[Tensor, "pos n_rotated"]]:
    """Cosine and sine of the angle by which rotary positions turn each number at each position.

    Source: Su et al. 2021, RoFormer.
    """
    half = config.n_rotated // 2
    turns = config.rotary_base ** (-torch.arange(half, dtype=torch.float64) / half)  # [pair]
    turns = turns.repeat_interleave(2) if config.rotary_adjacent_pairs else turns.repeat(2)
    angle = torch.arange(n, dtype=torch.float64).unsqueeze(-1) * turns  # [pos, n_rotated]
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate(
    config: ModelConfig,
    x: Float[Tensor, "*batch pos d_head"],
    cos: Float[Tensor, "pos n_rotated"],
    sin: Float[Tensor, "pos n_rotated"],
) -> Float[Tensor, "*batch pos d_head"]:
    """`x` turned by its position, pair by pair: linear in x."""
    turned, rest = x[..., : config.n_rotated], x[..., config.n_rotated :]
    if config.rotary_adjacent_pairs:
        across = torch.stack((-turned[..., 1::2], turned[..., ::2]), -1).flatten(-2)
    else:
        first, second = turned.chunk(2, -1)
        across = torch.cat((-second, first), -1)
    return torch.cat((turned * cos + across * sin, rest), -1)


def scale_of(
    config: ModelConfig, x: Float[Tensor, "*batch pos d_model"]
) -> Float[Tensor, "*batch pos"]:
    """What the norm divides by. Folded weights write a centred stream, so LN needs no centring."""
    if config.norm is None:
        return x.new_ones(x.shape[:-1])
    return (x.square().mean(-1) + config.eps).sqrt()  # [.., pos]


def observe(weights: Weights, prompt: Prompt) -> Observation:
    """A plain run of `prompt`, layer by layer, noted as it goes."""
    prompt.require_readable(weights.config)
    seen: list[tuple[Tensor, Tensor]] = []
    with torch.inference_mode():
        recording = _run(weights, prompt, Edits(), seen)
    mlp_out = recording.mlp_out
    plain = mlp_out is None or weights.config.parallel_attn_mlp
    layers = tuple(
        LayerOutputs(
            resid_pre=recording.stream[layer],
            resid_mid=None if plain else resid_mid,
            resid_post=recording.stream[layer + 1],
            attn_out=attn_out,
            mlp_out=None if mlp_out is None else mlp_out[layer],
            z=recording.z[layer],
            pattern=recording.pattern[layer],
        )
        for layer, (attn_out, resid_mid) in enumerate(seen)
    )
    return Observation(layers=layers, logits=recording.logits)
