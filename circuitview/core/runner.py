"""The forward pass of an attention-only model, straight from its folded weights.

Cost for n tokens, in multiplications: n_layers x (4 n d_model n_heads d_head + 2 n² n_heads d_head)
+ n d_model d_vocab. The logits of all positions are kept, so that a change of dest or target needs
no second run.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError, Head
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
        CircuitviewError: where the prompt is longer than the model's context, or a token lies
            outside its vocabulary.
    """
    config, edits = weights.config, edits or Edits()
    n = len(prompt)
    if not 1 <= n <= config.n_ctx:
        raise CircuitviewError(
            f"the prompt has {n} tokens, the model reads 1 to {config.n_ctx}; shorten it"
        )
    if not all(0 <= token < config.d_vocab for token in prompt.token_ids):
        raise CircuitviewError(f"a token id lies outside the vocabulary of {config.d_vocab}")
    with torch.inference_mode():
        return _run(weights, prompt, edits)


def _run(weights: Weights, prompt: Prompt, edits: Edits) -> Recording:
    config = weights.config
    tokens = torch.tensor(prompt.token_ids)
    n = len(tokens)
    L, H, dh = config.n_layers, config.n_heads, config.d_head
    future = torch.ones(n, n, dtype=torch.bool).triu(1)  # [dest, src]
    stream = weights.W_E.new_empty(L + 1, n, config.d_model)
    scores = stream.new_zeros(L, H, n, n)
    pattern, z = torch.zeros_like(scores), stream.new_empty(L, H, n, dh)
    ln_scale = stream.new_ones(L, n)
    stream[0] = weights.W_E[tokens]  # [pos, d_model]
    if weights.W_pos is not None:
        stream[0] += weights.W_pos[:n]
    for layer in range(L):
        x = stream[layer]
        ln_scale[layer] = (
            _scale(weights, x) if edits.frozen is None else edits.frozen.ln_scale[layer]
        )
        normed = x / ln_scale[layer].unsqueeze(-1)  # [pos, d_model]
        q = normed @ weights.W_Q[layer] + weights.b_Q[layer].unsqueeze(1)  # [head, pos, d_head]
        k = normed @ weights.W_K[layer] + weights.b_K[layer].unsqueeze(1)  # [head, pos, d_head]
        v = normed @ weights.W_V[layer] + weights.b_V[layer].unsqueeze(1)  # [head, pos, d_head]
        if weights.pos_Q is not None and weights.pos_K is not None:
            q = q + weights.pos_Q[layer, :, :n]
            k = k + weights.pos_K[layer, :, :n]
        scores[layer] = (q @ k.mT / config.score_scale).masked_fill(future, 0.0)
        if edits.frozen is None:
            pattern[layer] = scores[layer].masked_fill(future, -torch.inf).softmax(-1)
        else:
            pattern[layer] = edits.frozen.pattern[layer]
        z[layer] = pattern[layer] @ v  # [head, pos, d_head]
        for head in range(H):
            if Head(layer, head) in edits.zeroed:
                z[layer, head] = 0.0
        written = (z[layer] @ weights.W_O[layer]).sum(0)  # [pos, d_model]
        stream[layer + 1] = x + written + weights.b_O[layer]
    last = stream[L]
    final_scale = _scale(weights, last) if edits.frozen is None else edits.frozen.final_scale
    logits = (last / final_scale.unsqueeze(-1)) @ weights.W_U + weights.b_U  # [pos, d_vocab]
    return Recording(
        prompt, weights, tokens, scores, pattern, z, stream, ln_scale, final_scale, logits
    )


def _scale(weights: Weights, x: Float[Tensor, "pos d_model"]) -> Float[Tensor, " pos"]:
    """What the norm divides by. Folded weights write a centred stream, so LN needs no centring."""
    if weights.config.norm is None:
        return x.new_ones(len(x))
    return (x.square().mean(-1) + weights.config.eps).sqrt()  # [pos]
