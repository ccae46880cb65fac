"""Height for a dock under the diagram once it has something to show.

The diagram has most of the height until then. Who has moved the separator, in this window or in one
before, has chosen: then nothing moves by itself.
"""

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow, QTabBar

from circuitview.gui.panel_dock import PanelDock

_MOST_SHARE = 0.5  # of the host's height
_BELOW = Qt.DockWidgetArea.BottomDockWidgetArea


class DockRoom:
    """The height of the docks under the centre of `host`: as first arranged, or chosen."""

    def __init__(self, host: QMainWindow, docks: Mapping[str, PanelDock]) -> None:
        self._host, self._docks = host, docks
        self._fresh = False
        self._first = 0

    def arranged(self, fresh: bool) -> None:
        """Docks were arranged: as on the first day (`fresh`), or as the user has left them."""
        self._fresh = fresh
        self.settle()

    def settle(self) -> None:
        """What height there is now was chosen by no one."""
        if self._fresh:
            self._lay_out()
            self._first = self._height()

    @property
    def untouched(self) -> bool:
        """Whether the docks still have the height of the first arrangement."""
        return self._fresh and self._height() == self._first

    def missing(self, dock: PanelDock, height: int) -> bool:
        """Whether `dock` has less than `height` pixels, and no one chose that."""
        standing = dock.seen and not dock.isFloating()
        below = self._host.dockWidgetArea(dock) == _BELOW
        return standing and below and self.untouched and dock.height() < height

    def give(self, dock: PanelDock, height: int) -> None:
        """Let `dock` have `height` pixels, as far as the centre keeps its share."""
        self._fresh = False
        bar = self._tab_bar_height() if self._host.tabifiedDockWidgets(dock) else 0
        wanted = max(min(height + bar, int(_MOST_SHARE * self._host.height())), dock.height() + bar)
        self._host.resizeDocks([dock], [wanted], Qt.Orientation.Vertical)
        self._lay_out()

    def _lay_out(self) -> None:
        """Have all sizes come true now: later they would come in the middle of something else."""
        layout = self._host.layout()
        if layout is not None:
            layout.activate()

    def _height(self) -> int:
        """That of the docks that can be seen; of tabs only the one on top has a true one."""
        seen = (dock for dock in self._docks.values() if dock.seen and not dock.isFloating())
        below = (dock.height() for dock in seen if self._host.dockWidgetArea(dock) == _BELOW)
        return max(below, default=0)

    def _tab_bar_height(self) -> int:
        bars = self._host.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return max((bar.height() for bar in bars if bar.isVisible()), default=0)
