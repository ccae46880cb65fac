"""Labelled points with a diagonal: what a head contributes against what taking it away does.

Both axes have one scale, so on the diagonal the two are of the same size, and the distance from it
is what the model's later parts made of the change. Zero lies inside both axes: signs matter.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from circuitview.figures.figure import (
    Anchor,
    Box,
    Curve,
    Figure,
    Group,
    Item,
    Rect,
    Text,
    bounds,
    segment,
)
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.text_width import CAP_HEIGHT, elide, width
from circuitview.figures.theme import Theme
from circuitview.session.numbers import MINUS, logits

_AXIS, _LABEL = 12.0, 11.0
_RADIUS = 4.0
_TICK_ROOM = 56.0  # pixels between two ticks, at least
_SLACK = 0.08  # of the span, left free around the points


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """One labelled point; `marked` is what is selected."""

    label: str
    x: float
    y: float
    marked: bool = False


@dataclass(frozen=True, slots=True)
class ScatterText:
    """The words of a scatter plot: above it, under its axes, along its diagonal."""

    title: str
    note: str
    x: str
    y: str
    diagonal: str
    empty: str = "nothing measured yet"


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels, the same factor on both axes, y upwards.

    Attributes:
        area: the plot's rectangle.
        low_x, low_y: the values at its lower left corner.
        factor: pixels for a unit.
    """

    area: Box
    low_x: float
    low_y: float
    factor: float

    def x(self, value: float) -> float:
        return self.area.left + (value - self.low_x) * self.factor

    def y(self, value: float) -> float:
        return self.area.bottom - (value - self.low_y) * self.factor

    @property
    def high_x(self) -> float:
        return self.low_x + (self.area.right - self.area.left) / self.factor

    @property
    def high_y(self) -> float:
        return self.low_y + (self.area.bottom - self.area.top) / self.factor


def scatter_figure(
    points: Sequence[ScatterPoint],
    words: ScatterText,
    theme: Theme,
    size: tuple[float, float],
    description: str = "",
) -> Figure:
    """The points, the diagonal y = −x and both zero lines.

    Args:
        points: in any order; points that are not finite are left out.
        words: title, note and axis titles.
        theme: colours.
        size: width and height of the picture.
        description: where the numbers come from.
    """
    wide, high = size
    head, top = heading(words.title, words.note, theme, wide)
    items: list[Item] = [head]
    area = Box(MARGIN + 52, top + 4, wide - MARGIN, high - MARGIN - 38)
    shown = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not shown or area.right - area.left < 40 or area.bottom - area.top < 40:
        middle = (area.top + area.bottom) / 2
        text = elide(words.empty, _AXIS, wide - 2 * MARGIN)
        items.append(Text(wide / 2, middle, text, _AXIS, theme.muted, anchor="middle"))
    else:
        items += scatter_items(shown, words, theme, fitted(shown, area))
    return Figure(wide, high, theme.background, tuple(items), words.title, description)


def fitted(points: Sequence[ScatterPoint], area: Box) -> Scale:
    """The largest scale on which all points and both zeros lie inside `area`, centred."""
    wide, high = area.right - area.left, area.bottom - area.top
    xs = [0.0, *(point.x for point in points)]
    ys = [0.0, *(point.y for point in points)]
    span_x, span_y = max(xs) - min(xs), max(ys) - min(ys)
    needed = max(span_x / wide, span_y / high)
    # Values at the edge of what a float can hold would make the scale infinite.
    factor = (1 - 2 * _SLACK) / needed if needed > 1e-300 else min(wide, high)
    return Scale(
        area,
        (max(xs) + min(xs)) / 2 - wide / factor / 2,
        (max(ys) + min(ys)) / 2 - high / factor / 2,
        factor,
    )


def tick_values(
    low: float, high: float, room: float, each: float = _TICK_ROOM
) -> tuple[float, ...]:
    """Round values between `low` and `high`, at least `each` of `room` pixels apart."""
    raw = (high - low) * each / room
    power: float = 10.0 ** math.floor(math.log10(raw))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= raw * (1 - 1e-9))
    return tuple(
        count * step for count in range(math.ceil(low / step), math.floor(high / step) + 1)
    )


def scatter_items(
    points: Sequence[ScatterPoint], words: ScatterText, theme: Theme, scale: Scale
) -> Iterator[Item]:
    """Axes, lines, and those points that lie inside the scale's area, in painting order."""
    area = scale.area
    points = [point for point in points if area.contains(_around(point, scale))]
    yield from _axes(words, theme, scale)
    yield from _lines(theme, scale)
    for point in points:
        yield _dot(point, theme, scale)
    yield from _labels(points, words, theme, scale)


def _lines(theme: Theme, scale: Scale) -> Iterator[Item]:
    """Both zero lines and the diagonal y = −x, each cut to the area."""
    area, x, y = scale.area, scale.x(0), scale.y(0)
    if area.top <= y <= area.bottom:
        yield Curve((("M", area.left, y), ("L", area.right, y)), stroke=theme.muted)
    if area.left <= x <= area.right:
        yield Curve((("M", x, area.top), ("L", x, area.bottom)), stroke=theme.muted)
    low = max(scale.low_x, -scale.high_y)
    high = min(scale.high_x, -scale.low_y)
    if low < high:
        line = segment(scale.x(low), scale.y(-low), scale.x(high), scale.y(-high))
        yield Curve(line, stroke=theme.remainder, stroke_width=1.25, dash=(6.0, 4.0))


