"""The numbers of a head x head matrix: every pair of heads, and each head alone, once.

All arrays are [lower, upper], with the later head below; above the diagonal there is nothing. Ten
thousand pairs are gone through once, and put into words only where somebody points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.figures.effect_words import with_error, written

if TYPE_CHECKING:
    from circuitview.core.ablation.table import Row

PairValue = Literal["effect", "interaction"]

_BITS = 32  # of a number that stands for a head: layer, then head


@dataclass(frozen=True, slots=True)
class PairCell:
    """What one cell stands for: a head with itself is that head alone."""

    site: Site
    value: float | None
    title: str


@dataclass(frozen=True, eq=False)
class PairGrid:
    """The rows by their heads.

    Attributes:
        heads: in their order.
        rows: those of one head or of two.
        places: [n, n], which of `rows` a cell is; −1 where it is not measured.
        effects: [n, n] ablated − clean; NaN where it is not measured.
        metric: what is measured.
        show: what the cells show.
    """

    heads: tuple[Head, ...]
    rows: tuple["Row", ...]
    places: npt.NDArray[np.intp]
    effects: npt.NDArray[np.float64]
    metric: MetricName
    show: PairValue

    @cached_property
    def interactions(self) -> npt.NDArray[np.float64]:
        """[n, n] effect(pair) − effect(a) − effect(b); NaN on the diagonal, and where one of the
        three is not measured."""
        alone = self.effects.diagonal()
        found = self.effects - alone[:, None] - alone[None, :]
        np.fill_diagonal(found, np.nan)
        return found

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """[n, n] what colours the cells; NaN for no colour."""
        return self.effects if self.show == "effect" else self.interactions

    @cached_property
    def limit(self) -> float:
        """The size of value that has the last colour."""
        sizes = np.abs(self.values)
        return float(sizes[np.isfinite(sizes)].max(initial=0.0))

    def cell(self, lower: int, upper: int) -> PairCell | None:
        """What stands there; None where nothing is measured."""
        place = int(self.places[lower, upper])
        if place < 0:
            return None
        row = self.rows[place]
        words = f"{row.site}: effect {with_error(row.effect, row.stderr, self.metric)}"
        between = float(self.interactions[lower, upper])
        known = lower != upper and min(self.places[[lower, upper], [lower, upper]]) >= 0
        if known:
            words += f", interaction {written(between, self.metric)}"
        value: float | None = row.effect
        if lower != upper and self.show == "interaction":
            value = between if known else None
        return PairCell(row.site, value, words)

    def at(self, across: float, down: float) -> PairCell | None:
        """What stands at these shares of the width and of the height."""
        n = len(self.heads)
        upper, lower = int(across * n), int(down * n)
        return self.cell(lower, upper) if 0 <= upper <= lower < n else None

    def largest(self, most: int) -> list[tuple[float, PairCell]]:
        """The pairs with the largest |value|, and the values."""
        sizes = np.abs(self.values)
        sizes = np.where(np.isfinite(sizes) & ~np.eye(len(self.heads), dtype=bool), sizes, -1.0)
        flat = sizes.ravel()
        kept = min(most, int((flat >= 0).sum()))
        found = np.argpartition(-flat, kept - 1)[:kept].tolist() if kept else []
        ranked = sorted(found, key=lambda place: (-flat[place], place))
        listed: list[tuple[float, PairCell]] = []
        for place in ranked:
            lower, upper = divmod(place, len(self.heads))
            cell = self.cell(lower, upper)
            assert cell is not None
            listed.append((float(self.values[lower, upper]), cell))
        return listed


def pair_grid(rows: Sequence["Row"], metric: MetricName, show: PairValue) -> PairGrid:
    """The rows of `rows` whose site is one head or two; others are left out."""
    kept = tuple(row for row in rows if _is_pair(row.site))
    ends = np.empty((len(kept), 2), np.int64)
    # Numbers in place of Heads: hashing twenty thousand of these is what would take long.
    ends[:, 0] = [(s.heads[-1].layer << _BITS) | s.heads[-1].head for s in (r.site for r in kept)]
    ends[:, 1] = [(s.heads[0].layer << _BITS) | s.heads[0].head for s in (r.site for r in kept)]
    codes, at = np.unique(ends, return_inverse=True)
    at = at.reshape(ends.shape)
    n = len(codes)
    places = np.full((n, n), -1, np.intp)
    effects = np.full((n, n), np.nan)
    places[at[:, 0], at[:, 1]] = np.arange(len(kept))
    effects[at[:, 0], at[:, 1]] = [row.effect for row in kept]
    heads = tuple(Head(code >> _BITS, code & ((1 << _BITS) - 1)) for code in codes.tolist())
    return PairGrid(heads, kept, places, effects, metric, show)


def _is_pair(site: Site) -> bool:
    return 1 <= len(site.heads) <= 2 and not (site.paths or site.mlps or site.orders)
