"""A run with everything that is not linear held at what a recording says.

Patterns, norm scales and MLP outputs are imposed; what is left of any model is its value side, so
that one forward pass serves every kind of model. Without changes it gives the model's own logits.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError
from circuitview.core.recording import Recording


def require_length(frozen: Recording, n: int) -> None:
    """Pass only a prompt of as many tokens as the frozen run.

    Raises:
        CircuitviewError: naming both numbers.
    """
    if len(frozen.tokens) != n:
        raise CircuitviewError(
            f"the prompt has {n} tokens, the frozen run {len(frozen.tokens)}; give it as many"
        )


def impose(frozen: Recording, on: Recording) -> Recording:
    """What `frozen` holds, imposed on the prompt that `on` read: its embeddings, the other's
    patterns, scales and MLP outputs. To be run by run_frozen; of `on` nothing else is used.

    Raises:
        CircuitviewError: where the two are not of one length, or not in one precision.
    """
    require_length(frozen, len(on.tokens))
    if frozen.dtype != on.dtype:
        raise CircuitviewError(
            f"the prompt is run in {on.dtype}, the frozen run was in {frozen.dtype}; choose one"
        )
    return replace(
        frozen,
        prompt=on.prompt,
        weights=on.weights,
        tokens=on.tokens,
        embedding=on.embedding,
        positions=on.positions,
        rerun=on.rerun,
    )


def run_frozen(recording: Recording, edits: Edits | None = None) -> Recording:
    """`recording` again, whole, with `edits` made in it.

    Held fixed: patterns, norm scales and MLP outputs, as recorded, where `edits` does not replace
    them. Cost: the value side of one forward pass, and the unembedding.
    """
    edits = edits or Edits()
    with torch.inference_mode():
        weights, config = recording.weights, recording.weights.config
        stream, z = torch.empty_like(recording.stream), torch.empty_like(recording.z)
        pattern = recording.pattern
        if edits.patterns:
            pattern = pattern.clone()
            for head, weight in edits.patterns.items():
                pattern[head.layer, head.head] = weight
        mlp_out = recording.mlp_out
        if edits.mlp_out and mlp_out is not None:
            mlp_out = mlp_out.clone()
            for layer, written in edits.mlp_out.items():
                mlp_out[layer] = written
        embedding = recording.embedding if edits.embedding is None else edits.embedding
        stream[0] = embedding
        if recording.positions is not None:
            stream[0] += recording.positions
        for layer in range(config.n_layers):
            read = stream[layer] / recording.ln_scale[layer].unsqueeze(-1)  # [pos, d_model]
            values = read @ weights.W_V[layer] + weights.b_V[layer].unsqueeze(1)
            values = values.repeat_interleave(weights.group, 0)  # [head, src, d_head]
            z[layer] = pattern[layer] @ values  # [head, dest, d_head]
            put_z(edits, layer, z[layer])
            flat = z[layer].transpose(0, 1).flatten(1)  # [dest, head x d_head]
            written = flat @ weights.W_O[layer].flatten(0, 1) + weights.b_O[layer]
            if recording.post_scale is not None:
                written = written / recording.post_scale[layer].unsqueeze(-1)
            if weights.b_post is not None:
                written = written + weights.b_post[layer]
            stream[layer + 1] = stream[layer] + written
            if mlp_out is not None:
                stream[layer + 1] += mlp_out[layer]
        if edits.added is not None:
            stream[-1] += edits.added
        last = stream[-1] / recording.final_scale.unsqueeze(-1)  # [pos, d_model]
        logits = weights.read_out(last)  # [pos, d_vocab]
        return replace(
            recording,
            embedding=embedding,
            pattern=pattern,
            mlp_out=mlp_out,
            z=z,
            stream=stream,
            logits=logits + weights.constants(),
        )


def put_z(edits: Edits, layer: int, z: Float[Tensor, "head pos d_head"]) -> None:
    """Put into `z`, of one layer, what `edits` says."""
    for head in edits.zeroed:
        if head.layer == layer:
            z[head.head] = 0.0
    for head, output in edits.z.items():
        if head.layer == layer:
            z[head.head] = output
