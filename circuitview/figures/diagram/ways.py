"""The ways of a grid's bands, as columns of numbers: thousands of bands are placed at once.

A way is a list of stops: where a band starts, the cells of its steps, the end. Between stops that
lie far apart it rides the lane of the residual stream. Arrays hold one number for each stop [stop],
band after band; what stands there for a gap belongs to the way from a stop to the next.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.path import Path
from circuitview.figures.diagram.columns import Place, end_of
from circuitview.figures.diagram.geometry import Band, Constant
from circuitview.figures.diagram.lane import Numbers, stack
from circuitview.figures.diagram.shown import Shown

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion
    from circuitview.figures.diagram.grid import Grid

SQUEEZED = 3.0  # times: bands in a full lane lie upon one another rather than being all fine
_STRAIGHT = 2.2  # stops nearer to one another than so many turns are joined straight


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Where the bands at one place are stacked (pixels).

    Attributes:
        top: of the stack, or None to stack them about `middle`.
        height: they lie upon one another where they are thicker than this; under a top, only if it
            is not 0.
    """

    top: float | None
    middle: float = 0.0
    height: float = 0.0


class Ways:
    """The ways of the remainder, b_U and the shown paths; the smallest first, so that strong ones
    lie on top.

    Attributes:
        whats, values, sizes: what each band is, its contribution and the size of that [band].
        places: the distinct places at which they stop.
        passing: how much passes each of these [place] (logits); passing_net: their sum.
        depth: how deep the rides of paths reach, none upon another (logits).
    """

    def __init__(self, expansion: "Expansion", shown: Shown, grid: "Grid") -> None:
        self.whats: list[Path | Constant] = []
        values: list[float] = []
        if shown.remainder:
            self.whats.append("remainder")
            values.append(shown.rest)
        if expansion.constant:
            self.whats.append("b_U")
            values.append(expansion.constant)
        listed = np.array(shown.places, dtype=np.intp)
        listed = listed[np.argsort(np.abs(expansion.contributions[listed]), kind="stable")]
        self.whats += [expansion.paths[place] for place in listed.tolist()]
        self.values = np.array([*values, *expansion.contributions[listed].tolist()])
        self.sizes = np.abs(self.values)
        self._find_stops(grid)
        self._find_rides(grid)

    def _find_stops(self, grid: "Grid") -> None:
        known: dict[Place, int] = {}
        at: list[int] = []
        counts: list[int] = []
        for what, value in zip(self.whats, self.values.tolist(), strict=True):
            way: list[Place] = [what] if isinstance(what, str) else [what.source, *what.steps]
            way.append(end_of(value))
            at += [known.setdefault(place, len(known)) for place in way]
            counts.append(len(way))
        self.places: list[Place] = list(known)
        self._at = np.array(at, dtype=np.intp)  # [stop], the place
        self._stop = np.cumsum([0, *counts])  # [band + 1], where its stops begin
        self._band = np.repeat(np.arange(len(counts)), counts)  # [stop]
        spots = np.array([grid.at(place) for place in self.places]).reshape(-1, 2)
        self._x, self._y = spots[self._at, 0], spots[self._at, 1]  # [stop]
        self.passing = self._per_place(self.sizes)
        self.passing_net = self._per_place(self.values)

    def _per_place(self, numbers: Numbers) -> dict[Place, float]:
        sums = np.bincount(self._at, numbers[self._band], len(self.places))
        return dict(zip(self.places, sums.tolist(), strict=True))

    def _find_rides(self, grid: "Grid") -> None:
        """Between stops that lie far enough apart; the remainder's lies on top of all others."""
        turn = grid.turn
        last = np.zeros(len(self._x), np.bool_)
        last[self._stop[1:] - 1] = True
        rides = ~last
        rides[:-1] &= np.diff(self._x) > _STRAIGHT * turn
        self._rides = np.flatnonzero(rides)  # [ride], the stop where it begins
        self._start, self._end = self._x[self._rides] + turn, self._x[self._rides + 1] - turn
        # What starts at the embedding falls only behind the names of the rows.
        first = self._x[self._rides] < grid.names_end
        self._start[first] = np.minimum(self._start[first], grid.names_end)
        self._end[first] = np.maximum(self._end[first], grid.names_end)
        ahead = ~last & ~rides & (self._x < grid.names_end)
        self._ahead = np.flatnonzero(ahead)  # the stops of those that ride nowhere
        self._names_end = grid.names_end
        rest = bool(self.whats) and self.whats[0] == "remainder"
        self._remainder = (
            (self._band[self._rides] == 0) if rest else np.zeros(len(self._rides), np.bool_)
        )
        paths = ~self._remainder
        self._middle = np.zeros(len(self._rides))  # [ride], logits until settled, then pixels
        self._middle[paths], self.depth = stack(
            self._start[paths],
            self._end[paths],
            self.sizes[self._band[self._rides]][paths],
        )

    def settle(self, rest: float, part: float, top: float, scale: float) -> None:
        """Turn the heights of rides from logits into pixels. The remainder rides on top; under it
        the others, upon one another where there is less room than they reach deep.

        Args:
            rest: the size of the remainder (logits).
            part: of the depth that there is room for.
            top: of the lane (pixels).
            scale: pixels a logit.
        """
        depth = np.where(self._remainder, rest / 2, rest + self._middle * part)
        self._middle = top + depth * scale

    def bands(self, slots: dict[Place, Slot], scale: float) -> tuple[Band, ...]:
        """The bands, stacked at each place in the order of where they come from; where they start,
        of where they go."""
        height = self._heights(slots, scale)
        # Each stop is followed by the ride that begins there, or by the way past the names.
        rides = np.zeros(len(self._x), np.intp)
        rides[self._rides] = rides[self._ahead] = 1
        row = np.arange(len(rides)) + np.cumsum(rides) - rides
        table = np.empty((len(rides) + int(rides.sum()), 4))
        table[row] = np.stack([self._x, height, self._x, height], 1)
        table[row[self._rides] + 1] = np.stack(
            [self._start, self._middle, self._end, self._middle], 1
        )
        start, level = self._x[self._ahead], height[self._ahead]
        end = np.full(len(start), self._names_end)
        table[row[self._ahead] + 1] = np.stack([(start + end) / 2, level, end, level], 1)
        stops: list[tuple[float, float, float, float]] = list(zip(*table.T.tolist(), strict=True))
        first = [*row[self._stop[:-1]].tolist(), len(stops)]
        thickness = (self.sizes * scale).tolist()
        return tuple(
            Band(what, value, thick, tuple(stops[begin:end]))
            for what, value, thick, begin, end in zip(
                self.whats, self.values.tolist(), thickness, first[:-1], first[1:], strict=True
            )
        )

    def _heights(self, slots: dict[Place, Slot], scale: float) -> Numbers:
        """How high each band is at each of its stops [stop] (pixels)."""
        order = np.lexsort((self._beside(), self._at))
        thick = (self.sizes[self._band] * scale)[order]
        at = self._at[order]
        whole = np.bincount(at, thick, len(self.places))
        # From the top of its place's stack to the middle of each band.
        down = np.cumsum(thick) - thick / 2 - (np.cumsum(whole) - whole)[at]
        tops, parts, low = np.zeros(len(whole)), np.ones(len(whole)), np.full(len(whole), np.inf)
        for number, (place, high) in enumerate(zip(self.places, whole.tolist(), strict=True)):
            slot = slots[place]
            if high > 0 and (slot.top is None or slot.height > 0):
                parts[number] = min(1.0, slot.height / high)
            middle = slot.middle - high / 2 * parts[number]
            tops[number] = middle if slot.top is None else slot.top
            if slot.top is not None and slot.height > 0:
                low[number] = slot.top + parts[number] * high
        found = np.empty(len(order))
        spots = np.minimum(tops[at] + down * parts[at], low[at] - thick / 2)
        # None reaches over the ends of a bar that has one.
        found[order] = np.where(np.isinf(low[at]), spots, np.maximum(spots, tops[at] + thick / 2))
        return found

    def _beside(self) -> Numbers:
        """[stop], the height from which a band comes; where it starts, to which it goes."""
        ahead = np.roll(self._y, -1)  # of a gap, by the stop before it
        before: Numbers = np.roll(self._y, 1)
        ahead[self._rides] = before[self._rides + 1] = self._middle
        first = self._stop[:-1]
        before[first] = ahead[first]
        return before
