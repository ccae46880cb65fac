"""What the lab found as a table beside a plot: the same rows, to be read and to be seen.

Contribution against measured effect where sites have a contribution; else the effects alone.
Of a text the contributions are to the mean logit of its next tokens.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from circuitview.core.ablation.metric import METRICS, MetricName
from circuitview.core.ablation.sites import Site
from circuitview.figures.effect_bars import effect_bars_figure, row_title
from circuitview.figures.effect_words import digits, effect_title, written
from circuitview.figures.enlarge import enlarged, enlargement, shifted
from circuitview.figures.figure import Figure, Group, Item
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.path_table import TableRow, table_figure
from circuitview.figures.scatter import ScatterPoint, ScatterText, scatter_figure
from circuitview.figures.text_width import width as text_width
from circuitview.figures.theme import Theme
from circuitview.session.run_words import ABLATED, CONTRIBUTION, EFFECT, REMOVED

if TYPE_CHECKING:
    from circuitview.core.ablation.table import Row

_BESIDE_FROM = 600.0  # pixels of width; below, the table stands over the plot
_STACKED_FROM = 340.0  # pixels of height; below, there is room for the plot alone
_WIDEST = 460.0  # pixels of table beside a plot, unless its numbers need more
_MOST_SHARE = 0.55  # of the width, for the table
_NAMES, _GAP = 110.0, 20.0  # pixels: for the names, and between columns
_TABLE_RIM, _ROW = 66.0, 19.0  # what table_figure needs around its rows, and for each
_Column = Literal["contribution", "effect", "± s.e.", "ablated"]  # as in run_words
_DIAGONAL = "effect = −contribution"


def lab_figure(
    rows: Sequence["Row"],
    *,
    metric: MetricName,
    clean: float,
    frozen: bool,
    title: str,
    note: str,
    theme: Theme,
    width: float,
    height: float,
    marked: Site | None = None,
    description: str = "",
    of_text: bool = False,
) -> Figure:
    """The table of `rows` in their order, and the plot of contribution against effect.

    Where no row has a contribution the effects alone, the largest first.

    Args:
        rows: one a site; where there are too many the first, and how many more there are.
        metric: what is measured; of a logit the diagonal is where effect = −contribution.
        clean: it, of the unchanged model.
        frozen: whether all else was held.
        title: what was measured.
        note: of which run.
        theme: whose colours.
        width, height: pixels.
        marked: the selected site.
        description: where the numbers come from.
        of_text: whether contributions are to the next tokens of a text, not to one target.
    """
    factor = enlargement(width, height)
    wide, high = width / factor, height / factor
    head, top = heading(title, note, theme, wide)
    # Each part brings a rim of its own, the heading's lower one is not needed twice.
    top, below = top - 14, high - top + 14
    scattered = any(row.contribution is not None for row in rows)
    items: list[Item] = []
    right = down = 0.0
    # Bars have their numbers written beside them: a table would say everything twice.
    if scattered and wide >= _BESIDE_FROM:
        columns, needed = _columns(rows, clean, metric, _MOST_SHARE * wide)
        if columns:
            right = max(needed, min(0.42 * wide, _WIDEST))
            items += shifted(_table(rows, clean, metric, columns, theme, right, below), 0, top)
    elif scattered and below >= _STACKED_FROM:
        columns, _ = _columns(rows, clean, metric, wide)
        if columns:
            down = min(_TABLE_RIM + _ROW * (len(rows) + 1), below / 2)
            items += shifted(_table(rows, clean, metric, columns, theme, wide, down), 0, top)
    words = lab_words(metric, frozen, of_text=of_text)
    plot = _plot(rows, words, metric, frozen, marked, theme, wide - right, below - down)
    items += shifted(plot, right, top + down)
    made = Figure(wide, high, theme.background, (head, *items), title, description)
    return enlarged(made, factor)


def lab_points(
    rows: Sequence["Row"], metric: MetricName, marked: Site | None = None
) -> tuple[ScatterPoint, ...]:
    """A point for each row that has a contribution."""
    return tuple(
        ScatterPoint(
            str(row.site),
            row.contribution,
            row.effect,
            row.site == marked,
            row.stderr,
            row_title(row, metric),
        )
        for row in rows
        if row.contribution is not None
    )


def lab_words(
    metric: MetricName, frozen: bool, title: str = "", note: str = "", *, of_text: bool = False
) -> ScatterText:
    """The words of the plot; only a logit has a diagonal, other effects have another unit."""
    diagonal = _DIAGONAL if METRICS[metric].linear else ""
    to = " to the next tokens, mean" if of_text else ""
    x = f"{CONTRIBUTION}{to} (logits)"
    return ScatterText(title, note, x, effect_title(metric, frozen), diagonal)


def _plot(
    rows: Sequence["Row"],
    words: ScatterText,
    metric: MetricName,
    frozen: bool,
    marked: Site | None,
    theme: Theme,
    width: float,
    height: float,
) -> tuple[Item, ...]:
    points = lab_points(rows, metric, marked)
    if points or not rows:
        return scatter_figure(points, words, theme, (width, height)).items
    return effect_bars_figure(
        rows,
        metric=metric,
        frozen=frozen,
        title="",
        note="",
        theme=theme,
        width=width,
        height=height,
        marked=marked,
    ).items


def _columns(
    rows: Sequence["Row"], clean: float, metric: MetricName, room: float
) -> tuple[tuple[_Column, ...], float]:
    """As many columns of numbers as fit into `room` beside the names, and how wide the table then
    is; none where not even the two that matter do."""
    known = any(row.stderr is not None for row in rows)
    whole: tuple[_Column, ...] = (
        CONTRIBUTION,
        EFFECT,
        *(("± s.e.",) if known else ()),
        ABLATED,
    )
    for columns in (whole, whole[:-1], whole[:2]):
        needed = 2 * MARGIN + _NAMES
        for column in columns:
            texts = [
                written(clean, metric, signed=False),
                *(_cell(row, column, metric) for row in rows),
            ]
            widest = max(text_width(text, 12.0, bold=True) for text in texts)
            needed += _GAP + max(widest, text_width(column, 11.0))
        if needed <= room:
            return columns, needed
    return (), 0.0


def _table(
    rows: Sequence["Row"],
    clean: float,
    metric: MetricName,
    columns: Sequence[_Column],
    theme: Theme,
    width: float,
    height: float,
) -> tuple[Item, ...]:
    capacity = max(int((height - _TABLE_RIM) // _ROW), 2)
    n_kept = len(rows) if len(rows) + 1 <= capacity else capacity - 2
    lines = [_line(row, columns, metric) for row in rows[:n_kept]]
    blank = ("",) * (len(columns) - 1)
    if n_kept < len(rows):  # effects of single sites don't add up: no sum stands for them
        lines.append(TableRow((f"{len(rows) - n_kept} more", *blank, ""), id="more"))
    lines.append(TableRow(("clean", *blank, written(clean, metric, signed=False)), "total"))
    figure = table_figure(
        (REMOVED, *columns),
        lines,
        title="",
        subtitle="",
        theme=theme,
        width=width,
        height=height,
        right_columns=range(1, len(columns) + 1),
        digits=digits(metric),
    )
    return (Group(figure.items, id="table"),)


def _line(row: "Row", columns: Sequence[_Column], metric: MetricName) -> TableRow:
    cells: list[str | float] = [str(row.site)]
    for column in columns:
        signed = row.contribution if column == CONTRIBUTION else row.effect
        coloured = column in (CONTRIBUTION, EFFECT) and signed is not None
        cells.append(signed if coloured and signed is not None else _cell(row, column, metric))
    return TableRow(tuple(cells), title=row_title(row, metric), data=row.site)


def _cell(row: "Row", column: _Column, metric: MetricName) -> str:
    value = {
        CONTRIBUTION: row.contribution,
        EFFECT: row.effect,
        "± s.e.": row.stderr,
        ABLATED: row.value,
    }[column]
    signed = column in (CONTRIBUTION, EFFECT)
    return "" if value is None else written(value, metric, signed)
