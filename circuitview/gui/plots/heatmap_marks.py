"""What stands around and upon the cells of a heatmap that can be zoomed, as items of a Figure.

Everything is worked out for the part that is in view: token labels thinned to what fits, grid lines
and values only where cells are large enough.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitview.figures.figure import Box, Curve, Group, Item, Rect, Text
from circuitview.figures.text_width import CAP_HEIGHT, elide, tick_step, width
from circuitview.figures.theme import Theme, hex_colour, readable_on
from circuitview.session import numbers

LABEL, SMALL = 12.0, 11.0
LEAST_PITCH = 13.5  # pixels from one label to the next
_SLANTED_PITCH = 17.0
LONGEST_LABEL = 96.0
_GRID_FROM = 9.0  # pixels a cell
_COUNTABLE = 2  # of so many tokens one is labelled, and the eye still counts
_SLANT = 0.72  # how far down a label under 45 degrees reaches, of its length
_MOST_VALUES = 700  # written into cells at a time


@dataclass(frozen=True, slots=True)
class View:
    """Which cells are in view, and where.

    Attributes:
        box: the pixels that the cells may cover.
        src, dest: what lies at the box's upper left corner, in cells.
        side: of one cell (pixels).
        count: how many tokens.
    """

    box: Box
    src: float
    dest: float
    side: float
    count: int

    def x(self, src: float) -> float:
        return self.box.left + (src - self.src) * self.side

    def y(self, dest: float) -> float:
        return self.box.top + (dest - self.dest) * self.side

    def at(self, x: float, y: float) -> tuple[int, int] | None:
        """The (dest, src) of the cell at a point; None outside the causal half."""
        if not self.box.contains(Box(x, y, x, y)):
            return None
        dest = math.floor((y - self.box.top) / self.side + self.dest)
        src = math.floor((x - self.box.left) / self.side + self.src)
        return (dest, src) if 0 <= src <= dest < self.count else None

    def visible_src(self) -> range:
        return self._visible(self.src, self.box.right - self.box.left)

    def visible_dest(self) -> range:
        return self._visible(self.dest, self.box.bottom - self.box.top)

    def _visible(self, first: float, pixels: float) -> range:
        # A hair more than the first edge, or a cell of which a rounding error is in view counts.
        last = math.ceil(first + pixels / self.side - 1e-6)
        return range(max(0, math.floor(first + 1e-6)), min(self.count, last))


@dataclass(frozen=True, slots=True)
class Margins:
    """The room beside the cells: for dest labels, and under them for src labels (pixels)."""

    left: float
    bottom: float
    label: float


def margins(labels: Sequence[str], wide: float, high: float) -> Margins:
    """The margins that these token labels need in a plot of that size."""
    sample = labels if len(labels) <= 200 else labels[:: len(labels) // 100]
    longest = max((width(label, LABEL, bold=True) for label in sample), default=0.0)
    if len(labels) * LEAST_PITCH > 0.7 * high:
        longest += width(f"{len(labels)} ", LABEL)
    room = min(longest + 2, LONGEST_LABEL, max(wide, high) / 4)
    return Margins(room + 24, room * _SLANT + 14, room)


def labels_shown(
    cells: range, side: float, chosen: int | None, pitch: float = LEAST_PITCH
) -> tuple[list[int], bool]:
    """Which `cells` in view are labelled, the chosen one among them.

    Also whether so many are left out that a label needs its position in front.
    """
    step = tick_step(len(cells), len(cells) * side, pitch)
    ticks = [place for place in cells if place % step == 0]
    if chosen is not None and chosen in cells and chosen not in ticks:
        ticks = [place for place in ticks if abs(place - chosen) * side >= pitch]
        ticks = sorted([*ticks, chosen])
    return ticks, step > _COUNTABLE


def axes(
    view: View,
    labels: Sequence[str],
    dest: int | None,
    source: int | None,
    room: float,
    theme: Theme,
) -> Iterator[Item]:
    """The token labels on both sides, dest to the left and src below, the chosen ones bold."""
    ticks, sparse = labels_shown(view.visible_dest(), view.side, dest)
    for tick in ticks:
        y = view.y(tick + 0.5)
        if view.box.top <= y <= view.box.bottom:
            text = f"{tick} {labels[tick]}" if sparse else labels[tick]
            yield from _dest_label(text, view.box.left, y, room, tick == dest, theme)
    middle = (view.box.top + min(view.box.bottom, view.y(view.count))) / 2
    x = max(view.box.left - 7 - room - 6, SMALL)
    yield Text(x, middle, "dest", SMALL, theme.muted, "middle", bold=True, rotation=-90)
    yield from _src_axis(view, labels, source, room, theme)


def _dest_label(
    text: str, left: float, y: float, room: float, chosen: bool, theme: Theme
) -> Iterator[Item]:
    shown = elide(text, LABEL, room, bold=chosen)
    color = theme.text if chosen else theme.muted
    yield Text(left - 7, y + LABEL * CAP_HEIGHT / 2, shown, LABEL, color, "end", bold=chosen)
    yield Curve((("M", left - 4, y), ("L", left - 1, y)), stroke=theme.muted, stroke_width=0.8)


def _src_axis(
    view: View, labels: Sequence[str], source: int | None, room: float, theme: Theme
) -> Iterator[Item]:
    ticks, sparse = labels_shown(view.visible_src(), view.side, source, _SLANTED_PITCH)
    bottom = min(view.box.bottom, view.y(view.count))
    texts = {tick: f"{tick} {labels[tick]}" if sparse else labels[tick] for tick in ticks}
    pitch = view.side if not sparse else _SLANTED_PITCH
    flat = all(width(text, LABEL, bold=True) <= pitch - 4 for text in texts.values())
    for tick, text in texts.items():
        x = view.x(tick + 0.5)
        if not view.box.left <= x <= view.box.right:
            continue
        chosen = tick == source
        color = theme.text if chosen else theme.muted
        yield Curve((("M", x, bottom + 1), ("L", x, bottom + 4)), stroke=theme.muted)
        if flat:
            yield Text(x, bottom + 17, text, LABEL, color, "middle", bold=chosen)
        else:
            # A slanting label ends under its cell; far to the left there is less room for it.
            space = min(room, (x - 2) / _SLANT)
            shown = elide(text, LABEL, space, bold=chosen)
            place = x + 4, bottom + 13
            yield Text(*place, shown, LABEL, color, "end", bold=chosen, rotation=-45)
    right = min(view.box.right, view.x(view.count))
    yield Text(right + 4, bottom + 13, "src", SMALL, theme.muted, bold=True)


def marks(view: View, dest: int | None, source: int | None, theme: Theme) -> Item:
    """The outline of the dest row and of the source column, the cell where they meet in bold."""
    items: list[Item] = []
    whole = Rect(
        view.box.left - 2,
        view.box.top - 2,
        view.box.right - view.box.left + 4,
        view.box.bottom - view.box.top + 4,
    )
    spare = 1.0 if view.side < 6 else 0.0
    thick = view.side + 2 * spare
    if source is not None and 0 <= source < view.count:
        x, y = view.x(source) - spare, view.y(source) - spare
        long = view.y(view.count) - y + spare
        items.append(
            Rect(x, y, thick, long, stroke=theme.accent, stroke_width=1.5, dash=(4.0, 3.0))
        )
    if dest is not None and 0 <= dest < view.count:
        x, y = view.x(0) - spare, view.y(dest) - spare
        long = (dest + 1) * view.side + 2 * spare
        items.append(Rect(x, y, long, thick, stroke=theme.text, stroke_width=1.5))
        if source is not None and 0 <= source <= dest:
            x = view.x(source) - spare
            items.append(Rect(x, y, thick, thick, stroke=theme.accent, stroke_width=2.5))
    return Group(tuple(items), id="marks", clip=whole)


def grid(view: View, theme: Theme) -> Iterator[Item]:
    """Lines between the cells, where those are large enough."""
    if view.side < _GRID_FROM:
        return
    for dest in view.visible_dest():
        y = view.y(dest)
        right = min(view.x(dest), view.box.right)
        if dest and y > view.box.top and right > view.box.left:
            yield Curve((("M", view.box.left, y), ("L", right, y)), stroke=theme.background)
    bottom = min(view.box.bottom, view.y(view.count))
    for src in view.visible_src():
        x = view.x(src)
        top = max(view.y(src), view.box.top)
        if src and x > view.box.left and top < bottom:
            yield Curve((("M", x, top), ("L", x, bottom)), stroke=theme.background)


def cell_values(
    view: View,
    values: npt.NDArray[np.float64],
    rgba: npt.NDArray[np.uint8],
    decimals_of_weight: bool,
    theme: Theme,
) -> list[Item]:
    """The value in each cell in view, where all of them fit, else nothing."""
    write = numbers.weight if decimals_of_weight else numbers.logits
    size = min(LABEL, view.side * 0.36)
    dests, srcs = view.visible_dest(), view.visible_src()
    if size < 9.5 or len(dests) * len(srcs) > _MOST_VALUES:
        return []
    shown: list[Item] = []
    for dest in dests:
        for src in range(srcs.start, min(dest + 1, srcs.stop)):
            text = write(float(values[dest, src]))
            if width(text, size) > view.side - 3:
                return []
            if text == "0.00":
                continue  # the paler the cell, the less it says
            color = readable_on(hex_colour(rgba[dest, src]), theme)
            x, y = view.x(src + 0.5), view.y(dest + 0.5) + size * CAP_HEIGHT / 2
            shown.append(Text(x, y, text, size, color, "middle"))
    return shown
