"""Whether to open a model that does not fit into what memory is free; no is the default."""

from dataclasses import replace

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox, QWidget

from circuitview.gui.document import Document
from circuitview.session.state import State


class SizeQuestion(QObject):
    """Asks beside a running window; what is shown stays meanwhile."""

    def __init__(self, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._window = document, window
        self.box: QMessageBox | None = None
        self._asked: State | None = None
        document.too_large.connect(self.ask)

    def ask(self, state: State, why: str) -> None:
        """Ask about the model of `state`."""
        if self.box is not None:
            self.box.close()
        box = QMessageBox(self._window)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("Open a large model?")
        box.setText(f"{why}.")
        box.setInformativeText(
            "Opened all the same, it may make this computer very slow, or the program be ended."
        )
        box.addButton("Open all the same", QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.finished.connect(self._on_answered)
        self.box, self._asked = box, state
        box.open()

    def _on_answered(self) -> None:
        box, state = self.box, self._asked
        self.box = self._asked = None
        if box is None or state is None:
            return
        role = box.buttonRole(box.clickedButton()) if box.clickedButton() else None
        box.deleteLater()
        if role == QMessageBox.ButtonRole.AcceptRole:
            self._document.set(replace(state, even_if_large=True))
