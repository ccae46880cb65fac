"""The view of the panels' tables: Enter and double click open, Escape clears."""

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QTreeView


class TableView(QTreeView):
    """A tree view set up as a table.

    Signals:
        opened: the current row is to be opened.
        cleared: nothing is to be selected.
    """

    opened = Signal()
    cleared = Signal()

    def __init__(self, model: QAbstractItemModel) -> None:
        super().__init__()
        self.setModel(model)
        # One height for all rows: without it every row is measured, ten thousand of them.
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setExpandsOnDoubleClick(False)
        self.doubleClicked.connect(self._double_clicked)
        self._restyled, self._laid_out_for = False, -1

    def event(self, event: QEvent) -> bool:
        self._restyled = event.type() == QEvent.Type.StyleChange
        try:
            return super().event(event)
        finally:
            self._restyled = False

    def doItemsLayout(self) -> None:
        # A style sheet of the application reaches a view once for each of its ancestors, and each
        # time Qt would ask for every row again. Other colours leave all rows where they are.
        height = self.fontMetrics().height()
        if self._restyled and height == self._laid_out_for:
            self.viewport().update()
            return
        self._laid_out_for = height
        super().doItemsLayout()

    def selectAll(self) -> None:
        self._fetch_all()
        super().selectAll()

    def _fetch_all(self) -> None:
        model, root = self.model(), self.rootIndex()
        while model.canFetchMore(root):
            model.fetchMore(root)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.opened.emit()
            case Qt.Key.Key_Escape:
                self.cleared.emit()
            case Qt.Key.Key_End:
                self._fetch_all()
                super().keyPressEvent(event)
            case _:
                super().keyPressEvent(event)

    def _double_clicked(self, index: QModelIndex) -> None:
        if self.model().hasChildren(index):
            self.setExpanded(index, not self.isExpanded(index))
        else:
            self.opened.emit()
