"""A heatmap of one head: dest downwards, src to the right, dest 0 on top.

The half above the diagonal, where src would lie after dest, is left out by transparency; undefined
values are too. Levels are fixed: a pattern runs from 0 to 1, a value-weighted pattern (norms, never
negative) from 0 to its largest, scores and differences of two prompts are symmetric about zero.
The cells are one image, however long the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitview.core.names import AttentionMode, CircuitviewError
from circuitview.figures.figure import Curve, Figure, Group, Image, Item, Rect, Text, segment
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.text_width import CAP_HEIGHT, elide, tick_step, width
from circuitview.figures.theme import Theme, diverging, hex_colour, readable_on, sequential
from circuitview.session import numbers

_UNITS: dict[AttentionMode, str] = {
    "pattern": "weight",
    "scores": "score",
    "value-weighted": "norm",
}

_LABEL, _SMALL, _SMALLEST = 12.0, 11.0, 9.5
_LEAST_PITCH, _SLANTED_PITCH = 15.0, 22.0  # pixels from one axis label to the next
_SLANT = 0.72  # how far a slanted label reaches down, of its length
_LEAST_MARK = 7.0
_LONGEST_LABEL = 96.0
_GRID_FROM = 9.0  # pixels a cell, from which lines part the cells
_BAR_WIDTH, _BAR_ROOM = 10.0, 58.0
_LEAST_LIMIT = 0.1  # of a difference's colours: of weights, scores or norms


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the cells are, for whoever reads the figure: which one lies at a point.

    Attributes:
        left, top: the corner of the cell of dest 0 and src 0.
        side: of one cell, in pixels.
        count: how many tokens.
    """

    left: float
    top: float
    side: float
    count: int

    def at(self, x: float, y: float) -> tuple[int, int] | None:
        """The (dest, src) of the cell at a point, or None outside of the causal half."""
        if self.side <= 0:
            return None
        dest, src = int((y - self.top) // self.side), int((x - self.left) // self.side)
        return (dest, src) if 0 <= src <= dest < self.count else None


def heatmap_figure(
    values: npt.NDArray[np.floating],
    labels: Sequence[str],
    *,
    title: str,
    subtitle: str,
    mode: AttentionMode,
    theme: Theme,
    width: float,
    height: float,
    dest: int | None = None,
    source: int | None = None,
    description: str = "",
    difference: bool = False,
) -> Figure:
    """The heatmap of `values` [dest, src].

    Args:
        values: weights, scores or norms; what lies in the future is not looked at.
        labels: the tokens.
        title, subtitle: name the head, and say what is shown of it.
        mode: which levels and colours.
        theme: whose colours.
        width, height: of the figure, in pixels.
        dest: the selected dest, outlined.
        source: the selected src; with `dest`, its cell is marked.
        description: where the numbers come from.
        difference: whether the values are those of one prompt minus those of another.

    Raises:
        CircuitviewError: where the values are not square or the labels are not as many.
    """
    count = len(labels)
    if values.shape != (count, count):
        raise CircuitviewError(f"values are {list(values.shape)}, labels are {count}")
    head, top = heading(title, subtitle, theme, width)
    if count == 0:
        return Figure(width, height, theme.background, (head,), title, description)
    cells, label_room = _layout(labels, top, width, height)
    causal = np.tril(np.ones((count, count), dtype=bool))
    low, limit = levels(values, mode, difference)
    block = max(1, int(1 / cells.side))
    shown, causal = _strongest(values, causal, block)
    rgba = cell_colours(shown, is_signed(mode, difference), limit, theme)
    rgba[~causal, 3] = 0  # the future
    side = cells.side * block * len(rgba)
    body: list[Item] = [
        Image(cells.left, cells.top, side, side, rgba, smooth=cells.side < 1),
        *_grid(cells, theme),
        *_cell_numbers(values, rgba, cells, mode, theme),
        *_marks(cells, dest, source, theme),
    ]
    items: tuple[Item, ...] = (
        head,
        Group(tuple(body), id="cells", data=cells),
        _dest_axis(labels, cells, dest, label_room, theme),
        _src_axis(labels, cells, source, height, block, theme),
        _colour_bar(cells, mode, difference, (low, limit), theme),
    )
    return Figure(width, height, theme.background, items, title, description)


def _layout(labels: Sequence[str], top: float, wide: float, high: float) -> tuple[Cells, float]:
    """The cells, and the room for a label of dest."""
    count = len(labels)
    longest = max(width(label, _LABEL, bold=True) for label in _sample(labels))
    # The slanted labels of src are the first to be thinned out and to get a position in front.
    if count > (high - top - 60) / _SLANTED_PITCH:
        longest += width(f"{count} ", _LABEL, bold=True)
    label_room = min(longest + 2, _LONGEST_LABEL, wide / 4)
    left = MARGIN + 14 + label_room + 7
    upper = top + 4
    # The bar stands in the empty half above the diagonal, or to the right where that is too small.
    right = MARGIN if count >= 6 else MARGIN + _BAR_ROOM
    below = min(label_room, _LONGEST_LABEL) * _SLANT + 36
    room = max(min(wide - left - right, high - upper - below), float(count) / 64, 8.0)
    spare = max(wide - left - right - room, 0.0)
    return Cells(left + spare / 2, upper, room / count, count), label_room


def _sample(labels: Sequence[str]) -> Sequence[str]:
    return labels if len(labels) <= 200 else labels[:: len(labels) // 100]


def levels(
    values: npt.NDArray[np.floating], mode: AttentionMode, difference: bool = False
) -> tuple[float, float]:
    """The values [dest, src] of the first and the last colour; the future is not looked at.

    Differences reach as far as the largest, but no less than `_LEAST_LIMIT`: what rounding leaves
    of two equal rows is not to look like a change.
    """
    if mode == "pattern" and not difference:
        return 0.0, 1.0
    causal = values[np.tril_indices(len(values))]
    limit = float(np.abs(causal[np.isfinite(causal)]).max(initial=0.0))
    if difference:
        limit = max(limit, _LEAST_LIMIT)
    return (-limit, limit) if is_signed(mode, difference) else (0.0, limit)


def is_signed(mode: AttentionMode, difference: bool) -> bool:
    """Whether values lie on both sides of zero, so that the colours do."""
    return difference or mode == "scores"


def cell_colours(
    values: npt.NDArray[np.floating], signed: bool, limit: float, theme: Theme
) -> npt.NDArray[np.uint8]:
    """The RGBA of each cell, `limit` being the value of the last colour."""
    if signed:
        return diverging(values, theme, limit)
    return sequential(values, theme, 0.0, limit if limit > 0 else 1.0)


def _strongest(
    values: npt.NDArray[np.floating], causal: npt.NDArray[np.bool_], block: int
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.bool_]]:
    """The value of largest size in each block x block of causal cells, and where there is one.

    Averages would wash out the thin stripes that matter most in a long prompt.
    """
    if block == 1:
        return values, causal
    count = -(-len(values) // block)
    spare = count * block - len(values)
    sizes = np.pad(np.where(causal, np.abs(values), -1.0), (0, spare), constant_values=-1.0)
    sizes = np.nan_to_num(sizes, nan=-0.5)
    padded = np.pad(values, (0, spare))

    def blocks(array: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        four = array.reshape(count, block, count, block).swapaxes(1, 2)
        return four.reshape(count, count, block * block)  # [dest block, src block, cell]

    parted = blocks(sizes)
    best = parted.argmax(axis=2)[:, :, None]
    chosen = np.take_along_axis(blocks(padded), best, axis=2)[:, :, 0]
    return chosen, parted.max(axis=2) > -1.0


def _grid(cells: Cells, theme: Theme) -> list[Item]:
    if cells.side < _GRID_FROM:
        return []
    bottom = cells.top + cells.count * cells.side
    lines: list[Item] = []
    for place in range(1, cells.count):
        x, y = cells.left + place * cells.side, cells.top + place * cells.side
        for line in (segment(cells.left, y, x, y), segment(x, y, x, bottom)):
            lines += [Curve(line, stroke=theme.background)]
    return lines


def _cell_numbers(
    values: npt.NDArray[np.floating],
    rgba: npt.NDArray[np.uint8],
    cells: Cells,
    mode: AttentionMode,
    theme: Theme,
) -> list[Item]:
    """The value in each cell, where all of them fit."""
    if cells.count > 24:
        return []
    write = numbers.weight if mode == "pattern" else numbers.logits
    written: dict[tuple[int, int], str] = {}
    for dest in range(cells.count):
        for src in range(dest + 1):
            text = write(float(values[dest, src]))
            written[dest, src] = "0" if text == "0.00" else text
    widest = max(width(text, 1.0) for text in written.values())
    size = min(_LABEL, cells.side * 0.36, (cells.side - 4) / widest)
    if size < _SMALLEST:
        return []
    return [
        Text(
            cells.left + (src + 0.5) * cells.side,
            cells.top + (dest + 0.5) * cells.side + size * CAP_HEIGHT / 2,
            text,
            size,
            readable_on(hex_colour(rgba[dest, src]), theme),
            anchor="middle",
        )
        for (dest, src), text in written.items()
    ]


def _marks(cells: Cells, dest: int | None, source: int | None, theme: Theme) -> list[Item]:
    """The outline of the selected dest, and of the cell where the selected src meets it."""
    marks: list[Item] = []
    spare = 1.0 if cells.side < 6 else 0.0
    if dest is not None and 0 <= dest < cells.count:
        y = cells.top + dest * cells.side - spare
        marks.append(
            Rect(
                cells.left - spare,
                y,
                (dest + 1) * cells.side + 2 * spare,
                cells.side + 2 * spare,
                stroke=theme.text,
                stroke_width=1.5,
            )
        )
        if source is not None and 0 <= source <= dest:
            size = max(cells.side, _LEAST_MARK)
            x = cells.left + (source + 0.5) * cells.side - size / 2
            y = cells.top + (dest + 0.5) * cells.side - size / 2
            marks.append(Rect(x, y, size, size, stroke=theme.accent, stroke_width=2.5))
    return marks


def _ticks(count: int, side: float, chosen: int | None, pitch: float) -> tuple[list[int], bool]:
    """Which positions are labelled, the chosen one among them; and whether some are left out."""
    step = tick_step(count, count * side, pitch)
    ticks = list(range(0, count, step))
    if chosen is not None and 0 <= chosen < count:
        ticks = [tick for tick in ticks if abs(tick - chosen) * side >= pitch or step == 1]
        ticks = sorted({*ticks, chosen})
    return ticks, step > 1


def _dest_axis(
    labels: Sequence[str], cells: Cells, dest: int | None, room: float, theme: Theme
) -> Group:
    ticks, sparse = _ticks(cells.count, cells.side, dest, _LEAST_PITCH)
    right = cells.left - 7
    items: list[Item] = []
    for tick in ticks:
        y = cells.top + (tick + 0.5) * cells.side
        items += _tick_label(labels[tick], tick, sparse, right, y, room, tick == dest, theme)
        if sparse:
            line = segment(cells.left - 4, y, cells.left - 1, y)
            items.append(Curve(line, stroke=theme.muted, stroke_width=0.8))
    middle = cells.top + cells.count * cells.side / 2
    x = right - room - 8
    items.append(Text(x, middle, "dest", _SMALL, theme.muted, "middle", bold=True, rotation=-90))
    return Group(tuple(items), id="dest-axis")


def _src_axis(
    labels: Sequence[str],
    cells: Cells,
    source: int | None,
    high: float,
    block: int,
    theme: Theme,
) -> Group:
    bottom = cells.top + cells.count * cells.side
    flat = cells.count <= 40 and all(
        width(label, _LABEL, bold=True) <= cells.side - 4 for label in labels
    )
    pitch = _LEAST_PITCH if flat else _SLANTED_PITCH
    ticks, sparse = _ticks(cells.count, cells.side, source, pitch)
    room = min((high - bottom - 34) / _SLANT, _LONGEST_LABEL)
    reach = 16.0
    items: list[Item] = []
    for tick in ticks:
        x = cells.left + (tick + 0.5) * cells.side
        color, bold = (theme.text, True) if tick == source else (theme.muted, False)
        if flat:
            items.append(Text(x, bottom + 16, labels[tick], _LABEL, color, "middle", bold=bold))
            continue
        label = f"{tick} {labels[tick]}" if sparse else labels[tick]
        shown = elide(label, _LABEL, room, bold)
        place = x + 4, bottom + 12
        items.append(Text(*place, shown, _LABEL, color, "end", bold=bold, rotation=-45))
        reach = max(reach, 12 + width(shown, _LABEL, bold) * _SLANT)
        if sparse:
            line = segment(x, bottom + 1, x, bottom + 4)
            items.append(Curve(line, stroke=theme.muted, stroke_width=0.8))
    middle = cells.left + cells.count * cells.side / 2
    y = min(bottom + reach + 18, high - 8)
    if block > 1:
        note = f"each dot is the strongest of {block} × {block} cells"
        items.append(Text(middle, min(y + 16, high - 6), note, _SMALL, theme.muted, "middle"))
        y = min(y, high - 22)
    items.append(Text(middle, y, "src", _SMALL, theme.muted, "middle", bold=True))
    return Group(tuple(items), id="src-axis")


def _tick_label(
    label: str,
    tick: int,
    sparse: bool,
    right: float,
    y: float,
    room: float,
    chosen: bool,
    theme: Theme,
) -> list[Item]:
    """A label of dest, its position in front of it where not every token has a label."""
    color = theme.text if chosen else theme.muted
    text = f"{tick} {label}" if sparse else label
    shown = elide(text, _LABEL, room, bold=chosen)
    baseline = y + _LABEL * CAP_HEIGHT / 2
    return [Text(right, baseline, shown, _LABEL, color, "end", bold=chosen)]


def _colour_bar(
    cells: Cells, mode: AttentionMode, difference: bool, ends: tuple[float, float], theme: Theme
) -> Group:
    side = cells.side * cells.count
    inside = cells.count >= 6
    length = min(side * 0.42, 130.0) if inside else min(side * 0.8, 130.0)
    left = cells.left + side - _BAR_ROOM + 16 if inside else cells.left + side + 14
    top = cells.top + 18
    low, limit = ends
    signed = is_signed(mode, difference)
    ramp = np.linspace(limit, low, 128)[:, None]
    rgba = cell_colours(ramp, signed, limit, theme)
    bar = Image(left, top, _BAR_WIDTH, length, rgba, smooth=True)
    frame = Rect(left, top, _BAR_WIDTH, length, stroke=theme.faint, stroke_width=1)
    if signed:
        top_mark, end_mark = numbers.logits(limit, signed=True), numbers.logits(low, signed=True)
        marks = [(0.0, top_mark), (0.5, "0"), (1.0, end_mark)]
    elif mode == "pattern":
        marks = [(0.0, "1"), (0.5, "0.5"), (1.0, "0")]
    else:
        marks = [(0.0, numbers.logits(limit)), (1.0, "0")]
    items: list[Item] = [bar, frame]
    for share, text in marks:
        y = top + share * length + _SMALL * CAP_HEIGHT / 2
        items.append(Text(left + _BAR_WIDTH + 5, y, text, _SMALL, theme.muted))
    items.append(Text(left, top - 9, _UNITS[mode], _SMALL, theme.muted))
    return Group(tuple(items), id="colour-bar")
