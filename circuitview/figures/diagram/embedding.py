"""The nodes where a grid's paths and its remainder start: the beginning of the lane."""

from typing import TYPE_CHECKING

from circuitview.core.names import POSITION, TOKEN
from circuitview.figures.diagram.columns import Place
from circuitview.figures.diagram.tokens import TokenColumn
from circuitview.figures.diagram.ways import SQUEEZED, Slot, Ways

if TYPE_CHECKING:
    from circuitview.figures.diagram.grid import Grid

# Between the nodes, in lines: two lines of words stand on the left of each, or one on the right,
# under it.
_TWO_LINES, _ONE_LINE = 1.75, 1.05
_LEFT = 1.7  # gaps of the frame, at least, where words stand on the left
_LEAST = 0.3  # of the lane's height: what the bars keep where words would take it all


class Embedding:
    """The stack of these nodes. As in a full lane, bands of paths lie upon one another there rather
    than being all fine; the remainder is one band and never does.

    Attributes:
        sizes: how much starts at each node (logits), from top to bottom.
    """

    def __init__(self, ways: Ways, tokens: TokenColumn | None, grid: "Grid") -> None:
        places: tuple[Place, ...] = (TOKEN, POSITION, "remainder")
        sums = {place: ways.passing.get(place, 0.0) for place in places}
        if tokens is not None:  # their strands hold unlisted paths too
            sums[TOKEN] = max(sums[TOKEN], sum(abs(net) for _, net in tokens.parts))
        self.sizes = {
            place: size
            for place, size in sums.items()
            if size > 0 or place in grid.sources or place in ways.passing
        }
        self._rest = sums["remainder"]
        self._paths = sum(self.sizes.values()) - self._rest
        self._frame, self._passing = grid.frame, ways.passing
        gaps = sum(self._gap(place) for place in self.sizes)
        self._room = max(grid.lane_room - gaps, _LEAST * grid.lane_room)

    def _gap(self, place: Place) -> float:
        """Under a node (pixels)."""
        frame = self._frame
        if frame.words == "left":
            return max(_LEFT * frame.gap, _TWO_LINES * frame.line)
        silent = place == TOKEN and frame.tokens != "one"
        return frame.gap if silent else max(frame.gap, _ONE_LINE * frame.line)

    @property
    def limit(self) -> tuple[float, float]:
        """The room that there is, and how much has to fit into it (pixels, logits)."""
        return self._room, self._rest + self._paths / SQUEEZED

    def slots(self, scale: float) -> dict[Place, tuple[Slot, float]]:
        """Where bands are stacked at each node, and how tall its bar is."""
        room = self._room - self._rest * scale
        part = min(1.0, room / (self._paths * scale)) if self._paths > 0 else 1.0
        y = self._frame.top + self._frame.lane_pad
        found = {}
        for place, size in self.sizes.items():
            kept = 1.0 if place == "remainder" else part
            squeezed = kept * scale * self._passing.get(place, 0.0)
            found[place] = Slot(y, height=squeezed), kept * scale * size
            y += kept * scale * size + self._gap(place)
        return found