def _axes(words: ScatterText, theme: Theme, scale: Scale) -> Iterator[Item]:
    area = scale.area
    xs = tick_values(scale.low_x, scale.high_x, area.right - area.left)
    ys = tick_values(scale.low_y, scale.high_y, area.bottom - area.top, _TICK_ROOM * 0.75)
    for value in xs:
        x = scale.x(value)
        yield Curve((("M", x, area.top), ("L", x, area.bottom)), stroke=theme.faint)
        text = tick_text(value, xs)
        yield Text(x, area.bottom + 16, text, _LABEL, theme.muted, anchor="middle")
    for value in ys:
        y = scale.y(value)
        yield Curve((("M", area.left, y), ("L", area.right, y)), stroke=theme.faint)
        middle = y + _LABEL * CAP_HEIGHT / 2
        text = tick_text(value, ys)
        yield Text(area.left - 6, middle, text, _LABEL, theme.muted, anchor="end")
    across, down = area.right - area.left, area.bottom - area.top
    centre_x, centre_y = (area.left + area.right) / 2, (area.top + area.bottom) / 2
    under, beside = elide(words.x, _AXIS, across), elide(words.y, _AXIS, down)
    yield Text(centre_x, area.bottom + 36, under, _AXIS, theme.text, anchor="middle")
    yield Text(MARGIN + _AXIS, centre_y, beside, _AXIS, theme.text, "middle", rotation=-90)


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """`value` with as many digits as the distance between the ticks asks for."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else abs(value) or 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{abs(value):.{digits}f}"
    return MINUS + text if value < 0 and text.strip("0.") else text


def _dot(point: ScatterPoint, theme: Theme, scale: Scale) -> Item:
    x, y, r = scale.x(point.x), scale.y(point.y), _RADIUS
    fill = theme.sign(point.x)
    title = f"{point.label}: {logits(point.x, signed=True)}, {logits(point.y, signed=True)}"
    dot = Rect(x - r, y - r, 2 * r, 2 * r, fill, theme.background, radius=r)
    rim = r + 2.5
    ring = (
        (Rect(x - rim, y - rim, 2 * rim, 2 * rim, stroke=theme.accent, stroke_width=2, radius=rim),)
        if point.marked
        else ()
    )
    return Group((dot, *ring), id=f"point-{point.label}", title=title, data=point.label)


def _labels(
    points: Sequence[ScatterPoint], words: ScatterText, theme: Theme, scale: Scale
) -> Iterator[Item]:
    """As many labels as stand clear of points and of one another, the far-out points first."""
    taken = [_around(point, scale) for point in points]
    ranked = sorted(points, key=lambda point: (not point.marked, -math.hypot(point.x, point.y)))
    for point in ranked:
        places = list(_placements(point, theme, scale))
        free = (text for text in places if _is_free(text, taken, scale))
        # What is selected must be named, be it over others.
        text = next(free, places[0] if point.marked else None)
        if text is not None:
            taken += [box for box in (bounds(text),) if box is not None]
            yield text
    diagonal = _diagonal_label(words, theme, scale, taken)
    if diagonal is not None:
        yield diagonal


def _is_free(text: Text, taken: Sequence[Box], scale: Scale) -> bool:
    box = bounds(text)
    if box is None or not scale.area.contains(box):
        return False
    return not any(box.overlaps(other) for other in taken)


def _around(point: ScatterPoint, scale: Scale) -> Box:
    x, y = scale.x(point.x), scale.y(point.y)
    return Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS)


def _placements(point: ScatterPoint, theme: Theme, scale: Scale) -> Iterator[Text]:
    x, y, gap = scale.x(point.x), scale.y(point.y), _RADIUS + 4
    level = y + _LABEL * CAP_HEIGHT / 2
    above, below = y - gap, y + gap + _LABEL * CAP_HEIGHT
    places: tuple[tuple[float, float, Anchor], ...] = (
        (x + gap, level, "start"),
        (x - gap, level, "end"),
        (x, above, "middle"),
        (x, below, "middle"),
    )
    bold, halo, label = point.marked, theme.background, point.label
    for across, down, anchor in places:
        yield Text(across, down, label, _LABEL, theme.text, anchor, bold=bold, halo=halo)


def _diagonal_label(
    words: ScatterText, theme: Theme, scale: Scale, taken: Sequence[Box]
) -> Text | None:
    """The diagonal's name where there is room beside it, first at its upper end."""
    length = width(words.diagonal, _LABEL)
    # The diagonal falls from left to right under 45 degrees, so text along it does too.
    for share in (0.08, 0.9, 0.25, 0.75, 0.5):
        x = scale.area.left + share * (scale.area.right - scale.area.left)
        value = scale.low_x + (x - scale.area.left) / scale.factor
        y = scale.y(-value)
        half = length / 2 * math.cos(math.pi / 4)
        lift = 8 * math.cos(math.pi / 4)
        text = Text(
            x + lift, y - lift, words.diagonal, _LABEL, theme.muted, "middle", rotation=45,
            halo=theme.background,
        )  # fmt: skip
        box = Box(x - half, y - half, x + half, y + half)
        if scale.area.contains(box) and not any(box.overlaps(other) for other in taken):
            return text
    return None
