"""The widths of the docks beside the diagram: kept while the window is small, given back when not.

Qt takes from the docks what a small window lacks and does not give it back. What a dock is to have
is what it was given last while the window had the same size: by the first arrangement, by a layout
that was brought back, or by a hand at the separator.
"""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow

LEAST = 240  # pixels: a path with two heads and its contribution can be read
_MOST_SHARE = 0.55  # of the host's width, for both sides together
_SIDES = (Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea)


class DockWidths(QObject):
    """Watches the docks of `host`; tell it of every resize of the host, after it."""

    def __init__(self, host: QMainWindow, docks: Mapping[str, QDockWidget]) -> None:
        super().__init__(host)
        self._host, self._docks = host, docks
        self._wanted: dict[str, int] = {}
        self._settled = host.width()
        self._giving = False

    def watch(self, dock: QDockWidget) -> None:
        """Keep the width of one more dock."""
        dock.setMinimumWidth(LEAST)
        dock.installEventFilter(self)

    def give(self, docks: Sequence[QDockWidget], width: int) -> None:
        """What docks of one side are to have, though there may be no room for it now."""
        self._wanted |= {dock.objectName(): width for dock in docks}
        self._apply()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # While the host has another width than after its last resize, it is what squeezes the dock.
        if (
            isinstance(event, QResizeEvent)
            and event.size().width() != event.oldSize().width()
            and isinstance(watched, QDockWidget)
            and self._host.width() == self._settled
            and not self._giving
            and self._is_beside(watched)
        ):
            self._wanted[watched.objectName()] = watched.width()
        return False

    def host_resized(self) -> None:
        """Give the docks what they are to have, where the host has another width."""
        if self._host.width() != self._settled:
            self._apply()

    def _apply(self) -> None:
        """Give what is wanted, as far as the diagram keeps its share."""
        beside = [dock for dock in self._docks.values() if self._is_beside(dock)]
        sides = {
            self._host.dockWidgetArea(dock): self._wanted.get(dock.objectName(), 0)
            for dock in beside
        }
        room = _MOST_SHARE * self._host.width()
        share = min(1.0, room / max(sum(sides.values()), 1))
        self._giving = True
        for dock in beside:
            wanted = max(LEAST, int(self._wanted.get(dock.objectName(), 0) * share))
            if dock.width() != wanted and dock.objectName() in self._wanted:
                self._host.resizeDocks([dock], [wanted], Qt.Orientation.Horizontal)
        layout = self._host.layout()
        if layout is not None:
            layout.activate()  # now, not later: what it does is no one's wish
        self._giving, self._settled = False, self._host.width()

    def _is_beside(self, dock: QDockWidget) -> bool:
        shown = not dock.isHidden() and not dock.isFloating()
        return shown and self._host.dockWidgetArea(dock) in _SIDES
