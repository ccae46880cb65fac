"""A button that appears where an answer takes long, and stops it."""

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QToolButton

from circuitview.gui.document import Document

_PATIENCE = 700  # ms; most answers are there sooner


class CancelButton(QToolButton):
    """Hidden while nothing takes long, or nothing is there to go back to."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.setText("Cancel")
        self.setToolTip("Stop, and keep what is shown")
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_PATIENCE)
        self._wait.timeout.connect(self._appear)
        self.clicked.connect(document.cancel)
        document.computing_changed.connect(self._on_computing)
        self.hide()

    def _on_computing(self, doing: str) -> None:
        if not doing:
            self._wait.stop()
            self.hide()
        elif not self.isVisible() and not self._wait.isActive():
            self._wait.start()

    def _appear(self) -> None:
        if self._document.computing and self._document.snapshot.results.expansion is not None:
            self.show()
