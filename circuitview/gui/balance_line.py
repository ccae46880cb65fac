"""The sum that proves the picture, at the bottom edge, always visible."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption

from circuitview.gui.document import Document
from circuitview.session.balance import balance
from circuitview.session.expansions import expansion_shown, held_fixed, precision
from circuitview.session.state import Snapshot


class BalanceLine(QLabel):
    """The groups, the model's logit, the error; cut in the middle where there is no room."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.setObjectName("balance")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setAccessibleName("Balance")
        self.held = QLabel()
        self.held.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        document.changed.connect(self._on_changed)

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        if snapshot.results is not before.results or snapshot.failure != before.failure:
            self.show_snapshot(snapshot)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Say the balance of `snapshot`, or why it was refused."""
        expansion = snapshot.results.expansion
        if snapshot.refused:
            self.setText(f"Refused: {snapshot.failure}")
            self.held.setText("")
        elif expansion is None:
            self.setText("")
            self.held.setText("")
        else:
            summed = balance(expansion)
            self.setText(summed.text)
            held, facts = held_fixed(expansion), snapshot.results.model
            where = "" if facts is None or facts.device == "cpu" else f" on {facts.device}"
            how = summed.dtype if facts is None else precision(summed.dtype, facts.stored)
            self.held.setText(f"{how}{where} · {held}")
            shown = expansion_shown(expansion)
            self.held.setToolTip(
                f"{held[0].upper()}{held[1:]} at what the model did on this prompt: that is what "
                "makes the logit a sum of paths" + (f". Shown: {shown}" if shown else "")
            )
        self.setToolTip(self.text())
        refused = "true" if snapshot.refused else "false"
        if self.property("refused") != refused:
            self.setProperty("refused", refused)
            self.style().unpolish(self)
            self.style().polish(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        metrics = QFontMetrics(self.font())
        if metrics.horizontalAdvance(self.text()) <= self.width():
            super().paintEvent(event)
            return
        painter, option = QPainter(self), QStyleOption()
        option.initFrom(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        shown = metrics.elidedText(self.text(), Qt.TextElideMode.ElideMiddle, self.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignVCenter), shown)
        painter.end()
