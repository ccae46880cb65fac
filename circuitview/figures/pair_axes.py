"""Which heads stand beside the cells of a matrix of pairs: each by its name, or whole layers.

Every fifth head's name would read as a decimal scale, so names are all there or none.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from circuitview.core.names import Head
from circuitview.figures.figure import Curve, Group, Item, Text, segment
from circuitview.figures.text_width import CAP_HEIGHT, width
from circuitview.figures.theme import Theme

_SIZE, _SMALLEST = 12.0, 8.5
_LAYER_SIZE = 11.0
_PITCH = 14.0  # pixels from one label to the next
NAMED_FROM = 10.0  # pixels a cell, from which each head is named
_TICKS_FROM = 3.0  # pixels a cell, from which each head has a tick
_TICK, _LONG_TICK = 3.0, 5.0
_AWAY = 7.0  # pixels from the cells to their labels


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cells of a matrix are, and their key.

    Attributes:
        left, top: the corner of the first cell (pixels).
        side: how high a cell is (pixels).
        across: how wide a cell is (pixels).
        key: its left and top, and how long its colour bar may be (pixels).
    """

    left: float
    top: float
    side: float
    across: float
    key: tuple[float, float, float]


def label_width(heads: Sequence[Head], *, named: bool) -> float:
    """What the labels beside the cells need: of the heads, or of their layers (pixels)."""
    if named:
        return max(width(str(head), _SIZE) for head in heads)
    return max(width(_layer_name(head.layer), _LAYER_SIZE) for head in heads)


def names_flat(heads: Sequence[Head], across: float) -> bool:
    """Whether the heads' names lie flat under cells of that width; else they stand upright."""
    return label_width(heads, named=True) + 6 <= across


def pair_axes(heads: Sequence[Head], place: Place, theme: Theme) -> tuple[Group, Group]:
    """The heads, down the side and under the cells; where they have no room their layers, with a
    tick for each head."""
    if place.side < NAMED_FROM:
        down = tuple(_layer_labels(heads, place, theme, upright=True))
        across = tuple(_layer_labels(heads, place, theme, upright=False))
        return Group(down, id="heads-down"), Group(across, id="heads-across")
    size = _SIZE if place.side >= _PITCH else max(place.side * 0.85, _SMALLEST)
    flat = names_flat(heads, place.across)
    bottom = place.top + len(heads) * place.side
    beside: list[Item] = []
    under: list[Item] = []
    for number, head in enumerate(heads):
        y = place.top + (number + 0.5) * place.side
        beside.append(_beside(place, y, str(head), size, theme))
        x = place.left + (number + 0.5) * place.across
        under.append(_under(x, bottom, str(head), size, flat, theme))
    return Group(tuple(beside), id="heads-down"), Group(tuple(under), id="heads-across")


def _beside(place: Place, y: float, name: str, size: float, theme: Theme) -> Text:
    base = y + size * CAP_HEIGHT / 2
    return Text(place.left - _AWAY, base, name, size, theme.text, "end")


def _under(x: float, bottom: float, name: str, size: float, flat: bool, theme: Theme) -> Text:
    if flat:
        return Text(x, bottom + _AWAY + 10, name, size, theme.text, "middle")
    x += size * CAP_HEIGHT / 2
    return Text(x, bottom + _AWAY, name, size, theme.text, "end", rotation=-90)


def _layer_name(layer: int) -> str:
    return f"layer {layer}"


def _room(name: str) -> float:
    return width(name, _LAYER_SIZE) + 8


def _layers(heads: Sequence[Head]) -> list[tuple[int, int]]:
    """Each layer, and how many of `heads` are of it."""
    runs = groupby(heads, key=lambda head: head.layer)
    return [(layer, len(list(run))) for layer, run in runs]


def _layer_labels(
    heads: Sequence[Head], place: Place, theme: Theme, *, upright: bool
) -> Iterator[Item]:
    """The layers' names in the middle of their heads, as many as stand clear of one another; a tick
    for each head and a longer one where a layer begins."""
    each = place.side if upright else place.across
    start = place.top if upright else place.left
    runs = _layers(heads)
    # Under narrow cells "L0": upright words would take the cells' height.
    brief = not upright and any(_room(_layer_name(n)) > count * each for n, count in runs)
    bottom = place.top + len(heads) * place.side
    free, first = -math.inf, 0
    for layer, count in runs:
        name = f"L{layer}" if brief else _layer_name(layer)
        for edge in (first, first + count):
            yield _tick(place, start + edge * each, bottom, _LONG_TICK, theme, upright=upright)
        for number in range(first, first + count) if each >= _TICKS_FROM else ():
            middle = start + (number + 0.5) * each
            yield _tick(place, middle, bottom, _TICK, theme, upright=upright)
        middle = start + (first + count / 2) * each
        half = _PITCH / 2 if upright else _room(name) / 2
        if middle - half >= free:
            yield (
                _beside(place, middle, name, _LAYER_SIZE, theme)
                if upright
                else _under(middle, bottom, name, _LAYER_SIZE, True, theme)
            )
            free = middle + half
        first += count


def _tick(
    place: Place, at: float, bottom: float, long: float, theme: Theme, *, upright: bool
) -> Curve:
    line = (
        segment(place.left - long, at, place.left - 1, at)
        if upright
        else segment(at, bottom + 1, at, bottom + long)
    )
    return Curve(line, stroke=theme.muted, stroke_width=0.8)
