"""Labelled points with a diagonal: what a head contributes against what taking it away does.

Where there is a diagonal both axes have one scale, so on it the two are of the same size, and the
distance from it is what the model's later parts made of the change; a plot of two units has none,
and a scale for each. Zero lies inside both axes: signs matter.
"""

import itertools
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
from circuitview.figures.text_width import CAP_HEIGHT, OTHER_FONT, elide, width
from circuitview.figures.theme import Theme
from circuitview.figures.ticks import TICK_ROOM, tick_text, two_ticks
from circuitview.session.numbers import logits

_AXIS, _LABEL = 12.0, 11.0
_RADIUS, _SMALL_RADIUS = 4.0, 3.0
_MANY = 60  # points; from here on they are drawn small
_ALL_NAMED = 24  # points; of more than these, those near zero have no label
_NEAR = 26.0  # pixels from zero
_SHARES = (0.08, 0.9, 0.25, 0.75, 0.5, 0.16, 0.83, 0.33, 0.67)  # of the width, for its name
_ALONG = tuple(share / 5 for share in range(-5, 6))  # places along a slanting text
_CAP = 3.5  # pixels to each side, at the ends of an error bar
_CLEAR = 1.5  # times as far as its own dot is every other one from a label, at least
_ASIDE = -5.0, 5.0, -10.0, 10.0  # pixels that a label beside a dot may be off its height
_CROSSING = 5.0  # pixels about the crossing of the zero lines that no label covers
_SLACK = 0.08  # of the span, left free around the points


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """One labelled point.

    Attributes:
        marked: whether it is selected.
        error: the standard error of y; None where it is not known.
        title: what is said of it when it is pointed at; None for its label and both values.
    """

    label: str
    x: float
    y: float
    marked: bool = False
    error: float | None = None
    title: str | None = None

    @property
    def reach(self) -> float:
        """How far its error bar reaches to each side; 0 for none."""
        return self.error if self.error is not None and math.isfinite(self.error) else 0.0


@dataclass(frozen=True, slots=True)
class ScatterText:
    """The words of a scatter plot: above it, under its axes, along its diagonal; without a word for
    the diagonal there is none."""

    title: str
    note: str
    x: str
    y: str
    diagonal: str
    empty: str = "nothing measured yet"


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels, y upwards.

    Attributes:
        area: the plot's rectangle.
        low_x, low_y: the values at its lower left corner.
        factor: pixels for a unit of x.
        factor_y: pixels for a unit of y; None for as many.
    """

    area: Box
    low_x: float
    low_y: float
    factor: float
    factor_y: float | None = None

    def x(self, value: float) -> float:
        return self.area.left + (value - self.low_x) * self.factor

    def y(self, value: float) -> float:
        return self.area.bottom - (value - self.low_y) * self._up

    @property
    def _up(self) -> float:
        return self.factor if self.factor_y is None else self.factor_y

    @property
    def high_x(self) -> float:
        return self.low_x + (self.area.right - self.area.left) / self.factor

    @property
    def high_y(self) -> float:
        return self.low_y + (self.area.bottom - self.area.top) / self._up


def scatter_figure(
    points: Sequence[ScatterPoint],
    words: ScatterText,
    theme: Theme,
    size: tuple[float, float],
    description: str = "",
) -> Figure:
    """The points with their error bars, the diagonal y = −x and both zero lines.

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
    area = Box(MARGIN + 66, top + 4, wide - MARGIN, high - MARGIN - 38)
    shown = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not shown or area.right - area.left < 40 or area.bottom - area.top < 40:
        middle = (area.top + area.bottom) / 2
        text = elide("too little room" if shown else words.empty, _AXIS, wide - 2 * MARGIN)
        items.append(Text(wide / 2, middle, text, _AXIS, theme.muted, anchor="middle"))
    else:
        items += scatter_items(shown, words, theme, fitted(shown, area, bool(words.diagonal)))
    return Figure(wide, high, theme.background, tuple(items), words.title, description)


def fitted(points: Sequence[ScatterPoint], area: Box, alike: bool = True) -> Scale:
    """The largest scale on which all points and both zeros lie inside `area`, centred; `alike` on
    both axes."""
    # A view that has no room yet still has a scale.
    wide, high = max(area.right - area.left, 1.0), max(area.bottom - area.top, 1.0)
    xs = [0.0, *(point.x for point in points)]
    ys = [0.0, *(point.y - point.reach for point in points)]
    ys += [point.y + point.reach for point in points]
    across, up = (max(xs) - min(xs)) / wide, (max(ys) - min(ys)) / high
    if alike:
        across = up = max(across, up)
    factor, factor_y = _factor(across, wide, high), _factor(up, wide, high)
    return Scale(
        area,
        (max(xs) + min(xs)) / 2 - wide / factor / 2,
        (max(ys) + min(ys)) / 2 - high / factor_y / 2,
        factor,
        None if alike else factor_y,
    )


