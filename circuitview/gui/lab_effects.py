"""Whether the diagram is coloured by what the lab has measured, and with which effects.

Only a run of the very prompt, target and model that the diagram shows may colour it; while the run
that is looked at is of anything else, the diagram shows contributions and the switch says why.
"""

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction

from circuitview.figures.diagram.effects import MeasuredEffects
from circuitview.gui.lab_match import question_of, same_model, same_question
from circuitview.gui.lab_queue import LabQueue, LabRun
from circuitview.session.state import Snapshot

if TYPE_CHECKING:
    from circuitview.core.ablation.table import Row

_EVERY = 0.5  # seconds, while rows arrive: each time all bands are painted anew
_HINT = "Colour bands and heads by the measured effect of removing them, not by contribution"
_PARTLESS = ("orders", "each-order")  # what measures no single part of the picture


class LabEffects(QObject):
    """The switch, and the effects of the run that is looked at.

    Signals:
        changed: the diagram may have other colours now.

    Attributes:
        action: the switch, for menus and buttons; its tool tip says why it can't be had.
    """

    changed = Signal()

    def __init__(self, queue: LabQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.action = QAction("Colour the diagram by e&ffect", self)
        self.action.setCheckable(True)
        self.action.toggled.connect(self._on_toggled)
        self._entry: LabRun | None = None
        self._snapshot = Snapshot()
        self._made: MeasuredEffects | None = None
        self._made_at = 0.0
        queue.changed.connect(self._on_changed)
        self._allow()

    def effects_for(self, snapshot: Snapshot) -> MeasuredEffects | None:
        """What colours the diagram of `snapshot`; None for contributions."""
        entry = self._entry
        if entry is None or not self.action.isChecked() or _why_not(entry, snapshot) is not None:
            return None
        if self._made is None:
            asked, rows = entry.question, cast("Iterable[Row]", entry.rows.values())
            self._made = MeasuredEffects.of_rows(rows, asked.metric, asked.frozen)
            self._made_at = monotonic()
        return self._made if self._made.values else None

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Allow the switch, or not, for what is shown now."""
        self._snapshot = snapshot
        self._allow()

    def look_at(self, entry: LabRun | None) -> None:
        """Another run is looked at, or none."""
        if entry is not self._entry:
            self._entry = entry
            self._renew()

    def _on_changed(self, entry: LabRun) -> None:
        due = entry.ended or monotonic() - self._made_at >= _EVERY
        if entry is self._entry and due:
            self._renew()

    def _renew(self) -> None:
        self._made = None
        self._allow()
        if self.action.isChecked():
            self.changed.emit()

    def _on_toggled(self, _checked: bool) -> None:
        self.changed.emit()

    def _allow(self) -> None:
        entry = self._entry
        reason = "measure something first" if entry is None else _why_not(entry, self._snapshot)
        self.action.setEnabled(reason is None)
        self.action.setToolTip(_HINT if reason is None else f"Contributions are shown: {reason}")


def _why_not(entry: LabRun, snapshot: Snapshot) -> str | None:
    """Why a run can't colour the diagram of `snapshot`; None where it can."""
    asked = entry.question
    if snapshot.refused or snapshot.results.expansion is None:
        return "there is no diagram"
    if snapshot.state.showing == "difference":
        return "effects are measured on one prompt, not on B − A"
    if asked.what in _PARTLESS:
        return "this run removes whole orders, not single paths, heads or MLPs"
    if not same_model(entry, snapshot):
        return "this run is of other weights" if entry.outdated else "this run is of another model"
    if asked.text or len(asked.prompts) != 1:
        return "this run is of other text than the one prompt in the diagram"
    versus = asked.versus if asked.metric == "difference" else None
    if not same_question(entry, snapshot) or versus != question_of(snapshot).versus:
        return "this run is of another prompt, position, target or precision"
    if entry.ended and not entry.rows:
        return "this run has measured nothing"
    return None
