"""Panels on the screen, following a document as their docks would have them do."""

import pytest
from PySide6.QtCore import QObject

SIZE = (460, 420)


class Follower(QObject):
    """Hands a document's snapshots to a panel."""

    def __init__(self, document, panel):
        super().__init__(panel)
        self._panel = panel
        document.changed.connect(self.follow)
        panel.show_snapshot(document.snapshot)

    def follow(self, snapshot, before):
        self._panel.show_snapshot(snapshot)


@pytest.fixture
def put_up(qtbot, analysed):
    """Makes a panel of a class, shown and following the analysed document."""
    owned = []  # as by a dock; a panel that only the collector holds is torn apart in any order

    def make(panel_class):
        panel = panel_class(analysed)
        qtbot.addWidget(panel)
        panel.resize(*SIZE)
        panel.show()
        qtbot.waitExposed(panel)
        Follower(analysed, panel)
        owned.append(panel)
        return panel

    yield make
    owned.clear()
