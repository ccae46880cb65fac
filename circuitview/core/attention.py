"""What a head, or a chain of heads, looks at and how much it moves: the values of a heatmap.

A chain's pattern is the product of its heads' patterns. Its weight also holds the scale at each
position in the middle; the scales at its two ends belong to what is read and written.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import AttentionMode, CircuitviewError, Head
from circuitview.core.recording import Recording


def attention_values(
    recording: Recording,
    heads: tuple[Head, ...],
    mode: AttentionMode,
    scores: Callable[[Recording, Head], Tensor] | None = None,
) -> npt.NDArray[np.float64]:
    """What a heatmap of the chain `heads` shows [dest, src].

    Held fixed: patterns and norm scales, as recorded. Value-weighted entries are norms, in the unit
    of the stream, and never negative.

    Args:
        scores: computes the scores of one head (Model.scores): recordings keep none.

    Raises:
        CircuitviewError: for the scores of several heads, which have none in common, and where
            nothing is given to compute them.
    """
    if mode == "scores":
        if len(heads) > 1:
            raise CircuitviewError(
                f"virtual head {' > '.join(map(str, heads))} has no scores of its own; choose "
                "pattern or value-weighted"
            )
        if scores is None:
            raise CircuitviewError("runs keep no scores; give the model's own to compute them")
        values = scores(recording, heads[0])  # [dest, src]
    elif mode == "pattern":
        values = chain_pattern(recording, heads)  # [dest, src]
    else:
        values = value_weighted(recording, heads)  # [dest, src]
    made: npt.NDArray[np.float64] = values.double().numpy()
    return made


def chain_pattern(recording: Recording, heads: tuple[Head, ...]) -> Float[Tensor, "dest src"]:
    """The attention of a chain: its heads' patterns multiplied, the last head's first."""
    pattern = recording.pattern[heads[-1].layer, heads[-1].head]  # [dest, src]
    for head in heads[-2::-1]:
        pattern = pattern @ recording.pattern[head.layer, head.head]  # [dest, src]
    return pattern


def chain_weight(
    recording: Recording, heads: tuple[Head, ...], dests: slice = slice(None)
) -> Float[Tensor, "dest src"]:
    """How much of what a chain would write arrives at each of `dests`, by source position.

    A single head's is its pattern; a virtual head's is the product of its patterns with the scales
    at the middle position inside. A norm behind the last head divides at dest and is left out.
    """
    weight = recording.pattern[heads[-1].layer, heads[-1].head, dests]  # [dest, src]
    for later, earlier in zip(heads[::-1], heads[-2::-1], strict=False):
        weight = weight / recording.ln_scale[later.layer]
        weight = weight @ recording.moved(earlier.layer)[earlier.head]  # [dest, src]
    return weight


def chain_written(
    recording: Recording, heads: tuple[Head, ...], read: Float[Tensor, "src d_model"]
) -> Float[Tensor, "src d_model"]:
    """What a chain writes at weight 1 where its first head reads `read`, value biases left out."""
    written = read
    for head in heads:
        values = written @ recording.weights.W_V_of(head)  # [src, d_head]
        written = values @ recording.weights.W_O_of(head)  # [src, d_model]
    return written


def value_weighted(recording: Recording, heads: tuple[Head, ...]) -> Float[Tensor, "dest src"]:
    """How much of the stream a chain moves from src to dest: weight x norm of what it would write.

    Everything that the chain carries counts, value bias apart; the unit is the stream's own. The
    scales at the source and in the middle are counted in, the final scale is not.
    """
    with torch.inference_mode():
        first = heads[0].layer
        read = recording.stream[first] / recording.ln_scale[first].unsqueeze(-1)  # [src, d_model]
        written = chain_written(recording, heads, read)  # [src, d_model]
        weight = chain_weight(recording, heads)  # [dest, src]
        if recording.post_scale is not None:
            weight = weight / recording.post_scale[heads[-1].layer].unsqueeze(-1)
        return weight * written.square().sum(-1).sqrt()  # [dest, src]
