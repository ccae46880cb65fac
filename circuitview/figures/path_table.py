"""A table of paths, or of anything else that adds up: groups with subtotals, and a total.

Numbers are right-aligned, negatives have a minus and the colour for it. Where not all rows fit, the
ones with the largest amounts stay in each group, and "n more" stands for the others with their
exact sum: what is seen always adds up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.text_width import CAP_HEIGHT, elide, width
from circuitview.figures.theme import Theme, amount_colour
from circuitview.session import numbers

RowKind = Literal["group", "row", "total"]
Cell = str | float

_SIZE, _SMALL = 12.0, 11.0
_HEADER = 24.0
_PITCH_SPAN = 19.0, 26.0
GAP, _INDENT = 20.0, 14.0
_WIDEST_GAP = 120.0
_LEAST_TEXT = 60.0  # pixels that a column of text keeps when room is short


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row.

    Attributes:
        cells: texts, and numbers in logits; as many as there are headers.
        kind: a "group" row carries the subtotal of the rows below it; a "total" stands at the end.
        id: names the row in exported files.
        title: what a reader sees when pointing at it.
        data: what the row stands for, like a Path.
    """

    cells: tuple[Cell, ...]
    kind: RowKind = "row"
    id: str | None = None
    title: str | None = None
    data: Any = None


@dataclass(frozen=True, slots=True)
class _Column:
    left: float
    right: float
    numeric: bool


