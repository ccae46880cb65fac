"""What the menus put on the clipboard: the picture, the numbers, the balance; each time it is said
what is there now."""

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from circuitview.core.names import CircuitviewError
from circuitview.gui.diagram.view import DiagramView
from circuitview.gui.dock_host import DockHost
from circuitview.gui.document import Document
from circuitview.gui.export_job import ExportJob
from circuitview.gui.settings_store import SettingsStore
from circuitview.session.balance import balance_text
from circuitview.session.settings import ExportChoices


class Copying(QObject):
    """The window's copying acts."""

    def __init__(
        self, document: Document, store: SettingsStore, diagram: DiagramView, host: DockHost
    ) -> None:
        super().__init__(host)
        self._document, self._store = document, store
        self._diagram, self._host = diagram, host

    def picture(self) -> None:
        """The diagram as it is on the screen."""
        choices = ExportChoices(scale=self._store.settings.export.scale)
        try:
            ExportJob(self._diagram, self._document.snapshot, choices).copy()
        except CircuitviewError as error:
            self._document.report(str(error))
            return
        self._document.tell("The diagram is on the clipboard")

    def numbers(self) -> None:
        """The table of the panel that has the keyboard, else the first panel that has one."""
        focused, snapshot = self._host.focused_dock(), self._document.snapshot
        docks = [*([focused] if focused else []), *self._host.docks.values()]
        for panel in filter(None, (dock.made_panel() for dock in docks)):
            if text := panel.csv(snapshot):
                QGuiApplication.clipboard().setText(text)
                self._document.tell(f"The numbers of {panel.TITLE} are on the clipboard, as CSV")
                return
        self._document.tell("There are no numbers to copy yet")

    def balance(self) -> None:
        """The balance, as the status line says it."""
        expansion = self._document.snapshot.results.expansion
        if expansion is not None:
            QGuiApplication.clipboard().setText(balance_text(expansion))
            self._document.tell("The balance is on the clipboard")
