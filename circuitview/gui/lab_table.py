"""The table of one run of the lab: sortable, its columns fitted to the width that there is."""

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHeaderView, QStyledItemDelegate

from circuitview.core.ablation.sites import Site
from circuitview.figures.theme import Theme
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.tables.ablation_model import AblationModel
from circuitview.gui.tables.amount_delegate import AmountDelegate
from circuitview.gui.tables.table_view import TableView
from circuitview.session.run_words import REMOVED, UP_TO

_SELECT_ROW = (
    QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
)
_PAD = 18  # pixels beside a cell's text
_SITE_SHARE = 0.45  # of the width, at most, for the names of sites
_LEAST_AMOUNT = 70  # pixels; below, plain numbers give way to the amounts
_LOOKED_AT = 200  # rows, for the width of the names


class LabTable(TableView):
    """Signals: site_chosen(a Site that the user has selected)."""

    site_chosen = Signal(object)

    def __init__(self) -> None:
        self.rows = AblationModel()
        super().__init__(self.rows)
        self.rows.setParent(self)
        self._plain = QStyledItemDelegate(self)
        self.delegate = AmountDelegate(self)
        self._wanted: Site | None = None
        self.setRootIsDecorated(False)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.setMinimumSectionSize(24)
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        header.sortIndicatorChanged.connect(self._sort)
        self.selectionModel().selectionChanged.connect(self._on_selected)
        self._fit()

    def show_run(self, entry: LabRun | None) -> None:
        """Show the rows of another run."""
        if entry is None:
            self.rows.show_run((), "logit", by_order=False)
        else:
            asked = entry.question
            self.rows.show_run(entry.rows.values(), asked.metric, asked.what == "orders")
        for place, column in enumerate(self.rows.columns, start=1):
            self.setItemDelegateForColumn(place, self.delegate if column.signed else self._plain)
        self.delegate.digits = next(c.digits for c in self.rows.columns if c.bar)
        self._refresh()

    def advance(self, entry: LabRun) -> None:
        """Take over what the last report has brought."""
        self.rows.put(entry.fresh)
        self._refresh()

    def settle(self) -> None:
        """All has come: put it in order."""
        self.rows.sort_rows()
        self._refresh()
        self.select(self._wanted)

    def show_as(self, colours: Theme, stale: bool) -> None:
        self.delegate.theme = colours
        self.rows.show_as(colours, stale)

    def select(self, site: Site | None) -> None:
        """Select the row of `site`, without a signal; none where it has no row."""
        self._wanted = site
        chosen, index = self.selectionModel(), self.rows.index_of(site)
        if not index.isValid():
            chosen.clear()
        elif self.sole_site() != site:
            chosen.setCurrentIndex(index, _SELECT_ROW)
            self.scrollTo(index)

    def sole_site(self) -> Site | None:
        """What the one row that is selected takes away."""
        rows = self.selectionModel().selectedRows()
        return self.rows.site_at(rows[0]) if len(rows) == 1 else None

    def _on_selected(self) -> None:
        site = self.sole_site()
        if site is not None and site != self._wanted:
            self._wanted = site
            self.site_chosen.emit(site)

    def _sort(self, column: int, order: Qt.SortOrder) -> None:
        if column >= 0:
            self.rows.order_by(column, order == Qt.SortOrder.DescendingOrder)
            self.select(self._wanted)

    def _refresh(self) -> None:
        self.delegate.scale = self.rows.scale()
        self._fit()
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Give the names what they need, the amounts the rest; numbers without a bar go first."""
        header, metrics, room = self.header(), self.fontMetrics(), self.viewport().width()
        names = [str(row.site) for row in self.rows.rows[:_LOOKED_AT]]
        title = UP_TO if self.rows.by_order else REMOVED
        longest = max(map(metrics.horizontalAdvance, [*names, f"{title} ▾"]))
        name_width = min(longest + _PAD, max(int(_SITE_SHARE * room), 50))
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(0, name_width)
        first = self.rows.rows[-1:]  # the last order has a marginal value, the first has none
        columns = list(enumerate(self.rows.columns, start=1))
        known = {
            place
            for place, column in columns
            if not first or any(column.read(row) is not None for row in first)
        }
        amounts = [place for place, column in columns if column.signed and place in known]
        left = room - name_width - _LEAST_AMOUNT * len(amounts)
        for place, column in columns:
            if column.signed:
                self.setColumnHidden(place, place not in amounts)
                header.setSectionResizeMode(place, QHeaderView.ResizeMode.Stretch)
                continue
            width = metrics.horizontalAdvance(max("−00.0000", f"{column.name} ▾", key=len)) + 8
            needed = self.rows.by_order and place == 1
            shown = needed or (left >= width and place in known)
            self.setColumnHidden(place, not shown)
            header.setSectionResizeMode(place, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(place, width)
            left -= width if shown else 0
