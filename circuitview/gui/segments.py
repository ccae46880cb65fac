"""A row of buttons of which one is down: a choice that is always in view."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from circuitview.figures.theme import Theme

_RIM = 24  # pixels beside the words of a button that has just their room


class Segment(QPushButton):
    """One of the buttons. Where it is down it is tinted: the style's own shade is hard to see on a
    dark ground."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tinted: QPalette | None = None
        self.setCheckable(True)

    def tint(self, colours: Theme) -> None:
        """Show in `colours` whether it is down."""
        palette = QPalette()
        if self.isChecked():
            palette.setColor(QPalette.ColorRole.Button, colours.selection)
            palette.setColor(QPalette.ColorRole.ButtonText, colours.text)
        self._tinted = palette
        self.setPalette(palette)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        # A new style sheet for the application takes every palette back, to one that it keeps from
        # before; a button that has come up since would show the colours of then.
        kinds = (QEvent.Type.StyleChange, QEvent.Type.PaletteChange)
        if event.type() in kinds and self._tinted is not None:
            role = QPalette.ColorRole.Button
            wanted = self._tinted if self.isChecked() else QApplication.palette()
            if self.palette().color(role) != wanted.color(role):
                self.setPalette(wanted)


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
            button = Segment(name)
            button.setToolTip(hint)
            button.setMinimumWidth(button.fontMetrics().horizontalAdvance(name) + 12)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._group.addButton(button, place)
            row.addWidget(button)
        self._group.idClicked.connect(self.chosen)

    def button(self, place: int) -> Segment:
        button = self._group.button(place)
        assert isinstance(button, Segment)
        return button

    def fit(self) -> None:
        """Give each button just the room of its words, where others need what is left."""
        for button in self._group.buttons():
            words = button.fontMetrics().horizontalAdvance(button.text())
            button.setFixedWidth(words + _RIM)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

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
            assert isinstance(button, Segment)
            button.tint(colours)
