"""Zeroed heads as a table beside the scatter plot: the same rows, to be read and to be seen."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from circuitview.core.names import Head
from circuitview.figures.enlarge import enlarged, enlargement, shifted
from circuitview.figures.figure import Figure, Group, Item
from circuitview.figures.heading import heading
from circuitview.figures.path_table import TableRow, table_figure
from circuitview.figures.scatter import ScatterPoint, ScatterText, scatter_figure
from circuitview.figures.theme import Theme
from circuitview.session import numbers

if TYPE_CHECKING:  # torch loads only where something is computed
    from circuitview.core.ablation.zero_heads import AblationRow

_HEADERS = ("head", "contribution", "effect", "ablated")
_BESIDE_FROM = 600.0  # pixels of width; below, the table stands over the plot
_STACKED_FROM = 340.0  # pixels of height; below, there is room for the plot alone
_TABLE_WIDTH = 290.0, 420.0
_TABLE_RIM, _ROW = 66.0, 19.0  # what table_figure needs around its rows, and for each


def ablation_figure(
    rows: Sequence["AblationRow"],
    clean: float,
    words: ScatterText,
    *,
    theme: Theme,
    width: float,
    height: float,
    marked: Head | None = None,
    description: str = "",
) -> Figure:
    """The table of `rows` in their order, and the plot of contribution against effect.

    Args:
        rows: one a head; where there are too many the first, and how many more there are.
        clean: the logit with every head (logits).
        words: title, note and axis titles.
        theme: whose colours.
        width, height: pixels.
        marked: the selected head.
        description: where the numbers come from.
    """
    points = [
        ScatterPoint(str(row.head), row.contribution, row.effect, row.head == marked)
        for row in sorted(rows, key=_head_of)
    ]
    factor = enlargement(width, height)
    wide, high = width / factor, height / factor
    head, top = heading(words.title, words.note, theme, wide)
    # Each part brings a rim of its own, the heading's lower one is not needed twice.
    top, below = top - 14, high - top + 14
    bare = ScatterText("", "", words.x, words.y, words.diagonal, words.empty)
    if rows and wide >= _BESIDE_FROM:
        part = min(max(0.4 * wide, _TABLE_WIDTH[0]), _TABLE_WIDTH[1])
        table = _table(rows, clean, theme, part, below)
        plot = scatter_figure(points, bare, theme, (wide - part, below))
        items = [*shifted(table, 0, top), *shifted(plot.items, part, top)]
    elif rows and below >= _STACKED_FROM:
        part = min(_TABLE_RIM + _ROW * (len(rows) + 1), below / 2)
        table = _table(rows, clean, theme, wide, part)
        plot = scatter_figure(points, bare, theme, (wide, below - part))
        items = [*shifted(table, 0, top), *shifted(plot.items, 0, top + part)]
    else:
        return scatter_figure(points, words, theme, (width, height), description)
    made = Figure(wide, high, theme.background, (head, *items), words.title, description)
    return enlarged(made, factor)


def _table(
    rows: Sequence["AblationRow"], clean: float, theme: Theme, width: float, height: float
) -> tuple[Item, ...]:
    capacity = max(int((height - _TABLE_RIM) // _ROW), 2)
    n_kept = len(rows) if len(rows) + 1 <= capacity else capacity - 2
    lines = [_line(row) for row in rows[:n_kept]]
    if n_kept < len(rows):  # effects of single heads don't add up: no sum stands for them
        lines.append(TableRow((f"{len(rows) - n_kept} more", "", "", ""), id="more"))
    lines.append(TableRow(("clean", "", "", numbers.logits(clean)), "total"))
    figure = table_figure(
        _HEADERS,
        lines,
        title="",
        subtitle="",
        theme=theme,
        width=width,
        height=height,
        right_columns=(3,),
    )
    return (Group(figure.items, id="table"),)


def _line(row: "AblationRow") -> TableRow:
    cells = (str(row.head), row.contribution, row.effect, numbers.logits(row.value))
    return TableRow(cells, data=row.head)


def _head_of(row: "AblationRow") -> Head:
    return row.head
