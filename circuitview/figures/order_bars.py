"""Path ablation: the metric with paths of up to so many heads, and each order's marginal value.

A bar is the whole value, from zero; the dashed line is the unchanged model, which the last order
equals. Below, on a scale of its own, stands what each order changes: its value minus that of the
order before, with a standard error to each side.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from circuitview.core.ablation.metric import METRICS, MetricName
from circuitview.figures.effect_bars import whisker
from circuitview.figures.effect_words import digits, with_error, with_unit, written
from circuitview.figures.enlarge import enlarged, enlargement
from circuitview.figures.figure import Box, Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.signed_bar import hatch
from circuitview.figures.text_width import CAP_HEIGHT, OTHER_FONT, elide, tick_step, width
from circuitview.figures.theme import Theme, amount_colour, mix
from circuitview.figures.ticks import tick_text, tick_values

if TYPE_CHECKING:
    from circuitview.core.ablation.table import OrderRow

_SIZE, _SMALL, _LEAST = 13.0, 11.0, 9.5
_LEFT = 74.0  # pixels beside the bars, for ticks and an axis title
_WIDEST_BAR, _BAR_SHARE = 110.0, 0.58
_TWO_FROM = 300.0  # pixels of height; below, the marginal values have no bars of their own
_SHARE = 0.54  # of the height, for the values
_NAMES = 20.0  # pixels under the bars, for the orders
_BETWEEN = 18.0  # pixels between the two charts
_OVER, _UNDER = 20.0, 22.0  # pixels over and under the bars, for their numbers
_LEAST_ROOM = 30.0  # pixels each way; in less there are no bars
_CLEAN = 16.0  # pixels over all that, for the name of the clean line


class _Chart(NamedTuple):
    """One chart: its area, the value at its foot, and pixels a unit."""

    area: Box
    low: float
    scale: float

    def y(self, value: float) -> float:
        return self.area.bottom - (value - self.low) * self.scale

    @property
    def high(self) -> float:
        return self.low + (self.area.bottom - self.area.top) / self.scale


def order_figure(
    rows: Sequence["OrderRow"],
    *,
    metric: MetricName,
    clean: float,
    theme: Theme,
    width: float,
    height: float,
    title: str,
    note: str = "",
    description: str = "",
) -> Figure:
    """Bars of the metric with paths up to each order, and of the marginal value of each.

    Args:
        rows: one an order, from 0 up.
        metric: what is measured.
        clean: it, of the unchanged model.
        theme: whose colours.
        width, height: pixels.
        title, note: what was measured, and of which run.
        description: where the numbers come from.
    """
    factor = enlargement(width, height)
    wide, high = width / factor, height / factor
    head, top = heading(title, note, theme, wide)
    under_heading = top
    bottom = high - MARGIN - _NAMES - 18
    top += _CLEAN
    both = bottom - top >= _TWO_FROM and any(row.marginal is not None for row in rows)
    told = any(row.marginal is not None for row in rows) and not both
    foot = top + _SHARE * (bottom - top) if both else bottom - told * _UNDER
    area = Box(MARGIN + _LEFT, top + _OVER, wide - MARGIN, foot)
    roomy = area.right - area.left >= _LEAST_ROOM and area.bottom - area.top >= _LEAST_ROOM
    if not rows or not roomy:
        words = elide("too little room" if rows else "nothing measured yet", 12, wide)
        text = Text(wide / 2, (under_heading + high) / 2, words, 12, theme.muted, "middle")
        made = Figure(wide, high, theme.background, (head, text), title, description)
        return enlarged(made, factor)
    values = _chart(area, [0.0, clean, *(value for row in rows for value in _ends(row))])
    items = [head, *_values(rows, values, metric, clean, theme)]
    if told:
        items += _told(rows, area, metric, theme)
    if both:
        lower = Box(area.left, foot + _BETWEEN + _OVER, area.right, bottom)
        spans = [value for row in rows for value in _marginal_ends(row)]
        items += _marginals(rows, _chart(lower, [0.0, *spans]), metric, theme)
    words = "paths of up to so many heads"
    middle = (area.left + area.right) / 2
    items += _order_names(rows, area, bottom - told * _UNDER + 18, theme)
    items.append(Text(middle, high - MARGIN, words, _SIZE, theme.text, "middle"))
    made = Figure(wide, high, theme.background, tuple(items), title, description)
    return enlarged(made, factor)


def _ends(row: "OrderRow") -> tuple[float, float]:
    error = row.stderr or 0.0
    return row.value - error, row.value + error


def _marginal_ends(row: "OrderRow") -> tuple[float, ...]:
    if row.marginal is None:
        return ()
    error = row.marginal_stderr or 0.0
    return row.marginal - error, row.marginal + error


def _chart(area: Box, values: Sequence[float]) -> _Chart:
    """The scale on which all `values` fit; what hangs below zero keeps room for its number."""
    low, high = min(values), max(values)
    under = _UNDER if low < 0 else 0.0
    room = area.bottom - area.top - under
    scale = room / (high - low) if high - low > 1e-300 else 1.0
    return _Chart(area, low - under / scale, scale)


def _slots(rows: Sequence["OrderRow"], area: Box) -> tuple[float, list[float]]:
    """How far bars stand apart, and the middle of each."""
    pitch = (area.right - area.left) / len(rows)
    return pitch, [area.left + (place + 0.5) * pitch for place in range(len(rows))]


def _values(
    rows: Sequence["OrderRow"], chart: _Chart, metric: MetricName, clean: float, theme: Theme
) -> list[Item]:
    """The bars of the values, the clean value's line, and the names of the orders."""
    area = chart.area
    pitch, middles = _slots(rows, area)
    wide = min(_WIDEST_BAR, _BAR_SHARE * pitch)
    name = METRICS[metric].title
    items = _axis(chart, with_unit(name, metric), theme)
    numbers = [_written(row.value, metric, signed=False) for row in rows]
    size = _fitting(numbers, pitch)
    bars: list[Item] = []
    # Grey: a whole value neither adds nor takes away.
    ink = mix(theme.remainder, theme.text, 0.2)
    for row, x, number in zip(rows, middles, numbers, strict=True):
        y, zero = chart.y(row.value), chart.y(0.0)
        bar: list[Item] = [
            Rect(x - wide / 2, min(y, zero), wide, max(abs(zero - y), 1.0), fill=ink),
            *whisker(x, y, (row.stderr or 0.0) * chart.scale, theme, upright=True),
        ]
        if size:
            beyond = _beyond(chart, row.value, row.stderr)
            paper = theme.background
            bar.append(Text(x, beyond, number, size, theme.text, "middle", bold=True, halo=paper))
        bars.append(Group(tuple(bar), id=f"order-{row.order}", title=_title(row, metric), data=row))
    bars.append(Curve(segment(area.left, chart.y(0), area.right, chart.y(0)), stroke=theme.muted))
    items.append(Group(tuple(bars), id="values"))
    items.append(_clean_line(chart, f"clean {_written(clean, metric, signed=False)}", clean, theme))
    return items


