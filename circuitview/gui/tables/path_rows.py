"""The rows of the path table: every listed path, b_U and what is not listed, sorted and filtered.

Rows are numbers (places): first the expansion's paths in its own order, then one row for b_U and
one for the unlisted rest of each group that has one; so the rows of a group add up to its subtotal,
and all rows to the total. What depends on the paths alone is made once and kept while they stay the
same, which a change of dest or target does not touch.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from circuitview.core.groups import BIASES, Grouping
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.path import Path, PathKind, depth
from circuitview.session import numbers

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

COLUMNS = ("path", "kind", "contribution", "share")
PATH, KIND, CONTRIBUTION, SHARE = range(4)
KINDS: tuple[PathKind, ...] = ("direct", "head", "virtual head", "through MLPs")


@dataclass(frozen=True, eq=False)
class PathNames:
    """What the rows are called, whatever they contribute.

    Attributes:
        paths: the listed paths.
        grouping: their groups.
    """

    paths: tuple[Path, ...]
    grouping: Grouping

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups."""
        return self.grouping.names

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(path.label for path in self.paths)

    @cached_property
    def group(self) -> npt.NDArray[np.int64]:
        """[path], which group each belongs to."""
        number = {name: place for place, name in enumerate(self.groups)}
        return np.array([number[self.grouping.of(path)] for path in self.paths], dtype=np.int64)

    @cached_property
    def kind(self) -> npt.NDArray[np.int64]:
        """[path], the place of its kind in KINDS."""
        return np.array([KINDS.index(path.kind) for path in self.paths], dtype=np.int64)

    @cached_property
    def rank(self) -> npt.NDArray[np.int64]:
        """[path], its place when paths are sorted by source and heads."""
        order = sorted(range(len(self.paths)), key=self._sort_key)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return ranks

    def _sort_key(self, place: int) -> tuple[object, ...]:
        path = self.paths[place]
        kinds = ("token", "position", "bias", "mlp", "mlp bias")
        steps = tuple((depth(step), getattr(step, "head", 0)) for step in path.steps)
        return kinds.index(path.source.kind), path.source.layer, steps

    @cached_property
    def searched(self) -> tuple[str, ...]:
        """[path], the text that a filter looks into."""
        return tuple(
            f"{label} {path.kind} {self.grouping.of(path)}".lower()
            for path, label in zip(self.paths, self.labels, strict=True)
        )


@dataclass(frozen=True, slots=True)
class ExtraRow:
    """A row that is no path: b_U, or what a group holds beyond the listed paths (logits).

    `n_terms` is how many terms it stands for.
    """

    label: str
    kind: str
    group: int
    contribution: float
    n_terms: int = 1


@dataclass(frozen=True, eq=False)
class PathRows:
    """The rows of one expansion.

    Attributes:
        names: what they are called.
        extras: the rows after the paths.
        contributions: [row] (logits).
        subtotals: [group] (logits).
        total: of all rows (logits).
        n_terms: how many terms the model has, listed or not, b_U among them.
    """

    names: PathNames
    extras: tuple[ExtraRow, ...]
    contributions: npt.NDArray[np.float64]
    subtotals: npt.NDArray[np.float64]
    total: float
    n_terms: int

    def __len__(self) -> int:
        return len(self.contributions)

    @cached_property
    def shares(self) -> npt.NDArray[np.float64]:
        """[row], |contribution| in the sum of all listed paths' |contribution|."""
        sizes = np.abs(self.contributions)
        whole = sizes[: len(self.names.paths)].sum()
        return sizes / whole if whole > 0 else np.zeros_like(sizes)

    @cached_property
    def group(self) -> npt.NDArray[np.int64]:
        """[row], which group each belongs to."""
        return np.append(self.names.group, [extra.group for extra in self.extras]).astype(np.int64)

    def path(self, row: int) -> Path | None:
        return self.names.paths[row] if row < len(self.names.paths) else None

    def label(self, row: int) -> str:
        paths = len(self.names.paths)
        return self.names.labels[row] if row < paths else self.extras[row - paths].label

    def kind(self, row: int) -> str:
        paths = len(self.names.paths)
        return KINDS[self.names.kind[row]] if row < paths else self.extras[row - paths].kind

    def count(self, row: int) -> int:
        """How many terms a row stands for."""
        paths = len(self.names.paths)
        return 1 if row < paths else self.extras[row - paths].n_terms

    def order(self, column: int, descending: bool) -> npt.NDArray[np.int64]:
        """All rows, sorted by a column; ties by size, the largest first."""
        sizes = -np.abs(self.contributions)
        extra = np.arange(len(self.extras))
        key: npt.NDArray[Any]
        if column == PATH:
            key = np.append(self.names.rank, len(self.names.rank) + extra)
        elif column == KIND:
            key = np.append(self.names.kind, len(KINDS) + extra)
        else:
            key = self.contributions if column == CONTRIBUTION else -sizes
        return np.lexsort((sizes, -key if descending else key))

    def matching(self, text: str, kind: str | None) -> npt.NDArray[np.bool_]:
        """[row], whether a row has every word of `text` and the `kind`.

        A word that names a head asks for paths through it; "1.4" does not find 11.4.
        """
        paths = len(self.names.paths)
        keep = np.ones(len(self), dtype=bool)
        if kind is not None:
            keep[:paths] = self.names.kind == KINDS.index(kind)
            keep[paths:] = False
        for word in text.lower().split():
            keep &= np.array(self._having(word), dtype=bool)
        return keep

    def _having(self, word: str) -> list[bool]:
        extras = [word in f"{extra.label} {extra.kind}".lower() for extra in self.extras]
        try:
            head = Head.parse(word)
        except CircuitviewError:
            return [word in text for text in self.names.searched] + extras
        return [head in path.heads for path in self.names.paths] + [False] * len(extras)


def path_rows(expansion: "Expansion", known: PathNames | None = None) -> PathRows:
    """The rows of `expansion`; `known` are names made before, kept where they still hold."""
    grouping = expansion.grouping
    names, groups = known, grouping.names
    if names is None or names.paths is not expansion.paths or names.grouping != grouping:
        names = PathNames(expansion.paths, grouping)
    extras = _extras(expansion, names)
    contributions = np.append(expansion.contributions, [extra.contribution for extra in extras])
    subtotals = np.array([expansion.groups[name] for name in groups])
    total, n_terms = expansion.total, expansion.n_paths + 1
    return PathRows(names, tuple(extras), contributions, subtotals, total, n_terms)


def _extras(expansion: "Expansion", names: PathNames) -> list[ExtraRow]:
    """The same sums as the ledger's, without its walk over all paths at every change."""
    groups = names.groups
    extras = [ExtraRow("b_U", "constant", groups.index(BIASES), expansion.constant)]
    if not expansion.n_unlisted:
        return extras
    listed = np.bincount(names.group, expansion.contributions, len(groups))  # [group]
    n_listed = np.bincount(names.group, minlength=len(groups))  # [group]
    for place, name in enumerate(groups):
        n_rest = names.grouping.counts[name] - int(n_listed[place])
        if n_rest:
            rest = expansion.groups[name] - float(listed[place])
            rest -= expansion.constant if name == BIASES else 0.0
            label = f"{numbers.readable(n_rest)} more paths"
            extras.append(ExtraRow(label, "not listed", place, rest, n_rest))
    return extras
