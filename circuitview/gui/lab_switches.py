"""What is chosen for the pictures of a run: the diagram's colours, and what a matrix shows."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from circuitview.figures.pair_grid import PairValue
from circuitview.figures.theme import LIGHT, Theme
from circuitview.gui.segments import Segment, Segments

_VALUES: tuple[PairValue, ...] = ("effect", "interaction")
_HINTS = (
    "what removing both heads does",
    "what removing both does beyond the two single effects: 0 where heads work side by side",
)


class ActionSwitch(Segment):
    """A button that is down while its action is ticked."""

    def __init__(self, action: QAction, words: str) -> None:
        super().__init__(words)
        self._action, self._colours = action, LIGHT
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        action.changed.connect(self._follow)
        self.clicked.connect(self._on_clicked)
        self._follow()

    def tint(self, colours: Theme) -> None:
        self._colours = colours
        super().tint(colours)

    def _on_clicked(self, checked: bool) -> None:
        self._action.setChecked(checked)
        self.tint(self._colours)

    def _follow(self) -> None:
        action = self._action
        self.setEnabled(action.isEnabled())
        self.setToolTip(action.toolTip())
        if self.isChecked() != action.isChecked():
            self.setChecked(action.isChecked())
            self.tint(self._colours)


class LabSwitches(QWidget):
    """Effect or interaction, where a run is of pairs; and the diagram's colours.

    Signals: value_chosen(a PairValue), only when the user chooses.
    """

    value_chosen = Signal(str)

    def __init__(self, colouring: QAction) -> None:
        super().__init__()
        self.value: PairValue = "effect"
        self.values = Segments(_VALUES, _HINTS)
        self.values.chosen.connect(self._on_chosen)
        self.values.fit()
        self.colouring = ActionSwitch(colouring, "Colour diagram")
        self._compact = self._of_pairs = False
        colouring.changed.connect(self._make_room)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self.values)
        row.addWidget(self.colouring)
        self.show_pairs(False)

    def show_pairs(self, shown: bool) -> None:
        """Offer the choice that only pairs have, or not."""
        self._of_pairs = shown
        self.values.setVisible(shown)
        self._make_room()

    def show_compact(self, compact: bool) -> None:
        """Where the words beside need the room, leave out what can't be used now."""
        self._compact = compact
        self._make_room()

    def _make_room(self) -> None:
        # Beside the choice of pairs there is less: the menu has the colours too.
        tight = self._compact or self._of_pairs
        crowded = self._compact and self._of_pairs
        self.colouring.setVisible(not tight or (self.colouring.isEnabled() and not crowded))

    def show_theme(self, colours: Theme) -> None:
        self.values.show_choice(_VALUES.index(self.value), colours)
        self.colouring.tint(colours)

    def _on_chosen(self, place: int) -> None:
        self.value = _VALUES[place]
        self.value_chosen.emit(self.value)