def _factor(needed: float, wide: float, high: float) -> float:
    """Pixels for a unit, where `needed` units share a pixel."""
    # Values at the edge of what a float can hold would make the scale infinite.
    return (1 - 2 * _SLACK) / needed if needed > 1e-300 else min(wide, high)


def scatter_items(
    points: Sequence[ScatterPoint], words: ScatterText, theme: Theme, scale: Scale
) -> Iterator[Item]:
    """Axes, lines, and those points that lie inside the scale's area, in painting order."""
    area = scale.area
    radius = _RADIUS if len(points) < _MANY else _SMALL_RADIUS
    points = [point for point in points if area.contains(_around(point, scale, radius))]
    yield from _axes(words, theme, scale)
    yield from _lines(words, theme, scale)
    for point in points:
        yield from _error_bar(point, theme, scale)
    for point in points:
        yield _dot(point, theme, scale, radius)
    yield from _labels(points, words, theme, scale, radius)


def _lines(words: ScatterText, theme: Theme, scale: Scale) -> Iterator[Item]:
    """Both zero lines and the diagonal y = −x, each cut to the area."""
    area, x, y = scale.area, scale.x(0), scale.y(0)
    if area.top <= y <= area.bottom:
        yield Curve((("M", area.left, y), ("L", area.right, y)), stroke=theme.muted)
    if area.left <= x <= area.right:
        yield Curve((("M", x, area.top), ("L", x, area.bottom)), stroke=theme.muted)
    low = max(scale.low_x, -scale.high_y)
    high = min(scale.high_x, -scale.low_y)
    if words.diagonal and low < high:
        line = segment(scale.x(low), scale.y(-low), scale.x(high), scale.y(-high))
        yield Curve(line, stroke=theme.remainder, stroke_width=1.25, dash=(6.0, 4.0))


def _axes(words: ScatterText, theme: Theme, scale: Scale) -> Iterator[Item]:
    area = scale.area
    xs = two_ticks(scale.low_x, scale.high_x, area.right - area.left, TICK_ROOM)
    ys = two_ticks(scale.low_y, scale.high_y, area.bottom - area.top, TICK_ROOM * 0.75)
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


def _error_bar(point: ScatterPoint, theme: Theme, scale: Scale) -> Iterator[Item]:
    """A standard error to each side, cut to the area; none that the dot would cover."""
    area, x = scale.area, scale.x(point.x)
    top, bottom = scale.y(point.y + point.reach), scale.y(point.y - point.reach)
    if bottom - top < 1.0:
        return
    line = [*segment(x, max(top, area.top), x, min(bottom, area.bottom))]
    for end in (top, bottom):
        if area.top <= end <= area.bottom:
            line += segment(max(x - _CAP, area.left), end, min(x + _CAP, area.right), end)
    bar = Curve(tuple(line), stroke=theme.muted, stroke_width=1.2)
    yield Group((bar,), id=f"error-{point.label}")


def _dot(point: ScatterPoint, theme: Theme, scale: Scale, r: float) -> Item:
    x, y = scale.x(point.x), scale.y(point.y)
    fill = theme.sign(point.x)
    title = point.title
    if title is None:
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
    points: Sequence[ScatterPoint],
    words: ScatterText,
    theme: Theme,
    scale: Scale,
    radius: float,
) -> Iterator[Item]:
    """As many labels as stand clear of points, lines and one another, each with its own dot as the
    nearest; the far-out points first, of many points those around zero have none."""
    taken = [_around(point, scale, radius) for point in points]
    x, y = scale.x(0), scale.y(0)
    taken.append(Box(x - _CROSSING, y - _CROSSING, x + _CROSSING, y + _CROSSING))
    taken += [_bar_box(point, scale) for point in points if point.reach]
    far = {point: _far_out(point, words, scale) for point in points}
    ranked = sorted(points, key=lambda point: (not point.marked, -far[point]))
    for point in ranked:
        if len(points) > _ALL_NAMED and far[point] < _NEAR and not point.marked:
            continue
        places = list(_placements(point, theme, scale, radius))
        free = (
            text
            for text in places
            if _is_free(text, taken, words, scale) and _is_of(text, point, points, scale)
        )
        # What is selected must be named, be it over others.
        text = next(free, places[0] if point.marked else None)
        if text is not None:
            taken += [box for box in (bounds(text),) if box is not None]
            yield text
    diagonal = _diagonal_label(words, theme, scale, taken) if words.diagonal else None
    if diagonal is not None:
        yield diagonal


def _far_out(point: ScatterPoint, words: ScatterText, scale: Scale) -> float:
    """How far a point lies from zero and from the diagonal (pixels)."""
    across, up = scale.x(point.x) - scale.x(0), scale.y(0) - scale.y(point.y)
    return math.hypot(across, up) + (abs(across + up) if words.diagonal else 0.0)


