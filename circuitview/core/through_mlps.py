"""Paths that run through MLPs too, each neuron's nonlinearity held at its recorded ratio.

The map of an MLP then differs from position to position, so behind one the position part and the
direction part of a path no longer separate: from there on a chain carries a gradient [pos,
d_model]. Before the first MLP (seen from the target) it stays a pair (w, v), as in expansion.py.

Cost in multiplications: for each MLP n_sources n d_model d_mlp to bring the sources to its neurons,
d_model d_mlp for each pair and n d_model d_mlp for each gradient that comes to it, twice that for
each that goes on, and n_sources n d_mlp for each chain. The path expansion of Elhage et al. 2021,
with one thing more held (see mlp.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.hops import Chains, hop
from circuitview.core.names import Head, Mlp, Source, Step
from circuitview.core.orders import path_sources
from circuitview.core.path import depth
from circuitview.core.recording import Recording
from circuitview.core.target import Target

Chain = tuple[Step, ...]
# How many numbers at the neurons of an MLP are made together: 16 million float32 are 64 MB.
_ROOM = 16_000_000


@dataclass(frozen=True, eq=False)
class _Tails:
    """Chains on their way down: those through heads alone as pairs, the others as gradients."""

    thin_names: tuple[Chain, ...]
    thin: Chains
    thick_names: tuple[Chain, ...]
    thick: Float[Tensor, "chain pos d_model"]

    def parts(self, count: int) -> "Iterator[_Tails]":
        """The same chains in parts: all pairs with the first gradients, then `count` gradients at a
        time."""
        for start in range(0, max(len(self.thick_names), 1), count):
            part = slice(start, start + count)
            yield _Tails(
                self.thin_names if start == 0 else (),
                self.thin if start == 0 else self.thin.first(0),
                self.thick_names[part],
                self.thick[part],
            )

    def joined(self, other: "_Tails") -> "_Tails":
        return _Tails(
            self.thin_names + other.thin_names,
            self.thin.joined(other.thin),
            self.thick_names + other.thick_names,
            torch.cat([self.thick, other.thick]),
        )


@dataclass(frozen=True, eq=False)
class Contributions:
    """What sources send along chains.

    Attributes:
        by_source: [chain, source, src] (logits).
    """

    chains: tuple[Chain, ...]
    sources: tuple[Source, ...]
    by_source: Float[Tensor, "chain source src"]


def contributions_through_mlps(
    recording: Recording, target: Target, most: int
) -> Iterator[Contributions]:
    """What every source sends along every chain of up to `most` steps, heads or MLPs.

    Held fixed: patterns, norm scales and the ratios of the MLPs' neurons, as recorded.
    """
    weights, n = recording.weights, target.dest + 1
    sources = path_sources(recording, through_mlps=True)
    start = Chains.start(recording, target)
    nothing = recording.stream.new_zeros(0, n, weights.config.d_model)
    tails = _Tails(((),), start, (), nothing)
    rows = {source: recording.source(source)[:n] for source in sources}
    direct = (
        torch.stack([rows[source] @ start.v[0] for source in sources]) * start.w
    )  # [source, src]
    yield Contributions(((),), sources, direct.unsqueeze(0))
    for layer in reversed(range(weights.config.n_layers)):
        grown: list[_Tails] = []
        for kind in (_MlpStep, _HeadStep):
            step = kind(recording, layer, n)
            below = tuple(s for s in sources if _under(s, step.depth, recording))
            stacked = torch.stack([rows[source] for source in below])  # [source, pos, d_model]
            yield from step.contributions(tails, below, stacked)
            if layer > 0 or kind is _MlpStep:
                grown.append(step.grow(_short(tails, most - 1)))
            if not weights.config.parallel_attn_mlp:
                tails = tails.joined(grown.pop()) if grown else tails
        for new in grown:
            tails = tails.joined(new)


def _under(source: Source, step_depth: int, recording: Recording) -> bool:
    """Whether a source writes before a step reads; in parallel blocks a layer's parts all read
    what stood before it."""
    if recording.weights.config.parallel_attn_mlp:
        return source.layer < step_depth // 2
    return depth(source) < step_depth


def _short(tails: _Tails, longest: int) -> _Tails:
    """The chains that may grow by one more step."""
    thin = [place for place, name in enumerate(tails.thin_names) if len(name) < longest]
    thick = [place for place, name in enumerate(tails.thick_names) if len(name) < longest]
    return _Tails(
        tuple(tails.thin_names[place] for place in thin),
        tails.thin.at(torch.tensor(thin, dtype=torch.int64)),
        tuple(tails.thick_names[place] for place in thick),
        tails.thick[thick],
    )


class _MlpStep:
    """One more step through the MLP of a layer."""

    def __init__(self, recording: Recording, layer: int, n: int) -> None:
        self.recording, self.layer, self.n = recording, layer, n
        self.mlp = recording.weights.mlps[layer]
        self.depth = 2 * layer + 1
        self.ratio = recording.mlp_ratio(layer)[:n]  # [pos, d_mlp]
        self.scale = recording.into_mlp_scale(layer)[:n]  # [pos]
        post = recording.mlp_post_scale
        self.post = None if post is None else post[layer, :n]

    def contributions(
        self, tails: _Tails, sources: tuple[Source, ...], rows: Float[Tensor, "source pos d_model"]
    ) -> Iterator[Contributions]:
        for part in tails.parts(self._at_once):
            thin, thick = self._neurons(part)
            w = self._w(part)
            names = part.thin_names + part.thick_names
            chains = tuple((Mlp(self.layer), *name) for name in names)
            for place, source in enumerate(sources):  # one at a time: neurons are many
                read = self.mlp.normed(rows[place], self.scale)  # [pos, d_model]
                at_neurons = (read @ self.mlp.W_in) * self.ratio  # [pos, d_mlp]
                thin_sent = (thin @ at_neurons.mT) * w  # [chain, pos]
                thick_sent = torch.einsum("cjk,jk->cj", thick, at_neurons)  # [chain, pos]
                sent = torch.cat([thin_sent, thick_sent]).unsqueeze(1)  # [chain, 1, pos]
                yield Contributions(chains, (source,), sent)

    def grow(self, tails: _Tails) -> _Tails:
        names: list[Chain] = []
        gradients = [tails.thick[:0]]
        for part in tails.parts(self._at_once):
            thin, thick = self._neurons(part)
            spread = self._w(part).unsqueeze(-1) * thin.unsqueeze(1)  # [chain, pos, d_mlp]
            at_neurons = torch.cat([spread, thick]) * self.ratio
            gradients.append(self.mlp.out_of(at_neurons) / self.scale.unsqueeze(-1))
            names += [(Mlp(self.layer), *name) for name in part.thin_names + part.thick_names]
        return _Tails((), tails.thin.first(0), tuple(names), torch.cat(gradients))

    @property
    def _at_once(self) -> int:
        """How many chains may be at the neurons together."""
        return max(1, _ROOM // self.ratio.numel())

    def _w(self, tails: _Tails) -> Float[Tensor, "chain pos"]:
        return tails.thin.w if self.post is None else tails.thin.w / self.post

    def _neurons(
        self, tails: _Tails
    ) -> tuple[Float[Tensor, "thin d_mlp"], Float[Tensor, "thick pos d_mlp"]]:
        thick = tails.thick if self.post is None else tails.thick / self.post.unsqueeze(-1)
        return self.mlp.into(tails.thin.v), self.mlp.into(thick)


class _HeadStep:
    """One more step through the heads of a layer."""

    def __init__(self, recording: Recording, layer: int, n: int) -> None:
        self.recording, self.layer, self.n = recording, layer, n
        self.depth = 2 * layer

    def contributions(
        self, tails: _Tails, sources: tuple[Source, ...], rows: Float[Tensor, "source pos d_model"]
    ) -> Iterator[Contributions]:
        weights = self.recording.weights
        # One product with all heads' weights side by side: with a head axis torch would copy rows.
        _, n_kv, _, d_head = weights.W_V.shape
        flat = weights.W_V[self.layer].transpose(0, 1).flatten(1)  # [d_model, kv_head x d_head]
        values = (rows @ flat).view(*rows.shape[:2], n_kv, d_head)  # [source, pos, kv_head, d_head]
        moved = self._moved(tails)  # [head, chain, pos, d_head]
        step = hop(self.recording, self.layer, tails.thin)
        names = tails.thin_names + tails.thick_names
        for head in range(weights.config.n_heads):  # one at a time: chains x sources are many
            read = values[:, :, head // weights.group]  # [source, pos, d_head]
            thick = torch.einsum("cje,sje->csj", moved[head], read)  # [chain, source, pos]
            thin = torch.einsum("ce,sje->csj", step.q[head], read)  # [chain, source, pos]
            thin *= step.w[head].unsqueeze(1)
            chains = tuple((Head(self.layer, head), *name) for name in names)
            yield Contributions(chains, sources, torch.cat([thin, thick]))

    def grow(self, tails: _Tails) -> _Tails:
        weights = self.recording.weights
        heads = [Head(self.layer, head) for head in range(weights.config.n_heads)]
        thin = hop(self.recording, self.layer, tails.thin).all()
        moved = self._moved(tails)  # [head, chain, pos, d_head]
        flat = moved.flatten(1, 2) @ weights.head_W_V(self.layer).mT  # [head, .., d_model]
        thick = flat.view(*moved.shape[:3], weights.config.d_model)  # [head, chain, pos, d_model]
        return _Tails(
            tuple((head, *name) for head in heads for name in tails.thin_names),
            thin,
            tuple((head, *name) for head in heads for name in tails.thick_names),
            thick.flatten(0, 1),
        )

    def _moved(self, tails: _Tails) -> Float[Tensor, "head chain pos d_head"]:
        """The gradients of the thick chains at each head's values, the norm's division done."""
        recording, n = self.recording, self.n
        thick = tails.thick
        if recording.post_scale is not None:
            thick = thick / recording.post_scale[self.layer, :n].unsqueeze(-1)
        W_O = recording.weights.W_O[self.layer]  # [head, d_head, d_model]
        n_heads, d_head, _ = W_O.shape
        values = (thick @ W_O.flatten(0, 1).mT).view(len(thick), n, n_heads, d_head)
        side_by_side = values.permute(2, 1, 0, 3).flatten(2)  # [head, dest, chain x d_head]
        pattern = recording.pattern[self.layer, :, :n, :n]  # [head, dest, src]
        moved = pattern.mT @ side_by_side  # [head, src, chain x d_head]
        moved /= recording.ln_scale[self.layer, :n].unsqueeze(-1)
        return moved.view(n_heads, n, len(thick), d_head).transpose(1, 2)
