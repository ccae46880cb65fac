"""The floor: paths below it are drawn as one grey remainder. A slider with a scale by factors."""

import math
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSlider

from circuitview.figures.diagram import count, shown_paths
from circuitview.gui.document import Document
from circuitview.session.numbers import logits
from circuitview.session.state import Snapshot

# Each step is about a tenth more, in round numbers: the E24 series.
_ROUND = (
    *(1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0),
    *(3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5, 8.2, 9.1),
)
_DECADES = (1000, 100, 10, 1)  # from 0.001 logits
_FLOORS = (0.0, *(value / below for below in _DECADES for value in _ROUND), 10.0)


def floor_of_step(step: int) -> float:
    """The floor (logits) at a step of the slider; 0 at step 0."""
    return _FLOORS[min(max(step, 0), len(_FLOORS) - 1)]


def step_of_floor(floor: float) -> int:
    """The step nearest to a floor (logits), by ratio."""
    if floor <= 0:
        return 0
    return min(range(1, len(_FLOORS)), key=lambda step: abs(math.log(_FLOORS[step] / floor)))


class HiddenTerms(QLabel):
    """A sentence in the longest of its wordings that fits; the shortest is elided rather than cut.

    Its text and its tooltip are the longest.
    """

    def __init__(self) -> None:
        super().__init__()
        self._wordings: tuple[str, ...] = ("",)

    def say(self, wordings: tuple[str, ...]) -> None:
        """Show one of `wordings`, the longest first."""
        self._wordings = wordings
        self.setText(wordings[0])
        self.setToolTip(wordings[0])
        self.update()

    def shown(self) -> str:
        """What stands there at the present width."""
        metrics, room = QFontMetrics(self.font()), self.contentsRect().width()
        for words in self._wordings:
            if metrics.horizontalAdvance(words) <= room:
                return words
        return metrics.elidedText(self._wordings[-1], Qt.TextElideMode.ElideRight, room)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), int(Qt.AlignmentFlag.AlignVCenter), self.shown())
        painter.end()


class FloorBar(QFrame):
    """The slider, its value, and how many terms it hides."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.setObjectName("thin-bar")
        self._document = document
        self._layer: int | None = None
        self._snapshot = document.snapshot
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, len(_FLOORS) - 1)
        self.slider.setPageStep(10)
        self.slider.setMinimumWidth(110)
        self.slider.setMaximumWidth(200)
        self.slider.setAccessibleName("Floor")
        self.slider.setToolTip(
            "Paths smaller than this are drawn as one grey remainder; nothing is dropped"
        )
        self.value, self.hidden_terms = QLabel(), HiddenTerms()
        self.hidden_terms.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self.hidden_terms.setMinimumWidth(20)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(QLabel("Floor"))
        row.addWidget(self.slider, 1)
        row.addWidget(self.value)
        row.addWidget(self.hidden_terms, 2)
        self.slider.valueChanged.connect(self._on_moved)
        document.changed.connect(self._on_changed)
        self.show_snapshot(document.snapshot)

    def _on_moved(self, step: int) -> None:
        floor = floor_of_step(step)
        if step_of_floor(self._document.state.floor) != step:
            self._document.edit(lambda state: replace(state, floor=floor))

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        if (
            snapshot.results is not before.results
            or snapshot.state.floor != before.state.floor
            or snapshot.refused != before.refused
        ):
            self.show_snapshot(snapshot)

    def show_layer(self, layer: int | None) -> None:
        """Count what the diagram draws while it shows one layer alone; None is all layers."""
        self._layer = layer
        self.show_snapshot(self._snapshot)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show the floor of `snapshot` and what it hides."""
        self._snapshot = snapshot
        floor = snapshot.state.floor
        self.slider.blockSignals(True)
        self.slider.setValue(step_of_floor(floor))
        self.slider.blockSignals(False)
        self.slider.setEnabled(snapshot.results.expansion is not None)
        self.value.setText("0 = all paths" if floor == 0 else f"{floor:.2g} logits")
        self.hidden_terms.say(hidden_wordings(snapshot, self._layer))


def hidden_text(snapshot: Snapshot, layer: int | None = None) -> str:
    """How many paths the diagram draws one by one, or hides in the remainder with what sum; `layer`
    is the one that it shows alone."""
    return hidden_wordings(snapshot, layer)[0]


def hidden_wordings(snapshot: Snapshot, layer: int | None = None) -> tuple[str, ...]:
    """The same, and what says it in less room."""
    expansion = snapshot.results.expansion
    if expansion is None:
        return ("",)
    shown = shown_paths(expansion, snapshot.state.floor, layer)
    if not shown.remainder:
        zero = f", {shown.hidden:,} are zero" if shown.hidden else ""
        drawn = f"{len(shown.places):,} paths drawn"
        return f"{drawn} one by one{zero}", f"{drawn}{zero}"
    hidden, rest = count(shown.hidden), logits(shown.rest, signed=True)
    whole = f"{hidden} of {count(expansion.n_paths)} paths hidden in the remainder"
    return (
        f"{whole}, {rest} logits together",
        f"{hidden} paths in the remainder, {rest} logits",
        f"{hidden} paths in the remainder, {rest}",
        f"{hidden} paths hidden, {rest}",
    )