def _is_free(text: Text, taken: Sequence[Box], words: ScatterText, scale: Scale) -> bool:
    box = bounds(text)
    if box is None or not scale.area.contains(box):
        return False
    return not _is_struck(text, box, words, scale) and not any(box.overlaps(b) for b in taken)


def _is_struck(text: Text, box: Box, words: ScatterText, scale: Scale) -> bool:
    """Whether a zero line or the diagonal goes through the letters."""
    x, y = scale.x(0), scale.y(0)
    top, bottom = text.y - text.size * CAP_HEIGHT - 1, text.y + 1
    if box.left - 1 < x < box.right + 1 or top < y < bottom:
        return True
    # On one scale for both the diagonal falls under 45 degrees: x − y (pixels) stays along it.
    return bool(words.diagonal) and box.left - bottom < x - y < box.right - top


def _is_of(text: Text, own: ScatterPoint, points: Sequence[ScatterPoint], scale: Scale) -> bool:
    """Whether a label is so much nearer to its own dot that it is not taken for another's."""
    box = bounds(text)
    assert box is not None

    def away(point: ScatterPoint) -> float:
        x, y = scale.x(point.x), scale.y(point.y)
        return math.hypot(
            x - min(max(x, box.left), box.right), y - min(max(y, box.top), box.bottom)
        )

    least = _CLEAR * away(own)
    return all(point is own or away(point) >= least for point in points)


def _around(point: ScatterPoint, scale: Scale, radius: float) -> Box:
    x, y = scale.x(point.x), scale.y(point.y)
    return Box(x - radius, y - radius, x + radius, y + radius)


def _bar_box(point: ScatterPoint, scale: Scale) -> Box:
    x = scale.x(point.x)
    return Box(x - 1, scale.y(point.y + point.reach), x + 1, scale.y(point.y - point.reach))


def _placements(point: ScatterPoint, theme: Theme, scale: Scale, radius: float) -> Iterator[Text]:
    x, y, gap = scale.x(point.x), scale.y(point.y), radius + 4
    level = y + _LABEL * CAP_HEIGHT / 2
    above, below = y - gap, y + gap + _LABEL * CAP_HEIGHT
    places: tuple[tuple[float, float, Anchor], ...] = (
        (x + gap, level, "start"),
        (x - gap, level, "end"),
        (x, above, "middle"),
        (x, below, "middle"),
        (x + gap / 2, above + 2, "start"),
        (x - gap / 2, below - 2, "end"),
        *((x + gap, level + off, "start") for off in _ASIDE),
        *((x - gap, level - off, "end") for off in _ASIDE),
    )
    if point.reach:  # beyond the ends of its error bar
        over, under = scale.y(point.y + point.reach) - 6, scale.y(point.y - point.reach) + 6
        under += _LABEL * CAP_HEIGHT
        beside: tuple[Anchor, ...] = ("middle", "end", "start")
        places += tuple((x, down, anchor) for anchor in beside for down in (over, under))
    bold, halo, label = point.marked, theme.background, point.label
    for across, down, anchor in places:
        yield Text(across, down, label, _LABEL, theme.text, anchor, bold=bold, halo=halo)


def _square(x: float, y: float) -> Box:
    half = 0.55 * _LABEL
    return Box(x - half, y - half, x + half, y + half)


def _diagonal_label(
    words: ScatterText, theme: Theme, scale: Scale, taken: Sequence[Box]
) -> Text | None:
    """The diagonal's name where there is room beside it, first above its upper end."""
    # The diagonal falls from left to right under 45 degrees, so text along it does too.
    half = OTHER_FONT * width(words.diagonal, _LABEL) / 2 * math.cos(math.pi / 4)
    area, zero_x, zero_y = scale.area, scale.x(0), scale.y(0)
    zeros = (
        Box(area.left, zero_y, area.right, zero_y),
        Box(zero_x, area.top, zero_x, area.bottom),
    )
    rise = _LABEL * CAP_HEIGHT / 2 * math.cos(math.pi / 4)  # from the baseline to the middle
    for side, share in itertools.product((8.0, -8.0 - _LABEL * CAP_HEIGHT), _SHARES):
        x = scale.area.left + share * (scale.area.right - scale.area.left)
        value = scale.low_x + (x - scale.area.left) / scale.factor
        lift = side * math.cos(math.pi / 4)
        x, y = x + lift, scale.y(-value) - lift
        parts = [_square(x + rise + t * half, y - rise + t * half) for t in _ALONG]
        clear = not any(part.overlaps(other) for part in parts for other in (*taken, *zeros))
        if scale.area.contains(Box(x - half, y - half, x + half, y + half)) and clear:
            diagonal, ink = words.diagonal, theme.muted
            halo = theme.background
            return Text(x, y, diagonal, _LABEL, ink, "middle", rotation=45, halo=halo)
    return None
