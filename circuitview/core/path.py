"""End-to-end paths: a source and a chain of heads in rising layers. Pure values, nothing heavy.

In the expansion that carries paths on through MLPs a chain may also step through MLPs; a layer's
MLP comes after its heads.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from circuitview.core.names import CircuitviewError, Head, Mlp, Source, Step, is_number

PathKind = Literal["direct", "head", "virtual head", "through MLPs"]
_KINDS: tuple[PathKind, ...] = ("direct", "head", "virtual head")


def depth(thing: Source | Step) -> int:
    """Where something stands on the way through the model: layer l's heads and biases at 2 l, its
    MLP at 2 l + 1, the embeddings below all of them."""
    match thing:
        case Source(kind, layer):
            return 2 * layer + (kind in ("mlp", "mlp bias"))
        case Head(layer, _):
            return 2 * layer
        case Mlp(layer):
            return 2 * layer + 1


@dataclass(frozen=True, slots=True)
class Path:
    """A path through the model, and the identity of everything drawn for it.

    Attributes:
        source: where it starts.
        steps: what it runs through, nearest the source first: heads, and MLPs where the expansion
            carries paths on through them. Their depths strictly rise.
    """

    source: Source
    steps: tuple[Step, ...] = ()

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads among its steps."""
        return tuple(step for step in self.steps if isinstance(step, Head))

    @property
    def kind(self) -> PathKind:
        """How many heads it has, whatever its source: none, one or more; or that it has an MLP."""
        if any(isinstance(step, Mlp) for step in self.steps):
            return "through MLPs"
        return _KINDS[min(len(self.steps), 2)]

    @property
    def label(self) -> str:
        return " > ".join([str(self.source), *map(str, self.steps)])

    def __str__(self) -> str:
        return self.label

    @classmethod
    def parse(cls, text: str) -> "Path":
        """The path that a label names: "token > 0.3 > 1.4", "token > mlp 0 > 1.4".

        Raises:
            CircuitviewError: where it names none, or its layers don't rise.
        """
        source, *steps = text.split(">")
        path = cls(Source.parse(source.strip()), tuple(_step(step) for step in steps))
        depths = [depth(path.source), *(depth(step) for step in path.steps)]
        if any(later <= earlier for earlier, later in pairwise(depths)):
            raise CircuitviewError(f"{text!r} is not a path: layers must rise from left to right")
        return path


def _step(text: str) -> Step:
    match text.split():
        case ["mlp", layer] if is_number(layer):
            return Mlp(int(layer))
    return Head.parse(text)


@dataclass(frozen=True, eq=False, slots=True)
class PathTerm:
    """One path's share of the logit.

    Attributes:
        contribution: [logits]; the sum of `by_source`.
        by_source: [src], what starts at each position [logits].
    """

    path: Path
    contribution: float
    by_source: npt.NDArray[np.float64]


def count_chains(n_layers: int, n_heads: int, most: int | None = None, above: int = -1) -> int:
    """How many chains of at most `most` heads run through the layers above layer `above`.

    Exact at any depth: Python integers. Chains of m heads choose m layers and a head in each.
    """
    layers = n_layers - 1 - above
    ways = [1]  # ways[m]: chains of m heads through the layers seen so far
    for _ in range(layers):
        ways = [
            (ways[m] if m < len(ways) else 0) + (ways[m - 1] * n_heads if m else 0)
            for m in range(len(ways) + 1)
        ]
    return sum(ways if most is None else ways[: most + 1])


@dataclass(frozen=True, eq=False)
class ChainTable:
    """All chains of at most `most` heads, in the order in which expansion.py grows them.

    Grown backwards from the target: the empty chain, then every chain with one head more at its
    source side, lower layers first within a step.

    Attributes:
        chains: tuples of heads, nearest the source first.
        first_layer: layer of the first head; n_layers for the empty chain.
        steps: for each growth (from_start, from_stop, layer): the chains [from_start, from_stop)
            were each extended by every head of `layer`, head by head.
    """

    chains: tuple[tuple[Head, ...], ...]
    first_layer: npt.NDArray[np.int64]
    steps: tuple[tuple[int, int, int], ...]


@lru_cache(maxsize=16)
def chain_table(n_layers: int, n_heads: int, most: int) -> ChainTable:
    """The chains of a model of this shape. Cost: one tuple a chain; call with `most` small."""
    chains: list[tuple[Head, ...]] = [()]
    first: list[int] = [n_layers]
    steps: list[tuple[int, int, int]] = []
    # Blocks of chains that share their first layer; each is extended once by every lower layer.
    blocks = [(0, 1, n_layers)]
    for _ in range(min(most, n_layers)):
        grown = []
        for start, stop, first_layer in blocks:
            for layer in range(first_layer):
                begin = len(chains)
                steps.append((start, stop, layer))
                for head in range(n_heads):
                    chains += [(Head(layer, head), *chain) for chain in chains[start:stop]]
                first += [layer] * (len(chains) - begin)
                grown.append((begin, len(chains), layer))
        blocks = grown
    return ChainTable(tuple(chains), np.array(first), tuple(steps))


@lru_cache(maxsize=16)
def path_table(
    n_layers: int, n_heads: int, most: int, sources: tuple[Source, ...]
) -> tuple[tuple[Path, ...], tuple[npt.NDArray[np.int64], ...]]:
    """The paths from `sources` through those chains, and for each source its chains' places.

    Paths come source by source, each with the chains that lie above its layer.
    """
    table = chain_table(n_layers, n_heads, most)
    paths: list[Path] = []
    places = []
    for source in sources:
        above = np.flatnonzero(table.first_layer > source.layer)
        places.append(above)
        paths += [Path(source, table.chains[place]) for place in above]
    return tuple(paths), tuple(places)
