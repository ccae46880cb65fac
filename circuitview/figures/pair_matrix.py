"""Heads against heads: what taking away two of them together does.

The half under the diagonal holds every pair once. Its colour is the effect of removing both, or
what that is more than the two single effects together: the interaction, which is 0 where heads work
side by side. The diagonal holds the single effects. Levels are symmetric about zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.figures.effect_words import held, with_unit, written
from circuitview.figures.enlarge import enlarged, enlargement
from circuitview.figures.figure import Curve, Figure, Group, Image, Item, Rect, Text, segment
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.pair_axes import (
    NAMED_FROM,
    Place,
    label_width,
    names_flat,
    pair_axes,
)
from circuitview.figures.pair_grid import PairCell, PairGrid, PairValue, pair_grid
from circuitview.figures.text_width import CAP_HEIGHT, OTHER_FONT, elide, width
from circuitview.figures.theme import Theme, amount_colour, diverging, hex_colour, readable_on, rgb
from circuitview.session import numbers

if TYPE_CHECKING:
    from circuitview.core.ablation.table import Row

_SIZE, _SMALL, _SMALLEST = 12.0, 11.0, 8.5
_MOST_CELLS = 32  # heads; the cells of more are one image
_GRID_FROM = 5.0  # pixels a cell, from which lines part the cells
_BAR_WIDTH = 12.0
_LINE = 16.0  # pixels from one line of the key to the next
_SHORTEST, _LONGEST = 60.0, 140.0  # pixels, of the colour bar
_LEVELS = 72.0  # pixels, for the colour bar with its levels
_LEAST_SHARE = 0.5  # of the side that cells could have, where words beside them take room
_SHORT_SHARE = 0.3  # the same, for the one word without which the scale can't be read
_KEY_GAP = 24.0  # pixels from the cells to the key beside them
_WIDER = 1.7  # times its height a cell may be wide, where room is left beside it
_LARGEST = 76.0  # pixels, of a cell's side: three heads need no more
_LISTED = 6  # pairs in words beside the cells
_KEY_ROOM = 310.0  # pixels from the top, for heading and colour bar
_WORDS = {
    "effect": "effect of removing both",
    "interaction": "interaction: both − one − the other",
}


def pair_figure(
    rows: Sequence["Row"],
    *,
    metric: MetricName,
    clean: float,
    frozen: bool,
    theme: Theme,
    width: float,
    height: float,
    show: PairValue = "effect",
    title: str = "",
    note: str = "",
    marked: Site | None = None,
    description: str = "",
) -> Figure:
    """The head x head matrix of `rows`.

    Args:
        rows: sites of one head and of two; others are left out. What is not measured is empty.
        metric: what is measured.
        clean: it, of the unchanged model.
        frozen: whether all else was held.
        theme: whose colours.
        width, height: pixels.
        show: effect(pair), or effect(pair) − effect(a) − effect(b), with an empty diagonal.
        title, note: what was measured, and of which run.
        marked: the selected site, outlined.
        description: where the numbers come from.
    """
    factor = enlargement(width, height)
    wide, high = width / factor, height / factor
    head, top = heading(title, note, theme, wide)
    grid = pair_grid(rows, metric, show)
    heads = grid.heads
    if not heads:
        text = Text(wide / 2, (top + high) / 2, "nothing measured yet", 12, theme.muted, "middle")
        made = Figure(wide, high, theme.background, (head, text), title, description)
        return enlarged(made, factor)
    words, place = _fitted(heads, _key_words(metric, show, clean, frozen), top, wide, high)
    matrix = _raster if len(heads) > _MOST_CELLS else _cells
    items: tuple[Item, ...] = (
        head,
        matrix(grid, place, marked, theme),
        *pair_axes(heads, place, theme),
        _key(grid, words, place.key, wide, theme),
        *_largest(grid, place.left + len(heads) * place.across, high, wide, theme),
    )
    made = Figure(wide, high, theme.background, items, title, description)
    return enlarged(made, factor)


def _fitted(
    heads: Sequence[Head], words: tuple[str, ...], top: float, wide: float, high: float
) -> tuple[tuple[str, ...], Place]:
    """As many of the key's words as leave most of the room to the cells, and where all stands; the
    last of `words` is what the scale is in short, for where nothing longer has room."""
    most = _place(heads, (), top, wide, high).side
    *long, short = words
    for shown in (*(tuple(long[:count]) for count in range(len(long), 0, -1)), (short,)):
        place = _place(heads, shown, top, wide, high)
        if place.side >= (_SHORT_SHARE if shown == (short,) else _LEAST_SHARE) * most:
            return shown, place
    return (), _place(heads, (), top, wide, high)


def _place(
    heads: Sequence[Head], words: Sequence[str], top: float, wide: float, high: float
) -> Place:
    """The cells as large as they can be, with the key beside them or in the half without cells."""
    place = _place_with(heads, words, top, wide, high, named=True)
    if place.side >= NAMED_FROM:
        return place
    # Layers in place of heads: their labels lie flat, which may leave larger cells than before.
    layered = _place_with(heads, words, top, wide, high, named=False)
    if layered.side < NAMED_FROM:
        return layered
    side = NAMED_FROM - 0.01
    return replace(layered, side=side, across=min(layered.across, side * _WIDER))


def _place_with(
    heads: Sequence[Head],
    words: Sequence[str],
    top: float,
    wide: float,
    high: float,
    *,
    named: bool,
) -> Place:
    """The same, with each head named or only their layers."""
    n, label = len(heads), label_width(heads, named=named)
    needed = max([_LEVELS, *(width(word, _SMALL) + 11 for word in words)])
    left, words_high = MARGIN + (22 if named else 9) + label, 14.0 + len(words) * _LINE
    most = (wide - left - MARGIN) / n
    guess = min(most, _LARGEST)
    flat = not named or names_flat(heads, guess)
    below = MARGIN + 16 + ((30 if named else 8) if flat else 22 + label)
    side = max(min(most, (high - top - below) / n, _LARGEST), 0.5)
    spare = wide - MARGIN - needed * OTHER_FONT - _KEY_GAP - left - n * side
    if spare >= 0:
        # Wider cells have room for their numbers; what is left then goes to both sides.
        across = min(side + spare / n, _WIDER * side, _LARGEST)
        spare -= n * (across - side)
        left += spare / 3
        length = max(min(n * side - words_high, high - MARGIN - 12 - top - words_high), 24.0)
        key = left + n * across + _KEY_GAP, top + 8, min(length, _LONGEST)
        return Place(left, top, side, across, key)
    # In the free corner the key must end above the cells, whose edge falls to the right.
    at = max(wide - MARGIN - needed, left)
    short = words_high + _SHORTEST + 14 - max(at - left - side, 0.0)
    down = top + max(short, 0.0)
    side = max(min(side, (high - down - below) / n), 0.5)
    free = down - top + max(at - left - side, 0.0) - words_high - 14
    return Place(left, down, side, side, (at, top + 8, max(min(free, _LONGEST), 24.0)))


def _raster(grid: PairGrid, place: Place, marked: Site | None, theme: Theme) -> Group:
    """All cells as one image: of many heads each is a few pixels. Its data is the grid, which
    knows what stands where."""
    n, side, across = len(grid.heads), place.side, place.across
    rgba = diverging(grid.values, theme, grid.limit)
    rgba[~np.isfinite(grid.values)] = (*rgb(theme.panel), 255)
    rgba[np.triu_indices(n, 1)] = 0
    image = Image(place.left, place.top, n * across, n * side, rgba, smooth=side < 1)
    items: list[Item] = [Group((image,), id="pairs", data=grid)]
    if marked is not None and set(marked.heads) <= set(grid.heads):
        lower, upper = (grid.heads.index(marked.heads[end]) for end in (-1, 0))
        cell = grid.cell(lower, upper)
        if cell is not None and cell.site == marked:
            corner = place.left + upper * across, place.top + lower * side
            items.append(_outline(*corner, across, side, theme))
    return Group((*items, *_layer_lines(grid.heads, place, theme)), id="cells")


def _outline(x: float, y: float, across: float, side: float, theme: Theme) -> Rect:
    """About the cell whose corner is (x, y); larger than one that is too small to be seen."""
    wide, high = max(across, 7.0), max(side, 7.0)
    corner = x + across / 2 - wide / 2, y + side / 2 - high / 2
    return Rect(*corner, wide, high, stroke=theme.accent, stroke_width=2.5)


def _cells(grid: PairGrid, place: Place, marked: Site | None, theme: Theme) -> Group:
    """Each cell by itself, with its number where there is room."""
    n, side, across = len(grid.heads), place.side, place.across
    found = [(i, j, grid.cell(i, j)) for i in range(n) for j in range(i + 1)]
    known = [cell for _, _, cell in found if cell is not None]
    size = _number_size(known, across, side, grid.metric)
    gap = 0.5 if side >= _GRID_FROM else 0.0
    items: list[Item] = []
    outline: list[Item] = []
    for lower, upper, cell in found:
        x, y = place.left + upper * across, place.top + lower * side
        square = x + gap, y + gap, across - 2 * gap, side - 2 * gap
        if cell is None:
            items.append(Rect(*square, fill=theme.panel))
            continue
        if cell.site == marked:
            outline.append(_outline(x, y, across, side, theme))
        parts = tuple(_cell(cell, grid, square, lower == upper, size, theme))
        items.append(Group(parts, id=f"pair-{cell.site}", title=cell.title, data=cell.site))
    items += _layer_lines(grid.heads, place, theme)
    return Group((*items, *outline), id="cells")


def _cell(
    cell: PairCell,
    grid: PairGrid,
    square: tuple[float, float, float, float],
    alone: bool,
    size: float,
    theme: Theme,
) -> Iterator[Item]:
    x, y, across, side = square
    uncoloured = cell.value is None or (alone and grid.show == "interaction")
    fill = theme.panel
    if not uncoloured:
        fill = hex_colour(diverging(cell.value or 0.0, theme, grid.limit))
    yield Rect(*square, fill=fill)
    if alone and side >= 7:
        rim = x + 0.5, y + 0.5, across - 1, side - 1
        yield Rect(*rim, stroke=theme.muted, stroke_width=0.8)
    if size and not uncoloured:
        text = written(cell.value or 0.0, grid.metric)
        middle = y + side / 2 + size * CAP_HEIGHT / 2
        yield Text(x + across / 2, middle, text, size, readable_on(fill, theme), "middle")


def _layer_lines(heads: Sequence[Head], place: Place, theme: Theme) -> list[Item]:
    """Where one layer ends and the next begins."""
    n, side, each = len(heads), place.side, place.across
    lines: list[Item] = []
    for first in range(1, n):
        if heads[first].layer != heads[first - 1].layer:
            x, y = place.left + first * each, place.top + first * side
            across = segment(place.left, y, x, y)
            down = segment(x, y, x, place.top + n * side)
            lines.append(Curve((*across, *down), stroke=theme.muted, stroke_width=1.0))
    return lines


def _number_size(
    cells: Sequence[PairCell], across: float, side: float, metric: MetricName
) -> float:
    """The size of the numbers in the cells; 0 where they can't be read."""
    texts = [written(cell.value, metric) for cell in cells if cell.value is not None]
    if not texts or side * 0.4 < _SMALLEST:
        return 0.0
    size = min(_SIZE, side * 0.4, (across - 4) / max(width(text, 1.0) for text in texts))
    return size if size >= _SMALLEST else 0.0