def table_figure(
    headers: Sequence[str],
    rows: Sequence[TableRow],
    *,
    title: str,
    subtitle: str,
    theme: Theme,
    width: float,
    height: float,
    description: str = "",
    amount_column: int = -1,
    right_columns: Sequence[int] = (),
    digits: int = 2,
    gap: float = GAP,
) -> Figure:
    """The table of `rows`.

    Args:
        headers: the names of the columns.
        rows: in the order of display, each group before its rows.
        title: what the table shows.
        subtitle: of which run.
        theme: whose colours.
        width: of the figure, in pixels.
        height: of the figure, in pixels.
        description: where the numbers come from.
        amount_column: the column that is summed up where rows are left out.
        right_columns: columns of written numbers, aligned like the others' amounts.
        digits: of the numbers, behind the point.
        gap: pixels between two columns, at least.
    """
    head, top = heading(title, subtitle, theme, width)
    room = height - top - _HEADER - MARGIN
    capacity = max(1, int(room // _PITCH_SPAN[0]))
    shown = fitting_rows(rows, capacity, len(headers), amount_column)
    pitch = min(max(room / max(len(shown), 1), _PITCH_SPAN[0]), _PITCH_SPAN[1])
    columns = _columns(headers, shown, width, right_columns, digits, gap)
    indented = any(row.kind == "group" for row in shown)
    right = columns[-1].right if columns else width - MARGIN
    items: list[Item] = [head, _header(headers, columns, top, right, theme)]
    y = top + _HEADER
    for row in shown:
        items.append(_row(row, y, pitch, columns, indented, right, theme, digits))
        y += pitch
    return Figure(width, height, theme.background, tuple(items), title, description)


def fitting_rows(
    rows: Sequence[TableRow], capacity: int, n_columns: int, amount_column: int = -1
) -> tuple[TableRow, ...]:
    """At most `capacity` rows that stand for all of them: the largest, and sums of the others."""
    if len(rows) <= capacity:
        return tuple(rows)
    plain = [place for place, row in enumerate(rows) if row.kind == "row"]
    by_size = sorted(plain, key=lambda place: (-abs(_amount(rows[place], amount_column)), place))
    for n_kept in range(len(plain), -1, -1):
        kept = set(by_size[:n_kept])
        shown = _with_sums(rows, kept, n_columns, amount_column)
        if len(shown) <= capacity:
            return shown
    # Not even the subtotals fit: treat them as the rows, what is below them is in them.
    flat = [_as_row(row) for row in rows if row.kind == "group"]
    if flat:
        totals = [row for row in rows if row.kind == "total"]
        return fitting_rows([*flat, *totals], capacity, n_columns, amount_column)
    return tuple(row for row in rows if row.kind == "total")[:capacity]


def _as_row(row: TableRow) -> TableRow:
    return TableRow(row.cells, "row", row.id, row.title, row.data)


def _amount(row: TableRow, amount_column: int) -> float:
    cell = row.cells[amount_column]
    return 0.0 if isinstance(cell, str) else cell


def _with_sums(
    rows: Sequence[TableRow], kept: set[int], n_columns: int, amount_column: int
) -> tuple[TableRow, ...]:
    """The rows kept, and at the end of each group one for those that are not."""
    shown: list[TableRow] = []
    left_out: list[TableRow] = []

    def close() -> None:
        if len(left_out) <= 1:  # a sum of one row is no shorter than the row
            shown.extend(left_out)
            left_out.clear()
            return
        cells: list[Cell] = [""] * n_columns
        cells[0] = f"{len(left_out)} more"
        cells[amount_column] = math.fsum(_amount(row, amount_column) for row in left_out)
        shown.append(TableRow(tuple(cells), "row", id="more", title=f"{cells[0]}, their sum"))
        left_out.clear()

    for place, row in enumerate(rows):
        if row.kind != "row":
            close()
            shown.append(row)
        elif place in kept:
            shown.append(row)
        else:
            left_out.append(row)
    close()
    return tuple(shown)


def _written(cell: Cell, digits: int) -> str:
    return cell if isinstance(cell, str) else numbers.logits(cell, signed=True, digits=digits)


def _columns(
    headers: Sequence[str],
    rows: Sequence[TableRow],
    wide: float,
    right: Sequence[int],
    digits: int,
    gap: float,
) -> list[_Column]:
    """Numbers get what they need; texts share the rest, the longer giving way first."""
    numeric = [
        place in right or any(isinstance(row.cells[place], float | int) for row in rows)
        for place in range(len(headers))
    ]
    needs = []
    grouped = any(row.kind == "group" for row in rows)
    for place, header in enumerate(headers):
        widths = [
            width(_written(row.cells[place], digits), _SIZE, row.kind != "row") for row in rows
        ]
        spare = _INDENT if place == 0 and grouped else 0.0
        needs.append(max([width(header, _SMALL), *widths]) + spare)
    room = wide - 2 * MARGIN - gap * (len(headers) - 1)
    texts = [place for place, number in enumerate(numeric) if not number]
    over = sum(needs) - room
    while over > 0.01 and texts:
        longest = max(texts, key=lambda place: needs[place])
        cut = min(over, max(needs[longest] - _LEAST_TEXT, 0.0), 8.0)
        if cut <= 0:
            break
        needs[longest] -= cut
        over -= cut
    # What is left over goes between the first column and the next, as long as the eye can follow.
    spare = min(max(-over, 0.0), _WIDEST_GAP)
    columns: list[_Column] = []
    left = MARGIN
    for place, need in enumerate(needs):
        columns.append(_Column(left, left + need, numeric[place]))
        left += need + gap + (spare if place == 0 else 0.0)
    return columns


def _header(
    headers: Sequence[str], columns: Sequence[_Column], top: float, right: float, theme: Theme
) -> Group:
    y = top + 11
    items: list[Item] = [
        Text(column.right, y, header, _SMALL, theme.muted, "end")
        if column.numeric
        else Text(column.left, y, header, _SMALL, theme.muted)
        for header, column in zip(headers, columns, strict=True)
    ]
    items.append(Curve(segment(MARGIN, top + 18, right, top + 18), stroke=theme.faint))
    return Group(tuple(items), id="columns")


def _row(
    row: TableRow,
    top: float,
    pitch: float,
    columns: Sequence[_Column],
    indented: bool,
    right: float,
    theme: Theme,
    digits: int,
) -> Group:
    bold = row.kind != "row"
    items: list[Item] = []
    if row.kind == "total":
        items.append(Curve(segment(MARGIN, top + 1, right, top + 1), stroke=theme.muted))
    elif row.kind == "group":
        back = MARGIN - 6, top + 1.5, right - MARGIN + 12, pitch - 3
        items.append(Rect(*back, fill=theme.panel, radius=4))
    y = top + pitch / 2 + _SIZE * CAP_HEIGHT / 2
    main = theme.muted if row.id == "more" else theme.text
    for place, (cell, column) in enumerate(zip(row.cells, columns, strict=True)):
        text = _written(cell, digits)
        if not isinstance(cell, str):
            color = amount_colour(text, theme)
            items.append(Text(column.right, y, text, _SIZE, color, "end", bold=bold))
            continue
        left = column.left + (_INDENT if indented and place == 0 and not bold else 0.0)
        # A hair more: what the column was made for must not be cut by rounding.
        shown = elide(text, _SIZE, column.right - left + 0.01, bold)
        color = main if place == 0 or bold else theme.muted
        if shown and column.numeric:
            items.append(Text(column.right, y, shown, _SIZE, color, "end", bold=bold))
        elif shown:
            items.append(Text(left, y, shown, _SIZE, color, bold=bold))
    return Group(tuple(items), row.id, row.title, data=row.data)
