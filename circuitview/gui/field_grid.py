"""A form that has as many columns as its width allows: one where it is narrow, three where it is
wide and low. Fields that don't matter are left out, and the others move up."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

_COLUMN = 250  # pixels that one field needs with its label
_GAP = 8


class FieldGrid(QWidget):
    """Labelled fields, in the order in which they were added, column by column."""

    def __init__(self) -> None:
        super().__init__()
        self._fields: list[tuple[QLabel, QWidget]] = []
        self._hidden: set[QWidget] = set()
        self._laid_out: tuple[int, tuple[QWidget, ...]] = (0, ())
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 4, 0)
        self._grid.setVerticalSpacing(3)
        self._grid.setHorizontalSpacing(_GAP)

    def add(self, text: str, field: QWidget, before: QWidget | None = None) -> None:
        """One more field, at the end or before another."""
        label = QLabel(text, self)
        label.setBuddy(field)
        field.setParent(self)
        places = [known for _, known in self._fields]
        place = len(places) if before is None else places.index(before)
        self._fields.insert(place, (label, field))
        self._lay_out()

    def show_field(self, field: QWidget, shown: bool) -> None:
        """Leave a field out, or put it back."""
        if shown != (field not in self._hidden):
            (self._hidden.discard if shown else self._hidden.add)(field)
            self._lay_out()

    def is_shown(self, field: QWidget) -> bool:
        return field not in self._hidden

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def minimumSizeHint(self) -> QSize:
        return QSize(120, super().minimumSizeHint().height())

    def _lay_out(self) -> None:
        n_columns = max(1, min(3, self.width() // _COLUMN))
        shown = [pair for pair in self._fields if pair[1] not in self._hidden]
        key = n_columns, tuple(field for _, field in shown)
        if key == self._laid_out:
            return
        self._laid_out = key
        while self._grid.count():
            self._grid.takeAt(0)
        for label, field in self._fields:
            label.setVisible(field not in self._hidden)
            field.setVisible(field not in self._hidden)
        n_rows = -(-len(shown) // n_columns)
        top = Qt.AlignmentFlag.AlignVCenter
        for place, (label, field) in enumerate(shown):
            column, row = divmod(place, n_rows)
            self._grid.addWidget(label, row, 2 * column, top)
            self._grid.addWidget(field, row, 2 * column + 1)
        for column in range(3):
            self._grid.setColumnStretch(2 * column + 1, int(column < n_columns))
        for row in range(self._grid.rowCount() + 1):
            self._grid.setRowStretch(row, int(row == n_rows))
