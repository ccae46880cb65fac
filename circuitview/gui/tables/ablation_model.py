"""The Qt model of a run's table: one row a site, in the order of arrival or sorted."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor

from circuitview.core.ablation.metric import METRICS, MetricName
from circuitview.core.ablation.sites import Site
from circuitview.figures.theme import LIGHT, Theme
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE, BAR_ROLE, BarScale
from circuitview.session import numbers
from circuitview.session.run_words import ABLATED, CONTRIBUTION, EFFECT, REMOVED, UP_TO

if TYPE_CHECKING:
    from circuitview.core.ablation.table import OrderRow, Row

    AnyRow = Row | OrderRow

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_AT_ONCE = 400  # rows that the view is told of, or is given more of when it reaches their end
_LOGITS, _FINE = 2, 4  # digits: logits, and what is mostly below one


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        read: its value in a row; None where the row has none.
        bar: whether it has a bar, on one scale with all that have one.
        falling: whether it is first sorted from the largest down.
    """

    name: str
    hint: str
    read: "Callable[[AnyRow], float | None]"
    digits: int = _LOGITS
    signed: bool = False
    bar: bool = False
    falling: bool = True


def columns_for(metric: MetricName, by_order: bool) -> tuple[Column, ...]:
    """The columns beside the site, for a metric, and for paths up to each order."""
    known = METRICS[metric]
    digits = _LOGITS if known.linear else _FINE
    title = known.title
    if by_order:
        hint = f"{title} with the paths of up to so many heads"
        return (
            Column(title, hint, _value, digits, falling=False),
            Column("marginal", "that minus the order before", _marginal, digits, True, True),
            Column("±", "standard error of the marginal value", _marginal_error, digits),
        )
    contribution = (
        "all that runs through it, value biases included [logits; of a text to its next tokens, "
        "mean]: bookkeeping"
    )
    effect = f"what removing it does: {title}, ablated − clean: an experiment"
    # Only logits can be compared with logits by the length of a bar.
    return (
        Column(CONTRIBUTION, contribution, _contribution, _LOGITS, True, known.linear),
        Column(EFFECT, effect, _effect, digits, True, True, falling=False),
        Column("±", "standard error of the effect", _stderr, digits),
        Column(ABLATED, f"{title} without it", _value, digits),
    )