def _clean_line(chart: _Chart, words: str, clean: float, theme: Theme) -> Group:
    """The unchanged model's value across all bars; its name on the left of the axis's end."""
    area, y = chart.area, chart.y(clean)
    line = segment(area.left, y, area.right, y)
    rim = Curve(line, stroke=theme.background, stroke_width=3.4, opacity=0.7)
    dashed = Curve(line, stroke=theme.accent, stroke_width=1.8, dash=(7.0, 4.0))
    size = _SMALL + 1
    label = Text(
        area.right, area.top - _OVER - _CLEAN + 10, words, size, theme.accent, "end", bold=True
    )
    start = area.right - OTHER_FONT * width(words, size, bold=True)
    key = segment(start - 34, label.y - 4, start - 8, label.y - 4)
    sample = Curve(key, stroke=theme.accent, stroke_width=1.8, dash=(7.0, 4.0))
    return Group((rim, dashed, sample, label), id="clean", title=words)


def _order_names(rows: Sequence["OrderRow"], area: Box, y: float, theme: Theme) -> list[Item]:
    step = tick_step(len(rows), area.right - area.left, 26.0)
    _, middles = _slots(rows, area)
    return [
        Text(x, y, str(row.order), _SIZE, theme.text, "middle")
        for place, (row, x) in enumerate(zip(rows, middles, strict=True))
        if place % step == 0
    ]


def _told(
    rows: Sequence["OrderRow"], area: Box, metric: MetricName, theme: Theme
) -> Iterator[Item]:
    """Marginal values in words under the orders' names, where there is no room for bars."""
    pitch, middles = _slots(rows, area)
    texts, size = _marginal_texts(rows, metric, pitch)
    for row, x, text in zip(rows, middles, texts, strict=True):
        if row.marginal is not None and size:
            ink, y = amount_colour(_written(row.marginal, metric), theme), area.bottom + 36
            yield Text(x, y, text, min(size, _SMALL + 1), ink, "middle", bold=True)


