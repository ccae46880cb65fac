"""The groups that paths are summed in, and how many paths each has. Pure values, nothing heavy.

A model whose paths are all listed and that is no deeper than three layers has a group for each
layer's heads; a deeper one has one for all heads. Where paths run on through MLPs they are grouped
by how many steps they have.
"""

from dataclasses import dataclass
from functools import cached_property

from circuitview.core.names import TOKEN, Source
from circuitview.core.path import Path

BIASES = "positions and biases"
MLPS = "MLPs"
_STEPS = ("direct", "one step", "two steps", "more steps")
_LAYERS = 3


@dataclass(frozen=True)
class Grouping:
    """How the paths of a model are grouped.

    Attributes:
        sources: where its paths start.
        parallel: whether a layer's attention and MLP read the same stream.
        all_listed: whether every path is listed, so that sums by layer are known.
    """

    n_layers: int
    n_heads: int
    sources: tuple[Source, ...]
    through_mlps: bool = False
    parallel: bool = False
    all_listed: bool = True

    @property
    def by_layer(self) -> bool:
        return self.all_listed and self.n_layers <= _LAYERS and not self.through_mlps

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All groups, in the order in which they are shown; without a second layer no heads
        compose."""
        if self.through_mlps:
            return (*_STEPS, BIASES)
        heads = ["heads"]
        if self.by_layer:
            heads = [f"layer-{layer} heads" for layer in range(self.n_layers)]
        virtual = ["virtual heads"] if self.n_layers > 1 else []
        mlps = [MLPS] if any(source.kind == "mlp" for source in self.sources) else []
        return ("direct", *heads, *virtual, *mlps, BIASES)

    @property
    def summed(self) -> tuple[str, ...]:
        """The groups that have a sum, the same at any depth but for the layers: "virtual heads" is
        among them, 0, where there is one layer."""
        if self.through_mlps or self.n_layers > 1:
            return self.names
        place = 1 + self.n_layers if self.by_layer else 2
        return (*self.names[:place], "virtual heads", *self.names[place:])

    def of(self, path: Path) -> str:
        """The group of a path."""
        if self.by_layer and path.source == TOKEN and len(path.steps) == 1:
            return f"layer-{path.heads[0].layer} heads"
        return self.of_sum(path.source, len(path.steps))

    def of_sum(self, source: Source, steps: int) -> str:
        """The group of all paths from a source with that many steps, where layers are not told
        apart."""
        if source.kind == "mlp":
            return MLPS
        if source != TOKEN:
            return BIASES
        if self.through_mlps:
            return _STEPS[min(steps, 3)]
        return ("direct", "heads", "virtual heads")[min(steps, 2)]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many paths each group has, listed or not. Exact at any depth: Python integers."""
        counts = dict.fromkeys(self.names, 0)
        for source in self.sources:
            for steps, count in enumerate(self.ways(source)):
                if self.by_layer and source == TOKEN and steps == 1:
                    for layer in range(self.n_layers):
                        counts[f"layer-{layer} heads"] += self.n_heads
                else:
                    counts[self.of_sum(source, steps)] += count
        return counts

    @cached_property
    def n_paths(self) -> int:
        return sum(self.counts.values())

    def ways(self, source: Source) -> tuple[int, ...]:
        """[steps], how many chains of exactly that many steps start at `source`."""
        heads, mlp = (1, self.n_heads), (1, 1)
        layers = self.n_layers - 1 - source.layer
        ways: tuple[int, ...] = (1,)
        if self.through_mlps and source.kind == "bias" and not self.parallel:
            ways = _times(ways, mlp)  # written between its layer's heads and its MLP
        for _ in range(layers):
            if not self.through_mlps:
                ways = _times(ways, heads)
            elif self.parallel:
                ways = _times(ways, (1, self.n_heads + 1))
            else:
                ways = _times(_times(ways, heads), mlp)
        return ways


def _times(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The product of two polynomials, by their coefficients."""
    made = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            made[i + j] += a * b
    return tuple(made)
