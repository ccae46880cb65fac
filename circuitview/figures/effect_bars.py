"""Effects as bars, the largest on top: of sites that have no contribution to set beside them.

A site of several kinds, like a head and an MLP together, has none. The whisker at the end of a bar
is a standard error to each side. Where not all rows fit, it says how many smaller ones there are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.sites import Site
from circuitview.figures.effect_words import effect_title, with_error, written
from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.signed_bar import signed_bar
from circuitview.figures.text_width import CAP_HEIGHT, elide, width
from circuitview.figures.theme import Theme, amount_colour
from circuitview.session.run_words import ABLATED, CONTRIBUTION, EFFECT

if TYPE_CHECKING:  # keeps numpy's table out of what only draws
    from circuitview.core.ablation.table import Row

_SIZE, _SMALL = 12.0, 11.0
_ROW_SPAN = 18.0, 30.0  # the least and the most height of a row
_FOOT = 40.0  # pixels under the bars, for the axis title and the line about what is left out
_GAP = 14.0
_LABEL_SHARE = 0.34  # of the width, at most, for the names
_LEAST_BARS = 90.0  # pixels; with less room the numbers give way
_CAP = 3.0


class _Columns(NamedTuple):
    """The right edge of names and numbers, the zero of the bars, pixels a unit, the right edge."""

    label: float
    number: float | None
    zero: float
    scale: float
    right: float


def effect_bars_figure(
    rows: Sequence["Row"],
    *,
    metric: MetricName,
    frozen: bool,
    title: str,
    note: str,
    theme: Theme,
    width: float,
    height: float,
    marked: Site | None = None,
    description: str = "",
    empty: str = "nothing measured yet",
) -> Figure:
    """The bars of `rows`, the largest |effect| first; the arguments are those of lab_figure."""
    head, top = heading(title, note, theme, width)
    if not rows:
        middle = (top + height) / 2
        text = Text(width / 2, middle, empty, _SIZE, theme.muted, "middle")
        return Figure(width, height, theme.background, (head, text), title, description)
    ranked = sorted(rows, key=lambda row: -abs(row.effect))
    room = max(height - top - _FOOT - MARGIN, _ROW_SPAN[0])
    kept = ranked[: max(1, int(room // _ROW_SPAN[0]))]
    # The marked one is shown, however small.
    missing = [row for row in ranked[len(kept) :] if row.site == marked]
    kept[len(kept) - len(missing) :] = missing
    pitch = min(room / len(kept), _ROW_SPAN[1])
    columns = _columns(kept, metric, width)
    bottom = top + pitch * len(kept)
    zero = Curve(segment(columns.zero, top, columns.zero, bottom), stroke=theme.muted)
    bars: list[Item] = []
    for place, row in enumerate(kept):
        middle = top + (place + 0.5) * pitch
        bars.append(_row(row, middle, pitch, columns, metric, row.site == marked, theme))
    foot = _foot(len(ranked) - len(kept), bottom, columns, effect_title(metric, frozen), theme)
    items = (head, Group((*bars, zero), id="effects"), foot)
    return Figure(width, height, theme.background, items, title, description)


def row_title(row: "Row", metric: MetricName) -> str:
    """What is said of a row that is pointed at."""
    parts = [f"{EFFECT} {with_error(row.effect, row.stderr, metric)}"]
    if row.contribution is not None:
        parts.insert(0, f"{CONTRIBUTION} {written(row.contribution, 'logit')}")
    parts.append(f"{ABLATED} {written(row.value, metric, signed=False)}")
    return f"{row.site}: {', '.join(parts)}"


def _columns(rows: Sequence["Row"], metric: MetricName, wide: float) -> _Columns:
    longest = max(width(str(row.site), _SIZE, bold=True) for row in rows)
    label = MARGIN + min(longest, _LABEL_SHARE * wide)
    needed = max(width(with_error(row.effect, row.stderr, metric), _SIZE, True) for row in rows)
    number: float | None = label + _GAP + needed
    right = wide - MARGIN
    if number is None or right - number - _GAP < _LEAST_BARS:
        number = None
    left = (label if number is None else number) + _GAP
    low = min(0.0, *(row.effect - (row.stderr or 0.0) for row in rows), 0.0)
    high = max(0.0, *(row.effect + (row.stderr or 0.0) for row in rows), 0.0)
    scale = (right - left) / (high - low) if high - low > 1e-300 else 0.0
    return _Columns(label, number, left - low * scale, scale, right)


def _row(
    row: "Row",
    middle: float,
    pitch: float,
    columns: _Columns,
    metric: MetricName,
    marked: bool,
    theme: Theme,
) -> Group:
    y = middle + _SIZE * CAP_HEIGHT / 2
    items: list[Item] = []
    if marked:
        back = MARGIN - 6, middle - pitch / 2 + 1, columns.right - MARGIN + 12, pitch - 2
        items.append(Rect(*back, fill=theme.selection, radius=4))
    name = elide(str(row.site), _SIZE, columns.label - MARGIN, marked)
    items.append(Text(columns.label, y, name, _SIZE, theme.text, "end", bold=marked))
    if columns.number is not None:
        text = with_error(row.effect, row.stderr, metric)
        ink = amount_colour(written(row.effect, metric), theme)
        items.append(Text(columns.number, y, text, _SIZE, ink, "end", bold=marked))
    thick = min(pitch * 0.6, 14.0)
    length = row.effect * columns.scale
    items += signed_bar(columns.zero, length, middle - thick / 2, thick, theme)
    if row.stderr:
        items += whisker(columns.zero + length, middle, row.stderr * columns.scale, theme)
    title = row_title(row, metric)
    return Group(tuple(items), id=f"effect-{row.site}", title=title, data=row.site)


def whisker(
    x: float, y: float, reach: float, theme: Theme, upright: bool = False
) -> tuple[Item, ...]:
    """An error bar about (x, y), `reach` pixels to each side; nothing where that is no pixel."""
    if reach < 0.5:
        return ()
    if upright:
        ends = (
            (x - _CAP, y - reach, x + _CAP, y - reach),
            (x - _CAP, y + reach, x + _CAP, y + reach),
        )
        line = segment(x, y - reach, x, y + reach)
    else:
        ends = (
            (x - reach, y - _CAP, x - reach, y + _CAP),
            (x + reach, y - _CAP, x + reach, y + _CAP),
        )
        line = segment(x - reach, y, x + reach, y)
    commands = (*line, *segment(*ends[0]), *segment(*ends[1]))
    # A rim keeps it apart from a bar of whatever colour.
    rim = Curve(commands, stroke=theme.background, stroke_width=3.2, opacity=0.8)
    return rim, Curve(commands, stroke=theme.text, stroke_width=1.3)


def _foot(n_more: int, bottom: float, columns: _Columns, words: str, theme: Theme) -> Group:
    y = bottom + 20
    room = columns.right - MARGIN
    more = f"{n_more} more, of smaller effect" if n_more else ""
    if width(more, _SMALL) + _GAP + width(words, _SIZE) > room:
        more = f"{n_more} more" if n_more else ""
    across = width(more, _SMALL)
    shown = elide(words, _SIZE, room - across - _GAP)
    return Group(
        (
            *([Text(MARGIN, y, more, _SMALL, theme.muted)] if more else []),
            Text(columns.right, y, shown, _SIZE, theme.text, "end"),
        ),
        id="axis",
    )
