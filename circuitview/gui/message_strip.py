"""Why the last thing asked could not be done: a strip over the picture, with details to copy."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton

from circuitview import __version__
from circuitview.gui.document import Document
from circuitview.session.state import Snapshot


class MessageStrip(QFrame):
    """Hidden while nothing is wrong. Below it is the last good analysis; where another
    one has failed the strip says so."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.setObjectName("message-strip")
        self._document = document
        self.text = QLabel()
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.copy_button = QPushButton("Copy details")
        self.close_button = QPushButton("Dismiss")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.addWidget(self.text, 1)
        row.addWidget(self.copy_button, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        self.copy_button.clicked.connect(self.copy_details)
        self.close_button.clicked.connect(document.dismiss)
        document.changed.connect(self._on_changed)
        self.hide()

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        # A refusal stands in the diagram's place, with its numbers.
        text = snapshot.failure or snapshot.notice
        self.setVisible(text is not None and not snapshot.refused)
        self.copy_button.setVisible(snapshot.failure is not None)
        if snapshot.failure is None and snapshot.notice is not None:
            self.text.setText(snapshot.notice + ".")
        if snapshot.failure is not None:
            text = snapshot.failure[0].upper() + snapshot.failure[1:]
            # At the start something else may be shown instead of what was asked.
            kept = snapshot.results.expansion is not None and snapshot.results is before.results
            kept = kept and self._document.failed_act == "analysis"
            self.text.setText(text + (". The last good analysis stays." if kept else "."))
            self.copy_button.setToolTip("Copy what to send with a report")

    def copy_details(self) -> None:
        """Put the failure, and what was asked, on the clipboard."""
        QGuiApplication.clipboard().setText(report(self._document.snapshot))


def report(snapshot: Snapshot) -> str:
    """The failure at length, for a report."""
    state = snapshot.state
    return "\n".join(
        [
            f"circuitview {__version__}",
            f"model: {state.model}",
            f"prompt: {state.prompt!r}, BOS {state.prepend_bos}, dest {state.dest}",
            f"target {state.target!r}, versus {state.versus!r}, {state.dtype} on {state.device}",
            snapshot.details or snapshot.failure or "no failure",
        ]
    )
