"""Panels on the screen, following a document as their docks would have them do; the lab used as by
a user."""

import pytest
from PySide6.QtCore import QObject

from circuitview.gui.panels.ablation import AblationPanel
from tests.gui.conftest import WAIT

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


@pytest.fixture
def panel(put_up):
    """The lab; tests of another panel have one of their own."""
    panel = put_up(AblationPanel)
    panel.resize(900, 420)
    return panel


@pytest.fixture
def measured(qtbot, panel):
    """The lab with its first run."""
    measure(qtbot, panel)
    return panel


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("I like green tea , so I drink green tea\n" * 20, encoding="utf-8")
    return path


def measure(qtbot, panel, what=None):
    """Run what the form asks, and show the results."""
    if what is not None:
        panel.form.choose(what)
    assert panel.form.reason() is None, panel.form.reason()
    panel.form.run_button.click()
    entry = panel.queue.runs[-1]
    qtbot.waitUntil(lambda: entry.ended, timeout=WAIT)
    assert entry.state == "done", entry.failure
    panel.runs.choose(entry)
    return entry


def pick(combo, text):
    """Choose as a user does."""
    combo.setCurrentIndex(combo.findText(text))
    combo.activated.emit(combo.currentIndex())
