"""The Qt model of the ablation table: one row a head, in the order of arrival or sorted."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor

from circuitview.core.names import Head
from circuitview.figures.theme import LIGHT, Theme
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE, BAR_ROLE, BarScale
from circuitview.session import numbers

if TYPE_CHECKING:
    from circuitview.core.ablation.zero_heads import AblationRow

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
COLUMNS = ("head", "contribution", "effect", "ablated")
HEAD, CONTRIBUTION, EFFECT, ABLATED = range(4)
_HINTS = (
    "the head whose output is set to zero",
    "all that runs through the head, its value bias included: bookkeeping",
    "what zeroing it does to the logit, ablated − clean: an experiment",
    "the logit without the head",
)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class AblationModel(QAbstractTableModel):
    """Rows of AblationRow."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.rows: list[AblationRow] = []
        self.theme: Theme = LIGHT
        self.stale = False
        self._sorting: tuple[int, bool] | None = None

    def clear(self) -> None:
        self.beginResetModel()
        self.rows = []
        self.endResetModel()

    def add(self, rows: Iterable["AblationRow"]) -> None:
        """Rows that have just been measured go to the end, until the next sort."""
        new = list(rows)
        if new:
            first = len(self.rows)
            self.beginInsertRows(QModelIndex(), first, first + len(new) - 1)
            self.rows += new
            self.endInsertRows()

    def order_by(self, column: int, descending: bool) -> None:
        self._sorting = column, descending
        self.sort_rows()

    def sort_rows(self) -> None:
        """Put all rows in the order that was asked for last."""
        if self._sorting is not None:
            column, descending = self._sorting
            self.beginResetModel()
            keys = (_by_head, _by_contribution, _by_effect, _by_value)
            self.rows.sort(key=keys[column], reverse=descending)
            self.endResetModel()

    def show_as(self, theme: Theme, stale: bool) -> None:
        """Paint all rows in `theme`, paler where they are not of what is asked now."""
        if (theme, stale) != (self.theme, self.stale):
            self.theme, self.stale = theme, stale
            if self.rows:
                last = self.index(len(self.rows) - 1, len(COLUMNS) - 1)
                self.dataChanged.emit(self.index(0, 0), last)

    def index_of(self, head: Head | None) -> QModelIndex:
        """The row of `head`; an invalid index where it has none."""
        for place, row in enumerate(self.rows):
            if row.head == head:
                return self.index(place, 0)
        return QModelIndex()

    def head_at(self, index: Index) -> Head | None:
        return self.rows[index.row()].head if index.isValid() else None

    def scale(self) -> BarScale:
        """One scale for contributions and effects, so that the two can be compared."""
        amounts = [amount for row in self.rows for amount in (row.contribution, row.effect)]
        if not amounts:
            return BarScale()
        return BarScale(min(amounts), max(amounts), max(map(abs, amounts)))

    # --- Qt's side -------------------------------------------------------------------------------

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return COLUMNS[section]
            case Qt.ItemDataRole.ToolTipRole:
                return _HINTS[section]
            case Qt.ItemDataRole.InitialSortOrderRole:
                rising, falling = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
                return rising if section in (HEAD, EFFECT) else falling
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self.rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole if column == HEAD:
                return str(row.head)
            case Qt.ItemDataRole.DisplayRole if column == ABLATED:
                return numbers.logits(row.value)
            case Qt.ItemDataRole.TextAlignmentRole if column == ABLATED:
                return _RIGHT
            case Qt.ItemDataRole.ForegroundRole if self.stale or column == ABLATED:
                return QBrush(QColor(self.theme.muted))
            case Qt.ItemDataRole.ToolTipRole | Qt.ItemDataRole.AccessibleTextRole:
                return _spoken(row)
        if column not in (CONTRIBUTION, EFFECT):
            return None
        if role == AMOUNT_ROLE:
            return row.contribution if column == CONTRIBUTION else row.effect
        return True if role == BAR_ROLE else None


def _spoken(row: "AblationRow") -> str:
    contribution = numbers.logits(row.contribution, signed=True)
    effect = numbers.logits(row.effect, signed=True)
    return f"{row.head}: contributes {contribution}; zeroing it changes the logit by {effect}"


def _by_head(row: "AblationRow") -> Head:
    return row.head


def _by_contribution(row: "AblationRow") -> float:
    return row.contribution


def _by_effect(row: "AblationRow") -> float:
    return row.effect


def _by_value(row: "AblationRow") -> float:
    return row.value
