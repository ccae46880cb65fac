"""The view of the panels' tables: Enter and double click open, Escape clears."""

from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt, Signal
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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.opened.emit()
            case Qt.Key.Key_Escape:
                self.cleared.emit()
            case _:
                super().keyPressEvent(event)

    def _double_clicked(self, index: QModelIndex) -> None:
        if self.model().hasChildren(index):
            self.setExpanded(index, not self.isExpanded(index))
        else:
            self.opened.emit()
