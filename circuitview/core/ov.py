"""One head, or one chain of heads, broken down by source token: weight x column value.

Two breakdowns, never to be confused: what the source's own embedding sends through the chain (the
path "token > 1.4"), and everything that the chain carries (the whole stream where it reads). Summed
over the source positions, the second equals all paths whose last heads are this chain.

A column is what the chain would write into the logits if it looked at nothing but that source
position. The scale at the source and at the dest count into the column, so that a single head's
weight is its attention weight; a virtual head's is the product of its patterns with the scale at
the middle position inside.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.attention import chain_weight, chain_written
from circuitview.core.names import TOKEN, CircuitviewError, Head, OVSense
from circuitview.core.recording import Recording
from circuitview.core.target import Target


@dataclass(frozen=True, eq=False, slots=True)
class OVBreakdown:
    """A chain's part of the logit by source position.

    Attributes:
        heads: the chain, nearest the source first.
        sense: "token": the source's embedding alone; "everything": the stream where the chain
            reads.
        weight: [src], how much of each column arrives at dest.
        value: [src], the column's entry for the target [logits].
        contribution: [src], weight x value [logits].
        raises, lowers: for each src, the tokens that its column raises and lowers most, with the
            column's entries [logits].
    """

    heads: tuple[Head, ...]
    sense: OVSense
    weight: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    contribution: npt.NDArray[np.float64]
    raises: tuple[tuple[tuple[int, float], ...], ...]
    lowers: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def total(self) -> float:
        return float(self.contribution.sum())


def ov_breakdown(
    recording: Recording,
    target: Target,
    heads: tuple[Head, ...],
    sense: OVSense = "everything",
    n_tokens: int = 3,
) -> OVBreakdown:
    """The breakdown of `heads` (rising layers, at least one) for `target`.

    Held fixed: patterns and norm scales. Cost: n d_model d_vocab for the columns.
    """
    with torch.inference_mode():
        weights, dest = recording.weights, target.dest
        first, last = heads[0].layer, heads[-1].layer
        read = recording.source(TOKEN) if sense == "token" else recording.stream[first]
        scale = recording.ln_scale[first] * recording.final_scale[dest]  # [src]
        if recording.post_scale is not None:
            scale = scale * recording.post_scale[last, dest]
        read = read / scale.unsqueeze(-1)  # [src, d_model]
        weight = chain_weight(recording, heads, slice(dest, dest + 1))[0]  # [src]
        written = chain_written(recording, heads, read)  # [src, d_model]
        value = (written @ target.direction(weights)).double()  # [src]
        columns = weights.read_out(written)  # [src, d_vocab]
        k = min(n_tokens, columns.shape[-1])
        return OVBreakdown(
            heads=heads,
            sense=sense,
            weight=weight.double().numpy(),
            value=value.numpy(),
            contribution=(weight.double() * value).numpy(),
            raises=_top(columns, k, largest=True),
            lowers=_top(columns, k, largest=False),
        )


def _top(
    columns: Float[Tensor, "src d_vocab"], k: int, largest: bool
) -> tuple[tuple[tuple[int, float], ...], ...]:
    values, tokens = columns.topk(k, largest=largest)
    return tuple(
        tuple(zip(row_tokens, row_values, strict=True))
        for row_tokens, row_values in zip(tokens.tolist(), values.tolist(), strict=True)
    )


def head_totals(recording: Recording, target: Target) -> Float[Tensor, "layer head"]:
    """Everything that each head's last hop carries to the target [logits], value bias not counted.

    Equals the sum of all paths whose last head it is; the strongest head is the one with the
    largest |total|. Held fixed: patterns and norm scales.
    """
    with torch.inference_mode():
        weights, dest = recording.weights, target.dest
        direction = target.direction(weights) / recording.final_scale[dest]  # [d_model]
        totals = []
        for layer in range(weights.config.n_layers):
            read = recording.stream[layer] / recording.ln_scale[layer].unsqueeze(-1)
            values = read @ weights.W_V[layer]  # [kv_head, src, d_head]
            column = weights.W_O[layer] @ direction  # [head, d_head]
            by_head = values.repeat_interleave(weights.group, 0)  # [head, src, d_head]
            value = torch.einsum("hse,he->hs", by_head, column)  # [head, src]
            totals.append((recording.moved(layer)[:, dest] * value).double().sum(-1))  # [head]
        return torch.stack(totals)  # [layer, head]


def strongest_head(recording: Recording, target: Target) -> Head:
    """The head with the largest |total| for `target`."""
    totals = head_totals(recording, target).abs()
    layer, head = divmod(int(totals.argmax()), totals.shape[1])
    return Head(layer, head)


def chosen_chain(
    recording: Recording, target: Target, heads: tuple[Head, ...] | None
) -> tuple[Head, ...]:
    """The chain asked for, nearest the source first; the strongest head where none is.

    Raises:
        CircuitviewError: where the model lacks one of the heads, or the layers don't rise.
    """
    if not heads:
        return (strongest_head(recording, target),)
    config = recording.weights.config
    for head in heads:
        if head.layer >= config.n_layers or head.head >= config.n_heads:
            raise CircuitviewError(
                f"{recording.prompt.model} has no head {head}: its layers are 0 to "
                f"{config.n_layers - 1}, its heads 0 to {config.n_heads - 1}"
            )
    if any(later.layer <= earlier.layer for earlier, later in pairwise(heads)):
        raise CircuitviewError(
            f"{' > '.join(map(str, heads))} is no chain of heads: layers must rise, like 0.3 > 1.4"
        )
    return heads
