"""A dock makes its panel when it is first seen or needed, and keeps the last snapshot for it."""

import pytest

from circuitview.gui.main_window import MainWindow
from tests.gui.conftest import CountingPanel, SilentPanel


class TabbedPanel(CountingPanel):
    """Stands behind the counting one, as a tab."""

    NAME, TITLE, TABBED, ORDER = "tabbed", "Tabbed", True, 1


class BrokenPanel(SilentPanel):
    """Can't even be made."""

    NAME, TITLE = "broken", "Broken"

    def __init__(self, document):
        raise ZeroDivisionError("no room")


def test_no_panel_is_made_before_the_window_has_been_painted(qtbot, document, store):
    window = MainWindow(document, store, [CountingPanel, TabbedPanel])
    qtbot.addWidget(window)
    docks = window.host.docks.values()
    assert not any(dock.made for dock in docks)
    with qtbot.waitSignal(window.first_painted):
        window.show()
        assert not any(dock.made for dock in docks)
    qtbot.waitUntil(lambda: window.host.docks["counting"].made)
    assert not document.computing  # made though there was nothing to draw yet
    assert not window.host.docks["tabbed"].made


def test_a_panel_behind_another_is_made_when_its_tab_is_raised_with_the_last_snapshot(
    qtbot, make_window, document
):
    window = make_window([CountingPanel, TabbedPanel])
    dock = window.host.docks["tabbed"]
    qtbot.waitUntil(lambda: window.host.docks["counting"].made)
    assert not dock.made
    assert dock.stale
    dock.raise_()
    qtbot.waitUntil(lambda: dock.made)
    assert dock.panel.seen == [document.snapshot]
    assert dock.panel.isVisible()


def test_a_panel_never_seen_can_be_exported(qtbot, make_window, document):
    window = make_window([CountingPanel, TabbedPanel])
    assert not window.host.docks["tabbed"].made
    window.export("tabbed")
    job = window._dialog.job()
    assert job.what is window.host.docks["tabbed"].panel
    assert job.figure().title == "Counting"
    window._dialog.close()


def test_a_panel_that_cannot_be_made_says_so_in_its_place_and_the_others_go_on(
    qtbot, make_window, document, caplog
):
    window = make_window([BrokenPanel, CountingPanel])
    broken, sound = window.host.docks["broken"], window.host.docks["counting"]
    qtbot.waitUntil(broken._reason.isVisible)
    assert "ZeroDivisionError: no room" in broken._reason.text()
    assert sound.panel.seen[-1] is document.snapshot
    assert [thing.NAME for thing in window.exportables()] == ["diagram", "counting"]
    window.copying.numbers()


@pytest.mark.parametrize("raised", ["counting", "tabbed"])
def test_the_tab_that_was_raised_is_the_one_that_is_made_next_time(
    qtbot, make_window, document, store, raised
):
    window = make_window([CountingPanel, TabbedPanel])
    window.host.docks[raised].raise_()
    window.keep_settings()
    again = MainWindow(document, store, [CountingPanel, TabbedPanel])
    qtbot.addWidget(again)
    again.show()
    qtbot.waitUntil(lambda: again.host.docks[raised].made)
    assert [name for name, dock in again.host.docks.items() if dock.made] == [raised]
