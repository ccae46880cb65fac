"""What a run is and how it stands, over its results; a button that stops one that goes on."""

from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QWidget

from circuitview.gui.elided_label import ElidedLabel, FittedLabel
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_switches import LabSwitches
from circuitview.gui.lab_words import state_words
from circuitview.gui.panel_dock import GlyphButton
from circuitview.session.run_words import asked_words


class LabHead(QWidget):
    """The name of a run, which is cut where there is no room, and its state, which is not.

    Where the name stands among buttons the state is under it, else behind it.
    """

    def __init__(self, switches: LabSwitches) -> None:
        super().__init__()
        self.title, self.state = ElidedLabel(), FittedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        policy = QSizePolicy.Policy
        self.state.setSizePolicy(policy.Maximum, policy.Fixed)
        self.stop = GlyphButton("close", "Cancel this run")
        self.stop.setSizePolicy(policy.Fixed, policy.Fixed)
        self.stop.setFixedHeight(self.fontMetrics().height())
        stands = QHBoxLayout()
        stands.setSpacing(2)
        stands.addWidget(self.state)
        stands.addWidget(self.stop)
        stands.addStretch()
        self._words = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._words.setSpacing(6)
        self._words.addWidget(self.title, 1)
        self._words.addLayout(stands)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addLayout(self._words, 1)
        row.addWidget(switches)
        self.show_run(None, "")

    def show_run(self, entry: LabRun | None, other: str) -> None:
        """Say what `entry` is and how it stands.

        Args:
            other: "of another model" and the like, where it is not of what is shown; "" else.
        """
        self.title.setText("No run yet" if entry is None else asked_words(entry.question))
        self.state.setVisible(entry is not None)
        self.stop.setVisible(entry is not None and not entry.ended)
        role = QPalette.ColorRole
        if entry is None:
            return
        failed, stands = entry.state == "failed", state_words(entry)
        # Why it failed is said at length under the name.
        short = entry.state if entry.ended and entry.state != "done" else stands
        full = short if failed else stands
        if other and entry.state == "done":
            wordings = [f"{other} · {full}", other]
        else:
            wordings = [f"{full} · {other}" if other else full, full, short]
        self.state.show_wordings(*wordings)
        plain = entry.state == "done" and not other
        ink = role.BrightText if failed else role.PlaceholderText if plain else role.WindowText
        self.state.setForegroundRole(ink)

    def stand_under(self, under: bool) -> None:
        """Put the state under the name, or behind it."""
        direction = QBoxLayout.Direction
        self._words.setDirection(direction.TopToBottom if under else direction.LeftToRight)
        self._words.setSpacing(0 if under else 6)
