"""Exact sums of all paths by order (number of heads) and by source, at any depth.

One pass from the target down the layers carries, for each order k, the gradient of the logit with
respect to the stream through exactly k further heads, patterns and scales held. A source's sum of
order k is its own vectors times that gradient. Cost: n_layers + 1 attention passes, and memory for
(n_layers + 1) streams. Source: the path expansion of Elhage et al. 2021, read backwards.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import Head, Source
from circuitview.core.recording import Recording
from circuitview.core.target import Target


@dataclass(frozen=True, eq=False)
class OrderSums:
    """Sums of all paths of one target [logits].

    Attributes:
        sources: the model's sources.
        sums: [source, order, src], what starts at each position through exactly `order` heads.
        heads: [layer, head], everything whose path runs through a head, value bias included: what
            zeroing the head takes away while patterns and scales are held.
    """

    sources: tuple[Source, ...]
    sums: npt.NDArray[np.float64]
    heads: npt.NDArray[np.float64]

    def of(self, source: Source, order: int) -> float:
        return float(self.sums[self.sources.index(source), order].sum())

    def by_order(self) -> npt.NDArray[np.float64]:
        """[order], over all sources."""
        total: npt.NDArray[np.float64] = self.sums.sum((0, 2))
        return total

    def head(self, head: Head) -> float:
        return float(self.heads[head.layer, head.head])


def order_sums(recording: Recording, target: Target) -> OrderSums:
    """The sums of all paths to `target` by source, order and source position.

    Held fixed: patterns and norm scales, as recorded.
    """
    with torch.inference_mode():
        return _order_sums(recording, target)


def _order_sums(recording: Recording, target: Target) -> OrderSums:
    weights = recording.weights
    L, n = weights.config.n_layers, len(recording.tokens)
    sources = weights.sources
    sums = np.zeros((len(sources), L + 1, n))
    heads = np.zeros((L, weights.config.n_heads))
    gradient = recording.stream.new_zeros(L + 1, n, weights.config.d_model)  # [order, pos, d_model]
    gradient[0, target.dest] = target.direction(weights) / recording.final_scale[target.dest]

    def read(source: Source) -> None:
        written = recording.source(source)  # [pos, d_model]
        sums[sources.index(source)] = (gradient * written).double().sum(-1).numpy()  # [order, pos]

    for layer in reversed(range(L)):
        bias = Source("bias", layer)
        if bias in sources:
            read(bias)
        written = recording.z[layer] @ weights.W_O[layer]  # [head, pos, d_model]
        heads[layer] = (written * gradient.sum(0)).double().sum((1, 2)).numpy()  # [head]
        gradient[1:] += _through_heads(recording, layer, gradient[:-1])
    for source in sources:
        if source.layer < 0:
            read(source)
    return OrderSums(sources, sums, heads)


def _through_heads(
    recording: Recording, layer: int, gradient: Float[Tensor, "order pos d_model"]
) -> Float[Tensor, "order pos d_model"]:
    """What the heads of `layer` make of a gradient, from their output back to their input."""
    weights = recording.weights
    # Only orders that something has reached: near the target the higher ones are still zero.
    reached = min(gradient.shape[0], weights.config.n_layers - layer)
    back = gradient[:reached].unsqueeze(1)  # [order, 1, pos, d_model]
    values = back @ weights.W_O[layer].mT  # [order, head, dest, d_head]
    moved = recording.pattern[layer].mT @ values  # [order, head, src, d_head]
    read = (moved @ weights.W_V[layer].mT).sum(1)  # [order, src, d_model]
    result = torch.zeros_like(gradient)
    result[:reached] = read / recording.ln_scale[layer].unsqueeze(-1)
    return result
