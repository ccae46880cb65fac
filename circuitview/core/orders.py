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

    # A gradient is zero after dest, and before the first heads everywhere but at dest.
    dests = slice(target.dest, target.dest + 1)
    for layer in reversed(range(L)):
        bias = Source("bias", layer)
        if bias in sources:
            read(bias)
        reached = L - layer  # how many orders have a gradient here
        found = gradient[:reached, dests]  # [order, dest, d_model]
        values = _into_heads(weights.W_O[layer], found)  # [order, head, dest, d_head]
        heads[layer] = (values.sum(0) * recording.z[layer, :, dests]).double().sum((1, 2)).numpy()
        pattern = recording.pattern[layer, :, dests, : target.dest + 1]  # [head, dest, src]
        moved = _out_of_heads(weights.W_V[layer], pattern.mT @ values)  # [order, src, d_model]
        dests = slice(0, target.dest + 1)
        gradient[1 : reached + 1, dests] += moved / recording.ln_scale[layer, dests].unsqueeze(-1)
    for source in sources:
        if source.layer < 0:
            read(source)
    return OrderSums(sources, sums, heads)


def _into_heads(
    W_O: Float[Tensor, "head d_head d_model"], gradient: Float[Tensor, "order dest d_model"]
) -> Float[Tensor, "order head dest d_head"]:
    """The gradient with respect to what each head mixes, from the one at its output."""
    orders, dests, _ = gradient.shape
    n_heads, d_head, d_model = W_O.shape
    flat = gradient @ W_O.reshape(n_heads * d_head, d_model).mT  # [order, dest, head x d_head]
    return flat.view(orders, dests, n_heads, d_head).transpose(1, 2)


def _out_of_heads(
    W_V: Float[Tensor, "head d_model d_head"], moved: Float[Tensor, "order head src d_head"]
) -> Float[Tensor, "order src d_model"]:
    """The gradient at the input of all heads together, from the one at their values."""
    n_heads, d_model, d_head = W_V.shape
    read = W_V.transpose(1, 2).reshape(n_heads * d_head, d_model)  # [head x d_head, d_model]
    return moved.transpose(1, 2).flatten(2) @ read