def _key_words(metric: MetricName, show: PairValue, clean: float, frozen: bool) -> tuple[str, ...]:
    return (
        with_unit(_WORDS[show], metric),
        f"{held(frozen)}; diagonal: one head alone" if show == "effect" else held(frozen),
        f"clean {written(clean, metric, signed=False)}",
        with_unit(show, metric),
    )


def _key(
    grid: PairGrid,
    words: Sequence[str],
    place: tuple[float, float, float],
    wide: float,
    theme: Theme,
) -> Group:
    """The colour bar with its levels, under the words that say what they are."""
    limit, metric = grid.limit, grid.metric
    left, top, length = place
    items: list[Item] = []
    for number, word in enumerate(words):
        ink = theme.text if number == 0 else theme.muted
        shown = elide(word, _SMALL, wide - MARGIN - left)
        items.append(Text(left, top + 6 + number * _LINE, shown, _SMALL, ink))
    top += 6 + len(words) * _LINE
    if limit <= 0:
        items.append(Text(left, top + 10, "all values are 0", _SMALL, theme.muted))
        return Group(tuple(items), id="colour-bar")
    ramp = diverging(np.linspace(limit, -limit, 128)[:, None], theme, limit)
    items.append(Image(left, top, _BAR_WIDTH, length, ramp, smooth=True))
    items.append(Rect(left, top, _BAR_WIDTH, length, stroke=theme.faint))
    for share, value in ((0.0, limit), (0.5, 0.0), (1.0, -limit)):
        if value == 0 and length < 36:
            continue
        text = "0" if value == 0 else _level(value, metric)
        y = top + share * length + _SMALL * CAP_HEIGHT / 2
        items.append(Text(left + _BAR_WIDTH + 6, y, text, _SMALL, theme.muted))
    return Group(tuple(items), id="colour-bar")


