"""A run with everything that is not linear held at what a recording says.

Patterns, norm scales and MLP outputs are imposed; what is left of any model is its value side, so
that one forward pass serves every kind of model. Without changes it gives the model's own logits.
"""

from dataclasses import replace

import torch

from circuitview.core.names import CircuitviewError, Head
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


def run_frozen(recording: Recording, zeroed: frozenset[Head] = frozenset()) -> Recording:
    """`recording` again, with the output z of `zeroed` heads set to zero.

    Held fixed: patterns, norm scales and MLP outputs, as recorded. Cost: the value side of one
    forward pass, and the unembedding.
    """
    with torch.inference_mode():
        weights = recording.weights
        stream, z = torch.empty_like(recording.stream), torch.empty_like(recording.z)
        stream[0] = recording.embedding
        if recording.positions is not None:
            stream[0] += recording.positions
        for layer in range(weights.config.n_layers):
            read = stream[layer] / recording.ln_scale[layer].unsqueeze(-1)  # [pos, d_model]
            values = read @ weights.W_V[layer] + weights.b_V[layer].unsqueeze(1)
            values = values.repeat_interleave(weights.group, 0)  # [head, src, d_head]
            z[layer] = recording.pattern[layer] @ values  # [head, dest, d_head]
            for head in zeroed:
                if head.layer == layer:
                    z[layer, head.head] = 0.0
            flat = z[layer].transpose(0, 1).flatten(1)  # [dest, head x d_head]
            written = flat @ weights.W_O[layer].flatten(0, 1) + weights.b_O[layer]
            if recording.post_scale is not None:
                written = written / recording.post_scale[layer].unsqueeze(-1)
            if weights.b_post is not None:
                written = written + weights.b_post[layer]
            stream[layer + 1] = stream[layer] + written
            if recording.mlp_out is not None:
                stream[layer + 1] += recording.mlp_out[layer]
        last = stream[-1] / recording.final_scale.unsqueeze(-1)  # [pos, d_model]
        logits = weights.read_out(last)  # [pos, d_vocab]
        return replace(recording, z=z, stream=stream, logits=logits + weights.constants())