class AblationModel(QAbstractTableModel):
    """Rows of Row or of OrderRow; the first column is the site."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: list[AnyRow] = []
        self.columns: tuple[Column, ...] = columns_for("logit", by_order=False)
        self.by_order = False
        self.theme: Theme = LIGHT
        self.stale = False
        self._places: dict[Site, int] = {}
        self._arrived: dict[Site, int] = {}
        self._sorting: tuple[int, bool] | None = None
        self._scale = BarScale()
        self._n_out = 0  # rows that the view knows of: at each change it goes through all of them

    def show_run(self, rows: "Iterable[AnyRow]", metric: MetricName, by_order: bool) -> None:
        """Show the rows of another run."""
        self.beginResetModel()
        self.columns, self.by_order = columns_for(metric, by_order), by_order
        self.rows = list(rows)
        self._arrived = {row.site: place for place, row in enumerate(self.rows)}
        self._order()
        self._scale = self._widened(BarScale(), self.rows)
        self._n_out = min(len(self.rows), _AT_ONCE)
        self.endResetModel()

    def put(self, rows: "Iterable[AnyRow]") -> None:
        """Rows measured anew change where they stand, new ones go to the end until a sort."""
        new: list[AnyRow] = []
        changed: list[int] = []
        # One report may bring a site several times, after each window; the last is the newest.
        rows = list({row.site: row for row in rows}.values())
        self._scale = self._widened(self._scale, rows)
        for row in rows:
            place = self._places.get(row.site)
            if place is None:
                new.append(row)
            elif self.rows[place] is not row:
                self.rows[place] = row
                changed.append(place)
        changed = [place for place in changed if place < self._n_out]
        if changed:
            last = self.index(max(changed), len(self.columns))
            self.dataChanged.emit(self.index(min(changed), 0), last)
        for row in new:
            self._places[row.site] = self._arrived[row.site] = len(self.rows)
            self.rows.append(row)
        self._hand_out(_AT_ONCE)

    def _hand_out(self, wanted: int) -> None:
        """Let the view know of so many rows."""
        more = min(wanted, len(self.rows))
        if more > self._n_out:
            self.beginInsertRows(QModelIndex(), self._n_out, more - 1)
            self._n_out = more
            self.endInsertRows()

    def order_by(self, column: int, descending: bool) -> None:
        self._sorting = column, descending
        self.sort_rows()

    def sort_rows(self) -> None:
        """Put all rows in the order that was asked for last."""
        if self._sorting is None:
            return
        self.beginResetModel()
        self._order()
        self.endResetModel()

    def _order(self) -> None:
        if self._sorting is not None:
            column, descending = self._sorting
            self.rows.sort(key=self._key(column, descending))
        self._places = {row.site: place for place, row in enumerate(self.rows)}

    def _key(self, column: int, descending: bool) -> "Callable[[AnyRow], Any]":
        sign = -1 if descending else 1
        if column == 0 or column > len(self.columns):
            return lambda row: sign * self._arrived[row.site]
        read = self.columns[column - 1].read

        def key(row: "AnyRow") -> tuple[bool, float]:
            value = read(row)
            missing = value is None or math.isnan(value)
            return missing, 0.0 if missing else sign * float(value or 0.0)

        return key

    def show_as(self, theme: Theme, stale: bool) -> None:
        """Paint all rows in `theme`, paler where they are not of what is asked now."""
        if (theme, stale) != (self.theme, self.stale):
            self.theme, self.stale = theme, stale
            if self._n_out:
                last = self.index(self._n_out - 1, len(self.columns))
                self.dataChanged.emit(self.index(0, 0), last)

    def index_of(self, site: Site | None) -> QModelIndex:
        """The row of `site`; an invalid index where it has none."""
        place = None if site is None else self._places.get(site)
        if place is None:
            return QModelIndex()
        self._hand_out(place + 1)
        return self.index(place, 0)

    def site_at(self, index: Index) -> Site | None:
        return self.rows[index.row()].site if index.isValid() else None

    def scale(self) -> BarScale:
        """One scale for all columns with bars, so that they can be compared."""
        return self._scale

    def _widened(self, scale: BarScale, rows: "Iterable[AnyRow]") -> BarScale:
        """A scale that has room for more rows."""
        columns = [column for column in self.columns if column.bar]
        found = (column.read(row) for row in rows for column in columns)
        amounts = [amount for amount in found if amount is not None and math.isfinite(amount)]
        low, high = min([scale.low, *amounts]), max([scale.high, *amounts])
        return BarScale(low, high, max(-low, high))

    # --- Qt's side -------------------------------------------------------------------------------

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else self._n_out

    def canFetchMore(self, parent: Index) -> bool:
        return not parent.isValid() and self._n_out < len(self.rows)

    def fetchMore(self, parent: Index) -> None:
        if not parent.isValid():
            self._hand_out(self._n_out + _AT_ONCE)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else 1 + len(self.columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section <= len(self.columns):
            return None
        column = self.columns[section - 1] if section else None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.name if column else UP_TO if self.by_order else REMOVED
            case Qt.ItemDataRole.ToolTipRole:
                return column.hint if column else self._site_hint()
            case Qt.ItemDataRole.InitialSortOrderRole:
                falling = column is not None and column.falling
                return Qt.SortOrder.DescendingOrder if falling else Qt.SortOrder.AscendingOrder
        return None

    def _site_hint(self) -> str:
        return "paths of up to so many heads" if self.by_order else "what is taken away"

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, place = self.rows[index.row()], index.column()
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.spoken(row)
        if place == 0:
            if role == Qt.ItemDataRole.DisplayRole:
                return str(row.site)
            stale = self.stale and role == Qt.ItemDataRole.ForegroundRole
            return QBrush(QColor(self.theme.muted)) if stale else None
        column = self.columns[place - 1]
        match role:
            case Qt.ItemDataRole.DisplayRole if not column.signed:
                return shown(column, row)
            case Qt.ItemDataRole.TextAlignmentRole if not column.signed:
                return _RIGHT
            case Qt.ItemDataRole.ForegroundRole if self.stale or not column.signed:
                return QBrush(QColor(self.theme.muted))
        if column.signed and role == AMOUNT_ROLE:
            return column.read(row)
        return True if column.bar and role == BAR_ROLE else None

    def spoken(self, row: "AnyRow") -> str:
        """A row as one line of words."""
        parts = (f"{column.name} {text}" for column in self.columns if (text := shown(column, row)))
        return f"{row.site}: {', '.join(parts)}"


def shown(column: Column, row: "AnyRow") -> str:
    """A cell's text; "" where there is no value."""
    value = column.read(row)
    return "" if value is None else numbers.logits(value, column.signed, column.digits)


def _value(row: "AnyRow") -> float:
    return row.value


def _effect(row: "AnyRow") -> float:
    return row.effect


def _contribution(row: "AnyRow") -> float | None:
    return row.contribution


def _stderr(row: "AnyRow") -> float | None:
    return row.stderr


def _marginal(row: "AnyRow") -> float | None:
    return getattr(row, "marginal", None)


def _marginal_error(row: "AnyRow") -> float | None:
    return getattr(row, "marginal_stderr", None)
