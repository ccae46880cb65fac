"""The Qt model of the path table: a list of rows, or a tree of groups with their rows.

It holds an arrangement, row numbers in the order of display, group by group; arranging again is a
reset, after which the panel finds the selected path by value.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QFont

from circuitview.core.path import Path
from circuitview.figures.theme import LIGHT, Theme
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE, BAR_ROLE
from circuitview.gui.tables.path_rows import COLUMNS, CONTRIBUTION, KIND, PATH, SHARE, PathRows
from circuitview.session import numbers
from circuitview.session.state import Selection

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
_N_COLUMNS = len(COLUMNS)
_AT_ONCE = 10_000  # rows of a list that a view is told of before it is scrolled
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
# As plain numbers, which compare much faster than members of an enumeration.
_DISPLAY = int(Qt.ItemDataRole.DisplayRole)
_FOREGROUND, _BACKGROUND = int(Qt.ItemDataRole.ForegroundRole), int(Qt.ItemDataRole.BackgroundRole)
_ALIGNMENT, _FONT = int(Qt.ItemDataRole.TextAlignmentRole), int(Qt.ItemDataRole.FontRole)
_TOOL_TIP, _ACCESSIBLE = int(Qt.ItemDataRole.ToolTipRole), int(Qt.ItemDataRole.AccessibleTextRole)
_ANSWERED = frozenset(
    (_DISPLAY, _FOREGROUND, _BACKGROUND, _ALIGNMENT, _FONT, _TOOL_TIP, _ACCESSIBLE)
) | {int(AMOUNT_ROLE), int(BAR_ROLE)}
_HINTS = (
    "source, then the heads that the path runs through",
    "how many heads: none, one, or more (virtual)",
    "what the path adds to the logit",
    "its |contribution| in the sum over all listed paths",
)


class PathModel(QAbstractItemModel):
    """Rows of PathRows, sorted, filtered and grouped."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: PathRows | None = None
        self.theme: Theme = LIGHT
        self.grouped = False
        self.column, self.descending = SHARE, True
        self.words, self.kind_wanted = "", ""
        self._selection = Selection()
        self._blocks: list[tuple[int, list[int]]] = []  # (group, its rows); one of group -1 if flat
        self._n_top = 0
        self._bold = QFont()
        self._make_brushes()

    # --- what is shown ---------------------------------------------------------------------------

    def show_rows(self, rows: PathRows | None) -> None:
        self.rows = rows
        self.arrange()

    def show_selection(self, selection: Selection, theme: Theme) -> None:
        """Tint the rows that are picked out."""
        if selection != self._selection or theme is not self.theme:
            self._selection, self.theme = selection, theme
            self._make_brushes()
            self._repaint()

    def _make_brushes(self) -> None:
        self._muted = QBrush(QColor(self.theme.muted))
        self._tint = QBrush(QColor(self.theme.selection))
        self._ground = QBrush(QColor(self.theme.panel))

    def set_font(self, font: QFont) -> None:
        self._bold = QFont(font)
        self._bold.setWeight(QFont.Weight.DemiBold)

    def arrange(self) -> None:
        """Sort, filter and group the rows anew."""
        self.beginResetModel()
        self._blocks = [] if self.rows is None else self.arranged(self.rows)
        self._n_top = len(self._blocks) if self.grouped else min(self._n_flat, _AT_ONCE)
        self.endResetModel()

    def arranged(self, rows: PathRows) -> list[tuple[int, list[int]]]:
        """(group, its rows in the order of display) of `rows`, be they shown yet or not."""
        order = rows.order(self.column, self.descending)
        if self.narrowed:
            order = order[rows.matching(self.words, self.kind_wanted or None)[order]]
        if not self.grouped:
            return [(-1, order.tolist())]
        group = rows.group[order]
        blocks = [(place, order[group == place]) for place in range(len(rows.names.groups))]
        return [(place, of.tolist()) for place, of in blocks if len(of) or not self.narrowed]

    @property
    def _n_flat(self) -> int:
        """How many rows a list without groups has, handed to the view or not."""
        return len(self._blocks[0][1]) if self._blocks and not self.grouped else 0

    def _repaint(self) -> None:
        # One signal for everything: the view asks again only for the cells on the screen.
        if self.rowCount():
            last = self.index(self.rowCount() - 1, len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    @property
    def shown_rows(self) -> list[int]:
        """The rows in the order of display."""
        return [row for _, rows in self._blocks for row in rows]

    @property
    def narrowed(self) -> bool:
        return bool(self.words or self.kind_wanted)

    def shown_sum(self) -> float:
        """What the shown rows add up to (logits)."""
        if self.rows is None:
            return 0.0
        return float(self.rows.contributions[self.shown_rows].sum())

    # --- from index to row and back --------------------------------------------------------------

    def row_at(self, index: Index) -> int | None:
        """The row number at an index; None at a group."""
        if not index.isValid() or not self._blocks:
            return None
        if not self.grouped:
            return self._blocks[0][1][index.row()]
        parent = index.internalId()
        return None if parent == 0 else self._blocks[parent - 1][1][index.row()]

    def path_at(self, index: Index) -> Path | None:
        row = self.row_at(index)
        return None if row is None or self.rows is None else self.rows.path(row)

    def group_at(self, index: Index) -> str | None:
        """The name of the group at an index; None at a row."""
        if not self.grouped or not index.isValid() or index.internalId() or self.rows is None:
            return None
        return self.rows.names.groups[self._blocks[index.row()][0]]

    def index_of(self, path: Path | None) -> QModelIndex:
        """Where `path` is shown; an invalid index where it is not."""
        if path is None or self.rows is None:
            return QModelIndex()
        for block, (_, rows) in enumerate(self._blocks):
            for place, row in enumerate(rows):
                if self.rows.path(row) == path:
                    if not self.grouped and place >= self._n_top:
                        self._hand_out(place + 1)
                    return self.createIndex(place, 0, block + 1 if self.grouped else 0)
        return QModelIndex()

    # --- Qt's side -------------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: Index = _ROOT) -> QModelIndex:
        # A view that lays out its items asks for every row: the plain case goes first.
        if 0 <= row < self._n_top and 0 <= column < _N_COLUMNS and not parent.isValid():
            return self.createIndex(row, column, 0)
        if not 0 <= row < self.rowCount(parent) or not 0 <= column < len(COLUMNS):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index = _ROOT) -> QModelIndex:  # type: ignore[override]
        inside = index.internalId() if index.isValid() else 0
        return self.createIndex(inside - 1, 0, 0) if inside else QModelIndex()

    def rowCount(self, parent: Index = _ROOT) -> int:
        if not parent.isValid():
            return self._n_top
        if not self.grouped or parent.internalId() or parent.column() > 0:
            return 0
        return len(self._blocks[parent.row()][1])

    def canFetchMore(self, parent: Index) -> bool:
        return not parent.isValid() and self._n_top < self._n_flat

    def fetchMore(self, parent: Index) -> None:
        if not parent.isValid():
            self._hand_out(self._n_top + _AT_ONCE)

    def _hand_out(self, wanted: int) -> None:
        """Let the view know of so many rows of a list; it asks for each that it knows of."""
        more = min(wanted, self._n_flat)
        if more > self._n_top:
            self.beginInsertRows(QModelIndex(), self._n_top, more - 1)
            self._n_top = more
            self.endInsertRows()

    def columnCount(self, parent: Index = _ROOT) -> int:  # noqa: ARG002 - Qt's signature
        return len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _HINTS[section]
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            numeric = section in (CONTRIBUTION, SHARE)
            return Qt.SortOrder.DescendingOrder if numeric else Qt.SortOrder.AscendingOrder
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = _DISPLAY) -> Any:
        rows = self.rows
        # Qt asks for a dozen roles a cell; most have no answer here.
        if role not in _ANSWERED or rows is None or not index.isValid():
            return None
        row, column = self.row_at(index), index.column()
        if row is None:
            return self._group_data(rows, self._blocks[index.row()], column, role)
        if role == _DISPLAY:
            return self._text(rows, row, column)
        if role == _FOREGROUND:
            return self._muted if self._steps_back(rows, row, column) else None
        if role == _BACKGROUND:
            path = rows.path(row) if self._selection.anything else None
            return self._tint if path is not None and self._selection.covers(path) else None
        if role == _ALIGNMENT:
            return _RIGHT if column == SHARE else None
        if role in (_TOOL_TIP, _ACCESSIBLE):
            return _spoken(rows, row)
        if column != CONTRIBUTION:
            return None
        return float(rows.contributions[row]) if role == AMOUNT_ROLE else role == BAR_ROLE

    def _steps_back(self, rows: PathRows, row: int, column: int) -> bool:
        """Whether a cell has the colour of secondary text."""
        return column in (KIND, SHARE) or (column == PATH and rows.path(row) is None)

    def _text(self, rows: PathRows, row: int, column: int) -> str | None:
        if column == PATH:
            return rows.label(row)
        if column == KIND:
            return rows.kind(row)
        # The delegate draws the contribution.
        return numbers.percent(float(rows.shares[row])) if column == SHARE else None

    def _group_data(
        self, rows: PathRows, block: tuple[int, Sequence[int]], column: int, role: int
    ) -> Any:
        group, members = block
        if role == _FONT:
            return self._bold
        if role == AMOUNT_ROLE and column == CONTRIBUTION:
            return self._subtotal(rows, group, members)
        if role == _DISPLAY and column == PATH:
            return rows.names.groups[group]
        if role == _DISPLAY and column == KIND:
            return f"{len(members)} row" + ("s" if len(members) != 1 else "")
        return self._ground if role == _BACKGROUND else None

    def _subtotal(self, rows: PathRows, group: int, members: Sequence[int]) -> float:
        """Of the whole group, or of what a filter leaves of it."""
        if self.narrowed:
            return float(rows.contributions[np.asarray(members, dtype=np.int64)].sum())
        return float(rows.subtotals[group])


def _spoken(rows: PathRows, row: int) -> str:
    amount = numbers.logits(float(rows.contributions[row]), signed=True)
    share = numbers.percent(float(rows.shares[row]))
    return f"{rows.label(row)}\n{amount} logits, {share} of all sizes"
