"""The path table as it stands, for a file: its order, filter, groups and folded groups.

Whatever is filtered out or has no room is one row with its exact sum, so what is written always
adds up to the model's logit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from circuitview.figures.path_table import TableRow
from circuitview.gui.tables.csv_text import csv_text
from circuitview.gui.tables.path_rows import PathRows
from circuitview.session import numbers

Block = tuple[int, list[int]]
HEADERS = ("path", "kind", "share", "logits")
_CSV_HEADERS = ("path", "kind", "group", "contribution", "share")


@dataclass(frozen=True, eq=False, slots=True)
class StandingTable:
    """What is to be seen of the rows of one expansion.

    Attributes:
        rows: all rows.
        blocks: (group, its shown rows in the order of display); one of group -1 where the rows are
            not grouped.
        folded: the names of the groups of which only the subtotal is to be seen.
    """

    rows: PathRows
    blocks: tuple[Block, ...]
    folded: frozenset[str] = frozenset()

    @property
    def grouped(self) -> bool:
        return any(group >= 0 for group, _ in self.blocks)

    @property
    def shown(self) -> list[int]:
        """Every row that the filter leaves, folded or not."""
        return [row for _, members in self.blocks for row in members]

    @property
    def hidden(self) -> list[int]:
        """The rows that the filter takes out."""
        kept = np.zeros(len(self.rows), dtype=bool)
        kept[self.shown] = True
        return np.flatnonzero(~kept).tolist()

    def is_folded(self, group: int) -> bool:
        return group >= 0 and self.rows.names.groups[group] in self.folded

    def figure_rows(self, capacity: int) -> list[TableRow]:
        """At most `capacity` lines: those in sight, and one for what is not shown.

        Where there are too many, a list keeps its first rows and groups keep their largest.
        """
        closing = self._closing_rows()
        room = capacity - len(closing)
        if room < 1:  # not even what is shown and what is not: everything is one line
            return [TableRow((f"{self.rows.n_terms:,} terms", "", "", self.rows.total), id="more")]
        if not self.grouped:
            return [*self._list(room), *closing]
        open_rows = [row for group, of in self.blocks if not self.is_folded(group) for row in of]
        sizes = np.abs(self.rows.contributions[open_rows])
        largest = np.array(open_rows, dtype=np.int64)[np.argsort(-sizes, kind="stable")]
        for n_kept in range(min(len(largest), room), 0, -1):
            lines = self._tree(frozenset(largest[:n_kept].tolist()))
            if len(lines) <= room:
                return [*lines, *closing]
        lines = self._tree(frozenset(), subtotals_only=True)
        return [*(lines if len(lines) <= room else self._more(self.shown)), *closing]

    def _list(self, room: int) -> list[TableRow]:
        shown = self.shown
        n_kept = len(shown) if len(shown) <= room else max(room - 1, 0)
        lines = [self._line(row) for row in shown[:n_kept]]
        return [*lines, *self._more(shown[n_kept:])]

    def _tree(self, kept: frozenset[int], subtotals_only: bool = False) -> list[TableRow]:
        lines = []
        for group, members in self.blocks:
            count = f"{len(members):,} row" + ("s" if len(members) != 1 else "")
            cells = (self.rows.names.groups[group], count, "", self._sum(members))
            lines.append(TableRow(cells, "group"))
            if subtotals_only or self.is_folded(group):
                continue
            lines += [self._line(row) for row in members if row in kept]
            lines += self._more([row for row in members if row not in kept])
        return lines

    def _line(self, row: int) -> TableRow:
        rows = self.rows
        share = numbers.percent(float(rows.shares[row]))
        cells = (rows.label(row), rows.kind(row), share, float(rows.contributions[row]))
        return TableRow(cells, data=rows.path(row))

    def _more(self, left_out: Sequence[int]) -> list[TableRow]:
        """What has no room; a single row takes no more of it than its sum would."""
        if len(left_out) <= 1:
            return [self._line(row) for row in left_out]
        return [TableRow((f"{len(left_out):,} more", "", "", self._sum(left_out)), id="more")]

    def _closing_rows(self) -> list[TableRow]:
        hidden = self.hidden
        if not hidden:
            return []
        return [
            TableRow(("sum of these", "", "", self._sum(self.shown)), "total"),
            TableRow((self._not_shown(hidden), "", "", self._sum(hidden)), "total", id="more"),
        ]

    def _not_shown(self, hidden: Sequence[int]) -> str:
        return f"{sum(map(self.rows.count, hidden)):,} not shown"

    def _sum(self, rows: Sequence[int]) -> float:
        return float(self.rows.contributions[list(rows)].sum())

    def csv(self) -> str:
        """The same as lines of cells, numbers at full precision; they add up to the total."""
        groups = self.rows.names.groups
        lines: list[tuple[object, ...]] = []
        for group, members in self.blocks:
            if self.is_folded(group):
                kind = f"{len(members)} rows"
                lines.append((groups[group], kind, groups[group], *self._amounts(members)))
            else:
                lines += written(self.rows, members)
        hidden = self.hidden
        if hidden:
            amounts = self._amounts(hidden)
            lines.append((self._not_shown(hidden), "not shown", "", *amounts))
        return csv_text(_CSV_HEADERS, lines)

    def _amounts(self, rows: Sequence[int]) -> tuple[float, float]:
        return self._sum(rows), float(self.rows.shares[list(rows)].sum())


def written(rows: PathRows, shown: Sequence[int]) -> list[tuple[object, ...]]:
    """`shown` as cells under the headers of the CSV."""
    lines: list[tuple[object, ...]] = []
    for row in shown:
        path = rows.path(row)
        group = rows.names.groups[rows.group[row]] if path is None else rows.names.grouping.of(path)
        amount, share = float(rows.contributions[row]), float(rows.shares[row])
        lines.append((rows.label(row), rows.kind(row), group, amount, share))
    return lines


def tab_separated(rows: PathRows, shown: Sequence[int]) -> str:
    """`shown` for the clipboard, as spreadsheets take it."""
    return csv_text(_CSV_HEADERS, written(rows, shown), "\t")