def _largest(
    grid: PairGrid, edge: float, high: float, wide: float, theme: Theme
) -> tuple[Item, ...]:
    """The pairs with the largest values in words, at the foot beside the cells, where room is."""
    pairs = grid.largest(_LISTED)
    left, pitch = edge + _KEY_GAP, 18.0
    top = high - MARGIN - 22 - len(pairs) * pitch
    named = max((width(str(cell.site), _SIZE) for _, cell in pairs), default=0.0)
    amounts = [written(value, grid.metric) for value, _ in pairs]
    across = named + 24 + max((width(text, _SIZE) for text in amounts), default=0.0)
    if not pairs or left + across > wide - MARGIN or top < _KEY_ROOM:
        return ()
    items: list[Item] = [Text(left, top, f"largest {grid.show}s", _SMALL, theme.muted)]
    for number, ((_, cell), text) in enumerate(zip(pairs, amounts, strict=True)):
        y = top + (number + 1) * pitch + 2
        ink = amount_colour(text, theme)
        items.append(Text(left, y, str(cell.site), _SIZE, theme.text))
        items.append(Text(left + across, y, text, _SIZE, ink, "end"))
    return (Group(tuple(items), id="largest"),)


def _level(value: float, metric: MetricName) -> str:
    """A level of the colour bar; one too small for the metric's digits is still not 0."""
    text = written(value, metric)
    return text if text.strip("0.+−") else ("−" if value < 0 else "+") + numbers.error(value)
