"""A row of buttons of which one is down: a choice that is always in view."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from circuitview.figures.theme import Theme


def show_checked(button: QPushButton, colours: Theme) -> None:
    """Tint a button that is down: the style's own shade is hard to see on a dark ground."""
    palette = QPalette()
    if button.isChecked():
        palette.setColor(QPalette.ColorRole.Button, colours.selection)
        palette.setColor(QPalette.ColorRole.ButtonText, colours.text)
    button.setPalette(palette)


class Segments(QWidget):
    """Signals: chosen(place), only when the user chooses."""

    chosen = Signal(int)

    def __init__(self, names: Sequence[str], hints: Sequence[str]) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self._shown: tuple[int, Theme] | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for place, (name, hint) in enumerate(zip(names, hints, strict=True)):
            button = QPushButton(name)
            button.setCheckable(True)
            button.setToolTip(hint)
            button.setMinimumWidth(button.fontMetrics().horizontalAdvance(name) + 12)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._group.addButton(button, place)
            row.addWidget(button)
        self._group.idClicked.connect(self.chosen)

    def button(self, place: int) -> QPushButton:
        button = self._group.button(place)
        assert isinstance(button, QPushButton)
        return button

    @property
    def place(self) -> int:
        """Which one is down."""
        return self._group.checkedId()

    def show_choice(self, place: int, colours: Theme) -> None:
        """Put one down, without a signal."""
        if (place, colours) == self._shown and self.place == place:
            return
        self._shown = place, colours
        self.button(place).setChecked(True)
        for button in self._group.buttons():
            assert isinstance(button, QPushButton)
            show_checked(button, colours)
