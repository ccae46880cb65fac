"""Exact sums of all paths by order (how many heads they have) and by source, at any depth.

One pass from the target down the layers carries, for each order k, the gradient of the logit with
respect to the stream through exactly k further steps, patterns and scales held. A source's sum of
order k is its own vectors times that gradient. Where paths are carried on through MLPs, an MLP is a
step like a head, its ratios held, and the highest orders are summed as one.

Cost: n_layers + 1 passes of the value side of attention, and memory for (n_layers + 1) streams;
with MLPs the same number of passes of the MLPs. Source: the path expansion of Elhage et al. 2021,
read backwards.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import Head, Mlp, Source
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording
from circuitview.core.target import Explained

# With MLPs a path has up to 2 n_layers steps; from this order on they are summed as one.
_MOST_STEPS = 6


@dataclass(frozen=True, eq=False)
class OrderSums:
    """Sums of all paths of one target, or of the mean over every next token of a text [logits].

    Attributes:
        sources: where paths start: the model's sources, or, where paths are carried on through
            MLPs, those without MLP outputs and with MLP biases.
        sums: [source, order, src], what starts at each position through exactly `order` steps; the
            last order holds all higher ones where `capped`.
        heads: [layer, head], everything whose path runs through a head, value bias included: what
            zeroing the head takes away while patterns and scales are held.
        through: [layer, head], the same without the value bias: the sum of all paths through it.
        mlps: [layer], the sum of all paths through each MLP; empty where MLPs are sources.
        capped: whether the last order stands for all from there on.
    """

    sources: tuple[Source, ...]
    sums: npt.NDArray[np.float64]
    heads: npt.NDArray[np.float64]
    through: npt.NDArray[np.float64]
    mlps: npt.NDArray[np.float64]
    capped: bool = False

    def of(self, source: Source, order: int) -> float:
        return float(self.sums[self.sources.index(source), order].sum())

    def by_order(self) -> npt.NDArray[np.float64]:
        """[order], over all sources."""
        total: npt.NDArray[np.float64] = self.sums.sum((0, 2))
        return total

    @cached_property
    def by_source(self) -> npt.NDArray[np.float64]:
        """[source, order], over all positions."""
        total: npt.NDArray[np.float64] = self.sums.sum(2)
        return total

    def head(self, head: Head) -> float:
        return float(self.heads[head.layer, head.head])

    def net(self, what: Source | Head | Mlp) -> float:
        """The sum of all paths that start at a source, or run through a head or an MLP."""
        match what:
            case Head(layer, head):
                return float(self.through[layer, head])
            case Mlp(layer):
                return float(self.mlps[layer])
            case Source():
                return float(self.by_source[self.sources.index(what)].sum())


def path_sources(recording: Recording, through_mlps: bool = False) -> tuple[Source, ...]:
    """Where paths start: with `through_mlps` an MLP's biases, if it has any, stand in for its
    output."""
    sources = recording.weights.sources
    if not through_mlps:
        return sources
    mlps = recording.weights.mlps
    return tuple(
        Source("mlp bias", source.layer) if source.kind == "mlp" else source
        for source in sources
        if source.kind != "mlp" or mlps[source.layer].biased
    )


def order_sums(
    recording: Recording,
    target: Explained,
    through_mlps: bool = False,
    most: int | None = None,
    without: frozenset[Head] = frozenset(),
) -> OrderSums:
    """The sums of all paths to `target` by source, order and source position.

    Held fixed: patterns and norm scales, as recorded; MLP outputs, or, with `through_mlps`, the
    ratios of their neurons.

    Args:
        most: the order from which on all are summed as one; 0 sums all paths of a source in one
            pass. None tells apart as many as OrderSums says.
        without: heads whose paths are left out, as if they wrote nothing.
    """
    steps = order_steps(recording, target, through_mlps, most, without)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            sums: OrderSums = end.value
            return sums


def order_steps(
    recording: Recording,
    target: Explained,
    through_mlps: bool = False,
    most: int | None = None,
    without: frozenset[Head] = frozenset(),
) -> Generator[Progress, None, OrderSums]:
    """The same, layer by layer, to be stopped in between."""
    n_layers = recording.weights.config.n_layers
    with torch.inference_mode():  # not across a yield: the mode belongs to the thread
        down = _Pass(recording, target, through_mlps, most, without)
    for layer in reversed(range(n_layers)):
        with torch.inference_mode():
            down.go_through(layer)
        yield Progress(n_layers - layer, n_layers, "summing by order")
    with torch.inference_mode():
        return down.sums()


class _Pass:
    """The gradients on their way down the layers."""

    def __init__(
        self,
        recording: Recording,
        target: Explained,
        through_mlps: bool,
        most: int | None,
        without: frozenset[Head],
    ) -> None:
        config = recording.weights.config
        self.without = without
        self.recording, self.target, self.through_mlps = recording, target, through_mlps
        self.sources = path_sources(recording, through_mlps)
        longest = 2 * config.n_layers if through_mlps else config.n_layers
        if most is None:
            most = _MOST_STEPS if through_mlps else longest
        self.orders = min(longest, most)
        self.capped = self.orders < longest
        n = target.last + 1  # what stands after the last dest has no gradient
        self.found = np.zeros((len(self.sources), self.orders + 1, len(recording.tokens)))
        self.heads = np.zeros((config.n_layers, config.n_heads))
        self.through = np.zeros_like(self.heads)
        self.mlps = np.zeros(config.n_layers if through_mlps else 0)
        self.gradient = recording.stream.new_zeros(self.orders + 1, n, config.d_model)
        self.gradient[0] = target.gradient(recording)  # [order, pos, d_model]
        self.reached = 1  # how many orders have a gradient yet
        self.spread = False  # whether positions before the first dest have one

    def go_through(self, layer: int) -> None:
        """From behind a layer to before it."""
        parallel = self.recording.weights.config.parallel_attn_mlp
        for source in self.sources:
            if source.layer == layer and source.kind != "bias":
                self._read(source)
        below = self._into_mlp(layer) if self.through_mlps else None
        if below is not None and not parallel:
            self._add(below)
            below = None
        if Source("bias", layer) in self.sources:
            self._read(Source("bias", layer))
        moved = self._into_heads(layer)
        self._add(moved if below is None else moved + below)

    def sums(self) -> OrderSums:
        """What was found, when all layers are behind."""
        for source in self.sources:
            if source.layer < 0:
                self._read(source)
        return OrderSums(self.sources, self.found, self.heads, self.through, self.mlps, self.capped)

    def _read(self, source: Source) -> None:
        n = self.target.last + 1
        written = self.recording.source(source)[:n].double()  # [pos, d_model]
        place = self.sources.index(source)
        for order in range(self.reached):
            sent = (self.gradient[order].double() * written).sum(-1)  # [pos]
            self.found[place, order, :n] = sent.numpy()

    def _add(self, moved: Float[Tensor, "reached pos d_model"]) -> None:
        """Let what went through one more step join the next order; past the last one it stays."""
        self.spread = True
        stay = self.orders + 1 - self.reached
        if stay > 0:
            self.gradient[1 : self.reached + 1] += moved
            self.reached += 1
        else:
            self.gradient[1:] += moved[:-1]
            self.gradient[-1] += moved[-1]

    def _into_mlp(self, layer: int) -> Float[Tensor, "reached pos d_model"]:
        """The gradient before the MLP, from the one behind it."""
        recording, mlp = self.recording, self.recording.weights.mlps[layer]
        n = self.target.last + 1
        ratio = recording.mlp_ratio(layer)[:n]  # [pos, d_mlp]
        found = self.gradient[: self.reached]  # [order, pos, d_model]
        if recording.mlp_post_scale is not None:
            found = found / recording.mlp_post_scale[layer, :n].unsqueeze(-1)
        moved = mlp.out_of(mlp.into(found) * ratio)  # [order, pos, d_model]
        moved = moved / recording.into_mlp_scale(layer)[:n].unsqueeze(-1)
        stream = recording.into_mlp(layer)[:n].double()  # [pos, d_model]
        self.mlps[layer] = float((moved.sum(0).double() * stream).sum())
        return moved

    def _into_heads(self, layer: int) -> Float[Tensor, "reached pos d_model"]:
        """The gradient before the heads, from the one behind them; notes what runs through each."""
        recording, weights = self.recording, self.recording.weights
        # Before the first step from the target there is a gradient at its dests alone.
        n, first = self.target.last + 1, 0 if self.spread else self.target.first
        dests = slice(first, n)
        found = self.gradient[: self.reached, dests]  # [order, dest, d_model]
        if recording.post_scale is not None:
            found = found / recording.post_scale[layer, dests].unsqueeze(-1)
        values = _to_values(weights.W_O[layer], found)  # [order, head, dest, d_head]
        left_out = [head.head for head in self.without if head.layer == layer]
        if left_out:
            values[:, left_out] = 0.0
        by_head = values.sum(0).double()  # [head, dest, d_head]
        bias = weights.b_V[layer].repeat_interleave(weights.group, 0)  # [head, d_head]
        z = recording.z[layer, :, dests].double()  # [head, dest, d_head]
        self.heads[layer] = (by_head * z).sum((1, 2)).numpy()
        mixed = z - bias.unsqueeze(1).double()
        self.through[layer] = (by_head * mixed).sum((1, 2)).numpy()
        pattern = recording.pattern[layer, :, dests, :n]  # [head, dest, src]
        # Orders side by side: with an axis of their own torch would copy the pattern for each.
        n_heads, d_head = values.shape[1], values.shape[-1]
        side_by_side = values.permute(1, 2, 0, 3).flatten(2)  # [head, dest, order x d_head]
        flat = pattern.mT @ side_by_side  # [head, src, order x d_head]
        moved = flat.view(n_heads, -1, self.reached, d_head).permute(2, 0, 1, 3)
        if weights.group > 1:
            shape = (len(moved), -1, weights.group, *moved.shape[2:])
            moved = moved.reshape(shape).sum(2)  # [order, kv_head, src, d_head]
        out = _to_stream(weights.W_V[layer], moved)  # [order, src, d_model]
        return out / recording.ln_scale[layer, :n].unsqueeze(-1)


def _to_values(
    W_O: Float[Tensor, "head d_head d_model"], gradient: Float[Tensor, "order dest d_model"]
) -> Float[Tensor, "order head dest d_head"]:
    """The gradient with respect to what each head mixes, from the one at its output."""
    orders, dests, _ = gradient.shape
    n_heads, d_head, d_model = W_O.shape
    flat = gradient @ W_O.reshape(n_heads * d_head, d_model).mT  # [order, dest, head x d_head]
    return flat.view(orders, dests, n_heads, d_head).transpose(1, 2)


def _to_stream(
    W_V: Float[Tensor, "kv_head d_model d_head"],
    moved: Float[Tensor, "order kv_head src d_head"],
) -> Float[Tensor, "order src d_model"]:
    """The gradient at the input of all heads together, from the one at their values."""
    n_heads, d_model, d_head = W_V.shape
    read = W_V.transpose(1, 2).reshape(n_heads * d_head, d_model)  # [kv_head x d_head, d_model]
    return moved.transpose(1, 2).flatten(2) @ read
