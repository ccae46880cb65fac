"""What a panel is: a widget that draws a Snapshot and can give the same picture as a Figure.

A new panel is one file in this folder with PANEL = its class; menu, dock, saved layout, export
dialog and the shared test find it there. Results may be empty (nothing computed yet, or refused):
then a panel draws nothing. What it raises is shown in its place, the other panels go on.
"""

from typing import ClassVar, Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from circuitview.figures.figure import Figure
from circuitview.figures.theme import Theme
from circuitview.gui.document import Document
from circuitview.session.state import Snapshot

Area = Literal["left", "right", "bottom"]
AREAS = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}


class Panel(QWidget):
    """Base of all panels.

    Signals:
        room_asked: so many pixels of height are needed for what it shows from now on; a dock that
            no one has sized gives them.

    Attributes:
        NAME: its key in the saved layout and the file name of its exports.
        TITLE: on its dock and in the View menu.
        AREA: where it first stands; ORDER sorts panels of one area from top to bottom.
        TABBED: whether it first stands as a tab behind the panel before it.
    """

    room_asked = Signal(int)

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    AREA: ClassVar[Area] = "right"
    ORDER: ClassVar[int] = 0
    TABBED: ClassVar[bool] = False

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.document = document

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw `snapshot`; called only while the panel can be seen."""
        raise NotImplementedError

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """The same picture for export."""
        raise NotImplementedError

    def subject(self, snapshot: Snapshot) -> str:
        """What its picture is of, for the names of files."""
        return snapshot.state.title

    def csv(self, snapshot: Snapshot) -> str | None:  # noqa: ARG002 - for those that override
        """The panel's numbers as CSV, where it has a table."""
        return None
