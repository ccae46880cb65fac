"""Diagram in the middle, panels in docks around it: their arrangement, saved and brought back.

A QMainWindow inside the window: so the prompt and the tokens stand over the whole width, and docks
flank only the diagram. Panels are found in gui/panels: a module with PANEL brings one.
"""

import base64
import logging
from importlib import import_module
from itertools import pairwise
from pkgutil import iter_modules

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QTabWidget, QWidget

import circuitview.gui.panels
from circuitview.gui.dock_room import DockRoom
from circuitview.gui.dock_widths import DockWidths
from circuitview.gui.document import Document
from circuitview.gui.panel_dock import PanelDock
from circuitview.gui.panels.panel import AREAS, Panel
from circuitview.session.state import Snapshot

log = logging.getLogger(__name__)

# Raised when the panels or their first arrangement change: an older layout is not brought back.
LAYOUT_VERSION = 2
_SIDE_SHARE = {"left": 0.195, "right": 0.24}
_BOTTOM_SHARE = 0.3
_FRESH = "first:"  # before a layout whose docks still have the height of the first arrangement


def find_panels() -> list[type[Panel]]:
    """The panel classes, by area and order. A module that can't be imported is logged, left out."""
    found: list[type[Panel]] = []
    for module in iter_modules(circuitview.gui.panels.__path__):
        try:
            panel = getattr(
                import_module(f"{circuitview.gui.panels.__name__}.{module.name}"), "PANEL", None
            )
        except Exception:
            log.exception("panel module %s can't be imported", module.name)
            continue
        if panel is not None:
            found.append(panel)
    return sorted(found, key=lambda panel: (panel.AREA, panel.ORDER, panel.NAME))


class DockHost(QMainWindow):
    """Signals: export_asked(name of a panel)."""

    export_asked = Signal(str)

    def __init__(self, document: Document, centre: QWidget, panels: list[type[Panel]]) -> None:
        super().__init__()
        self.setWindowFlags(Qt.WindowType.Widget)
        options = QMainWindow.DockOption
        self.setDockOptions(
            options.AllowNestedDocks | options.AllowTabbedDocks | options.AnimatedDocks
        )
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        for corner, area in (
            (Qt.Corner.TopLeftCorner, "left"),
            (Qt.Corner.BottomLeftCorner, "left"),
            (Qt.Corner.TopRightCorner, "right"),
            (Qt.Corner.BottomRightCorner, "right"),
        ):
            self.setCorner(corner, AREAS[area])
        self._centre = centre
        self.setCentralWidget(centre)
        self.docks: dict[str, PanelDock] = {}
        self.widths = DockWidths(self, self.docks)
        self.room = DockRoom(self, self.docks)
        self._maximised: str | None = None
        self._painting = QTimer(self)
        self._painting.setSingleShot(True)
        self._painting.setInterval(0)
        self._painting.timeout.connect(self._paint)
        for panel in panels:
            self._add(panel, document)
        self._focused: PanelDock | None = None
        document.changed.connect(self._on_changed)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._on_focus)

    def _add(self, panel: type[Panel], document: Document) -> None:
        dock = PanelDock(panel, document)
        self.docks[panel.NAME] = dock
        self.widths.watch(dock)
        self.addDockWidget(AREAS[panel.AREA], dock)
        dock.export_asked.connect(self.export_asked)
        dock.maximise_asked.connect(self.toggle_maximised)
        dock.room_asked.connect(self._give_room)

    def _on_changed(self, snapshot: Snapshot, _before: Snapshot) -> None:
        for dock in self.docks.values():
            dock.show_snapshot(snapshot)

    def settle(self) -> None:
        """The window has been painted: what sizes its docks have by now, no one chose."""
        self.room.settle()

    def panels(self) -> list[Panel]:
        """All panels that can be made."""
        made = (dock.made_panel() for dock in self.docks.values())
        return [panel for panel in made if panel is not None]

    # --- arrangement -----------------------------------------------------------------------------

    def arrange_first(self, width: int, height: int) -> None:
        """The arrangement of a fresh installation, for a host of that size."""
        self._maximised = None
        self._centre.show()
        for dock in self.docks.values():
            dock.setFloating(False)
            self.removeDockWidget(dock)
            self.addDockWidget(AREAS[dock.kind.AREA], dock)
            dock.show()
        for before, dock in pairwise(self.docks.values()):
            if dock.kind.TABBED and before.kind.AREA == dock.kind.AREA:
                self.tabifyDockWidget(before, dock)
                before.raise_()
        for area, share in _SIDE_SHARE.items():
            beside = [dock for dock in self.docks.values() if area == dock.kind.AREA]
            self.widths.give(beside, max(280, round(width * share)))
            self.resizeDocks(
                beside, [height // max(len(beside), 1)] * len(beside), Qt.Orientation.Vertical
            )
        below = [dock for dock in self.docks.values() if dock.kind.AREA == "bottom"]
        self.resizeDocks(
            below, [round(height * _BOTTOM_SHARE)] * len(below), Qt.Orientation.Vertical
        )
        self.room.arranged(fresh=True)

    def _give_room(self, name: str, height: int) -> None:
        dock = self.docks[name]
        if self.room.missing(dock, height):
            # The diagram is laid out anew now, and painted in the next turn: both at once would be
            # felt. Until then what was on the screen stays there.
            self._centre.setUpdatesEnabled(False)
            self.room.give(dock, height)
            self._painting.start()

    def _paint(self) -> None:
        self._centre.setUpdatesEnabled(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.widths.host_resized()

    def toggle_maximised(self, name: str) -> None:
        """Let one panel fill the window, or bring the arrangement back."""
        if self._maximised is not None:
            self.restore_arrangement()
            return
        self._maximised = self.layout_text()
        for other, dock in self.docks.items():
            dock.setVisible(other == name)
        self.docks[name].setFloating(False)
        self._centre.hide()

    def restore_arrangement(self) -> None:
        """End what toggle_maximised began."""
        if self._maximised is not None:
            state, self._maximised = self._maximised, None
            self._centre.show()
            self.restore_layout(state)

    @property
    def maximised(self) -> bool:
        return self._maximised is not None

    def focused_dock(self) -> PanelDock | None:
        """The dock that has the keyboard, or had it last."""
        return self._focused if self._focused and not self._focused.isHidden() else None

    def _on_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        for dock in self.docks.values():
            if new is not None and dock.isAncestorOf(new):
                self._focused = dock

    def layout_text(self) -> str:
        """The arrangement as text, for the settings."""
        if self._maximised is not None:
            return self._maximised
        state = base64.b64encode(self.saveState(LAYOUT_VERSION).data()).decode()
        return f"{_FRESH}{state}" if self.room.untouched else state

    def restore_layout(self, text: str) -> bool:
        """Bring back an arrangement; False where it belongs to other panels or is damaged."""
        try:
            state = base64.b64decode(text.removeprefix(_FRESH), validate=True)
        except ValueError:
            return False
        known = bool(state) and self.restoreState(QByteArray(state), LAYOUT_VERSION)
        self.room.arranged(fresh=known and text.startswith(_FRESH))
        return known
