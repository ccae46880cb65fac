"""The largest of very many paths: every path of up to two heads, and the best found beyond.

All chains of up to two heads are worked out and the largest paths among them are kept. Beyond, the
search goes best first: a chain knows its own total from the stream that it reads, so what all the
deeper paths through it add up to, its promise, is known before any of them is; the chains of most
promise are carried on, some at a time, until none promises more than the smallest path that is
kept, or the budget is spent. Sums may hide terms that cancel, so what is found need not be the true
largest; what is not listed is summed exactly by who calls this, from the order sums.

Cost of c chains on n tokens: about c x (n² + d_head (d_model + n_sources n)) multiplications, and
those of projecting (see hops.py). The search carries at most _WIDTH chains a round, in at most
n_layers + 2 rounds, each through all layers below: about as much again.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from circuitview.core.hops import Chains, Hop, Layer, hop, layer_below
from circuitview.core.names import Head, Source
from circuitview.core.path import Path
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording
from circuitview.core.target import Target

# Every path of up to this many heads is worked out.
ENUMERATED_HEADS = 2
# How many chains are brought to a layer together; what its heads make of them is held in memory.
_AT_ONCE = 1024
# How many chains the search carries on together; at least as many of those that come of it are, in
# each layer, taken apart by source, more where prompts are short: up to so many rows of sources.
_WIDTH = 64
_TAKEN = 150_000
# How many chains wait to be carried on; those of less promise are let go.
_KEPT = 512

HeadChain = tuple[Head, ...]


@dataclass(frozen=True, eq=False)
class Listing:
    """The largest paths, and what they were chosen from.

    Attributes:
        paths: the listed ones, the largest first.
        n_enumerated, enumerated: how many paths of up to two heads there are, and their sum
            (logits).
    """

    paths: tuple[Path, ...]
    n_enumerated: int
    enumerated: float


@dataclass
class _Best:
    """The k largest paths seen so far."""

    k: int
    least: float = 0.0
    kept: list[tuple[float, Source, HeadChain]] = field(default_factory=list)

    def offer(
        self, sent: Tensor, layer: int, tails: list[HeadChain], sources: tuple[Source, ...]
    ) -> None:
        """[head, chain, source], what is sent along chains through the heads of `layer`."""
        flat = sent.flatten()
        size = flat.abs()
        best = size.topk(min(self.k, len(flat)))
        places = best.indices[best.values > self.least]
        _, n_chains, n_sources = sent.shape
        for place, value in zip(places.tolist(), flat[places].tolist(), strict=True):
            rest, source = divmod(place, n_sources)
            head, chain = divmod(rest, n_chains)
            self.kept.append((value, sources[source], (Head(layer, head), *tails[chain])))
        self._prune()

    def offer_named(
        self, sent: Tensor, names: list[HeadChain], sources: tuple[Source, ...]
    ) -> None:
        """[chain, source], what is sent along chains that have names."""
        chains, places = (sent.abs() > self.least).nonzero(as_tuple=True)
        self.kept += [
            (value, sources[place], names[chain])
            for value, chain, place in zip(
                sent[chains, places].tolist(), chains.tolist(), places.tolist(), strict=True
            )
        ]
        self._prune()

    @property
    def full(self) -> bool:
        return len(self.kept) >= self.k

    def _prune(self) -> None:
        if len(self.kept) > self.k:
            self.kept.sort(key=lambda entry: -abs(entry[0]))
            del self.kept[self.k :]
            self.least = abs(self.kept[-1][0])


@dataclass
class _Frontier:
    """Chains that may be carried on, the most promising first."""

    names: list[HeadChain] = field(default_factory=list)
    promise: list[float] = field(default_factory=list)
    chains: Chains | None = None

    def offer(self, promise: Tensor, step: Hop, tails: list[HeadChain]) -> None:
        """[head, chain], what the deeper paths through each chain add up to."""
        if step.layer == 0 or promise.numel() == 0:
            return  # nothing stands below
        size = promise.abs().flatten()
        best = size.topk(min(_WIDTH, len(size)))
        least = min(self.promise, default=0.0) if len(self.names) >= _KEPT else 0.0
        places = best.indices[best.values > least]
        if not len(places):
            return
        n_chains = promise.shape[1]
        heads, rows = places // n_chains, places % n_chains
        made = step.chains(heads, rows)
        self.chains = made if self.chains is None else self.chains.joined(made)
        self.promise += size[places].tolist()
        self.names += [
            (Head(step.layer, head), *tails[row])
            for head, row in zip(heads.tolist(), rows.tolist(), strict=True)
        ]
        self._keep(np.argsort(-np.array(self.promise), kind="stable")[:_KEPT])

    def pop(self) -> tuple[list[HeadChain], Chains]:
        """The most promising chains, those that start highest first."""
        assert self.chains is not None
        order = np.argsort(-np.array(self.promise), kind="stable")
        chosen = sorted(order[:_WIDTH].tolist(), key=lambda place: -self.names[place][0].layer)
        names, chains = [self.names[place] for place in chosen], self.chains.at(_index(chosen))
        self._keep(order[_WIDTH:])
        return names, chains

    def _keep(self, places: npt.NDArray[np.int64]) -> None:
        assert self.chains is not None
        self.names = [self.names[place] for place in places]
        self.promise = [self.promise[place] for place in places]
        self.chains = self.chains.at(_index(places.tolist()))


def _index(places: list[int]) -> Tensor:
    return torch.tensor(places, dtype=torch.int64)


def largest_paths(
    recording: Recording, target: Target, k: int
) -> Generator[Progress, None, Listing]:
    """The k largest paths: of all with up to two heads, and of the longer ones that are found.

    Held fixed: patterns, norm scales and MLP outputs, as recorded. Yields a Progress after each
    layer.
    """
    n_layers = recording.weights.config.n_layers
    best, frontier = _Best(k), _Frontier()
    n_enumerated, enumerated = 0, 0.0
    for step, sent, below, tails in enumerate_contributions(recording, target, ENUMERATED_HEADS):
        n_enumerated += sent.numel()
        enumerated += float(sent.double().sum())
        if step is None:
            best.offer_named(sent[0], tails, below)
            continue
        best.offer(sent, step.layer, tails, below)
        full = [place for place, tail in enumerate(tails) if len(tail) == ENUMERATED_HEADS - 1]
        promise = (step.carried() - sent.sum(-1))[:, full]  # [head, chain]
        frontier.offer(promise, step.at(full), [tails[place] for place in full])
        yield Progress(n_layers - step.layer, n_layers, "working out paths of up to two heads")
    yield from _search(recording, target, best, frontier)
    best.kept.sort(key=lambda entry: -abs(entry[0]))
    return Listing(
        paths=tuple(Path(source, chain) for _, source, chain in best.kept),
        n_enumerated=n_enumerated,
        enumerated=enumerated,
    )


def _search(
    recording: Recording, target: Target, best: _Best, frontier: _Frontier
) -> Iterator[Progress]:
    """Carry on the most promising chains, and keep what is large among the paths found."""
    rounds = recording.weights.config.n_layers + 2
    # A round may lengthen the best chain by a head, so that any depth can be reached.
    for done in range(rounds):
        if not frontier.names or (best.full and max(frontier.promise) <= best.least):
            return
        names, chains = frontier.pop()
        firsts = np.array([name[0].layer for name in names])
        for layer in reversed(range(int(firsts.max()))):
            count = int((firsts > layer).sum())
            step = hop(recording, layer, chains.first(count))
            sums = step.contributions(
                _summed_below(recording, layer, target.dest)
            )  # [head, chain, 3]
            own = sums[..., :2].abs().amax(-1)  # [head, chain]
            _take_apart(recording, target, step, own, names, best)
            frontier.offer(sums[..., 2] - sums[..., :2].sum(-1), step, names[:count])
        yield Progress(done + 1, rounds, "searching longer paths")


def _summed_below(recording: Recording, layer: int, dest: int) -> Layer:
    """Three rows in place of all sources under a layer: the token, the sum of the others, and the
    stream, which is their sum and all that heads made of them."""
    token, *others = (source for source in recording.weights.sources if source.layer < layer)
    rows = torch.stack(
        [recording.source(token)[: dest + 1]] * 2 + [recording.stream[layer, : dest + 1]]
    )
    rows[1] = 0.0
    for source in others:
        rows[1] += recording.source(source)[: dest + 1]
    return Layer(layer, (), rows, None)


def _take_apart(
    recording: Recording,
    target: Target,
    step: Hop,
    own: Tensor,
    tails: list[HeadChain],
    best: _Best,
) -> None:
    """Offer the paths of the extended chains that have most of their own, source by source."""
    sources = tuple(s for s in recording.weights.sources if s.layer < step.layer)
    count = max(_WIDTH, min(4 * _WIDTH, _TAKEN // (len(sources) * (target.dest + 1))))
    order = own.flatten().topk(min(count, own.numel())).indices
    heads, places = order // own.shape[1], order % own.shape[1]
    chains = step.chains(heads, places)
    names = [
        (Head(step.layer, head), *tails[place])
        for head, place in zip(heads.tolist(), places.tolist(), strict=True)
    ]
    sent = torch.stack(
        [
            (chains.v @ recording.source(source)[: target.dest + 1].mT * chains.w).sum(-1)
            for source in sources
        ],
        dim=-1,
    )  # [chain, source]
    best.offer_named(sent, names, sources)


def enumerate_contributions(
    recording: Recording, target: Target, most: int
) -> Iterator[tuple[Hop | None, Tensor, tuple[Source, ...], list[HeadChain]]]:
    """What every source sends along every chain of up to `most` heads, layer by layer from the
    target down.

    Yields (hop, sent [head, chain, source], the sources, the chains above the layer): for each
    head of the layer and each chain above it, some thousand chains at a time. First the direct
    paths, without a hop, as [1, 1, source]. Held fixed: patterns, norm scales and MLP outputs.
    """
    weights, dest = recording.weights, target.dest
    sources = weights.sources
    chains = Chains.start(recording, target)
    tails: list[HeadChain] = [()]
    rows = torch.stack([recording.source(source)[dest] for source in sources])
    yield None, (rows @ chains.v[0] * chains.w[0, dest]).view(1, 1, -1), sources, tails
    for layer in reversed(range(weights.config.n_layers)):
        below = layer_below(recording, layer, sources, len(tails), dest)
        for start in range(0, len(tails), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            step = hop(recording, layer, Chains(chains.w[part], chains.v[part]))
            yield step, step.contributions(below), below.sources, tails[part]
        # Only chains that may grow by another head are kept.
        short = [place for place, tail in enumerate(tails) if len(tail) < most - 1]
        if short and layer > 0:
            grown = hop(recording, layer, chains.at(_index(short)))
            chains = chains.joined(grown.all())
            tails = tails + [
                (Head(layer, head), *tails[place])
                for head in range(weights.config.n_heads)
                for place in short
            ]


def by_source(
    recording: Recording, target: Target, paths: tuple[Path, ...]
) -> npt.NDArray[np.float64]:
    """[path, src], what starts at each position (logits), for paths through heads alone.

    Held fixed: patterns, norm scales and MLP outputs. Cost: a few thin products a chain.
    """
    n = len(recording.tokens)
    made = np.zeros((len(paths), n))
    start = Chains.start(recording, target)
    grown: dict[HeadChain, tuple[Tensor, Tensor]] = {(): (start.w[0], start.v[0])}
    for place, path in enumerate(paths):
        w, v = _grow(recording, path.heads, grown)
        sent = w * (recording.source(path.source)[: target.dest + 1] @ v)  # [src]
        made[place, : target.dest + 1] = sent.double().numpy()
    return made


def _grow(
    recording: Recording, chain: HeadChain, grown: dict[HeadChain, tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Position and direction part of a chain; `grown` remembers those of its ends."""
    if chain not in grown:
        head = chain[0]
        w, v = _grow(recording, chain[1:], grown)
        n = len(w)
        if recording.post_scale is not None:
            w = w / recording.post_scale[head.layer, :n]
        w = w @ recording.pattern[head.layer, head.head, :n, :n]  # [src]
        w = w / recording.ln_scale[head.layer, :n]
        weights = recording.weights
        v = weights.W_V_of(head) @ (weights.W_O_of(head) @ v)  # [d_model]
        grown[chain] = (w, v)
    return grown[chain]