def _marginal_texts(
    rows: Sequence["OrderRow"], metric: MetricName, pitch: float
) -> tuple[list[str], float]:
    """Marginal values, each with its error where all have room for it; and the size."""
    texts = [_marginal_text(row, metric) for row in rows]
    size = _fitting(texts, pitch)
    if not size:  # the error is left to the whisker
        texts = ["" if row.marginal is None else _written(row.marginal, metric) for row in rows]
        size = _fitting(texts, pitch)
    return texts, size


def _marginals(
    rows: Sequence["OrderRow"], chart: _Chart, metric: MetricName, theme: Theme
) -> list[Item]:
    """What each order changes, on a scale of its own."""
    area = chart.area
    pitch, middles = _slots(rows, area)
    wide = min(_WIDEST_BAR, _BAR_SHARE * pitch)
    texts, size = _marginal_texts(rows, metric, pitch)
    items = _axis(chart, with_unit("marginal", metric), theme)
    bars: list[Item] = []
    for row, x, text in zip(rows, middles, texts, strict=True):
        if row.marginal is None:
            continue
        y, zero = chart.y(row.marginal), chart.y(0.0)
        top, tall = min(y, zero), max(abs(zero - y), 1.0)
        bar: list[Item] = [Rect(x - wide / 2, top, wide, tall, fill=theme.sign(row.marginal))]
        if row.marginal < 0:
            lines = hatch(x - wide / 2, top, wide, tall)
            bar += [Curve(lines, stroke=theme.background, stroke_width=1.4, opacity=0.6)] * bool(
                lines
            )
        error = (row.marginal_stderr or 0.0) * chart.scale
        bar += whisker(x, y, error, theme, upright=True)
        if size:
            beyond = _beyond(chart, row.marginal, row.marginal_stderr)
            ink = amount_colour(_written(row.marginal, metric), theme)
            paper = theme.background
            bar.append(Text(x, beyond, text, size, ink, "middle", bold=True, halo=paper))
        title = f"order {row.order}: marginal {_marginal_text(row, metric)}"
        bars.append(Group(tuple(bar), id=f"marginal-{row.order}", title=title, data=row))
    bars.append(Curve(segment(area.left, chart.y(0), area.right, chart.y(0)), stroke=theme.muted))
    items.append(Group(tuple(bars), id="marginals"))
    return items


def _marginal_text(row: "OrderRow", metric: MetricName) -> str:
    if row.marginal is None:
        return ""
    return with_error(row.marginal, row.marginal_stderr, metric, digits=_digits(metric))


def _beyond(chart: _Chart, value: float, error: float | None) -> float:
    """The baseline of a bar's number: over it, or, where it hangs, under it."""
    if value < 0:
        return chart.y(value - (error or 0.0)) + 6 + _SIZE * CAP_HEIGHT
    return chart.y(value + (error or 0.0)) - 6


def _title(row: "OrderRow", metric: MetricName) -> str:
    parts = [f"paths of up to {row.order} heads: {_written(row.value, metric, signed=False)}"]
    parts.append(
        f"{with_error(row.effect, row.stderr, metric, digits=_digits(metric))} against clean"
    )
    if row.marginal is not None:
        parts.append(f"{_marginal_text(row, metric)} against order {row.order - 1}")
    return ", ".join(parts)


def _fitting(texts: Sequence[str], pitch: float) -> float:
    """The size at which each of `texts` keeps to its bar's room; 0 for none that can be read."""
    widest = max(width(text, 1.0, bold=True) for text in texts)
    size = min(_SIZE, (pitch - 6) / widest if widest else _SIZE)
    return size if size >= _LEAST else 0.0


def _axis(chart: _Chart, words: str, theme: Theme) -> list[Item]:
    """Round values with hairlines, and what is measured, upright beside them."""
    area = chart.area
    down = area.bottom - area.top
    ticks = tick_values(chart.low, chart.high, down, 38.0)
    items: list[Item] = []
    for value in ticks:
        y = chart.y(value)
        items.append(Curve(segment(area.left, y, area.right, y), stroke=theme.faint))
        text = tick_text(value, ticks)
        items.append(Text(area.left - 8, y + 4, text, _SMALL, theme.muted, "end"))
    shown = elide(words, _SIZE, down + _OVER)
    x, y = MARGIN + _SIZE, (area.top + area.bottom) / 2
    items.append(Text(x, y, shown, _SIZE, theme.text, "middle", rotation=-90))
    return [Group(tuple(items), id="axis")]


def _digits(metric: MetricName) -> int:
    """One less than in a table: bars are for the back row."""
    return min(digits(metric), 3)


def _written(value: float, metric: MetricName, signed: bool = True) -> str:
    return written(value, metric, signed, _digits(metric))
