"""A dock makes its panel when it is first drawn or needed, keeps the last snapshot for it, and says
what it raises."""

from dataclasses import replace

import pytest

from circuitview.gui.main_window import MainWindow
from tests.gui.conftest import CountingPanel, SilentPanel, ask, begin


class TabbedPanel(CountingPanel):
    """Stands behind the counting one, as a tab."""

    NAME, TITLE, TABBED, ORDER = "tabbed", "Tabbed", True, 1


class BrokenPanel(SilentPanel):
    """Can't even be made."""

    NAME, TITLE = "broken", "Broken"

    def __init__(self, document):
        raise ZeroDivisionError("no room")


def test_no_panel_is_made_before_there_is_something_to_draw(qtbot, make_window, document):
    """Their forms held up the first paint."""
    window = make_window([CountingPanel, TabbedPanel], begun=False)
    docks = window.host.docks
    if not window._painted:
        with qtbot.waitSignal(window.first_painted):
            pass
    assert not any(dock.made for dock in docks.values())
    begin(qtbot, document)
    assert docks["counting"].made
    assert docks["counting"].panel.size() == docks["counting"]._stack.size()
    assert not docks["tabbed"].made


def test_a_panel_behind_another_is_made_when_its_tab_is_raised_with_the_last_snapshot(
    qtbot, make_window, document
):
    window = make_window([CountingPanel, TabbedPanel])
    dock = window.host.docks["tabbed"]
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
    ask(qtbot, document, lambda state: replace(state, dest=4))
    assert [name for name, dock in again.host.docks.items() if dock.made] == [raised]


def test_panel_that_raises_says_so_in_its_place_and_the_others_go_on(
    qtbot, window, document, caplog
):
    broken, sound = window.host.docks["counting"], window.host.docks["silent"]
    broken.panel.raises = ZeroDivisionError("no width")
    ask(qtbot, document, lambda state: replace(state, dest=4))
    assert broken._reason.isVisible()
    assert "ZeroDivisionError: no width" in broken._reason.text()
    assert "Traceback" in broken.trouble
    assert sound.panel.seen[-1] is document.snapshot
    assert "can't draw" in caplog.text
    broken.panel.raises = None
    ask(qtbot, document, lambda state: replace(state, dest=5))
    assert broken.panel.isVisible()
    assert broken.panel.seen[-1] is document.snapshot


def test_hidden_dock_is_stale_and_drawn_when_it_is_seen_again(qtbot, window, document):
    dock = window.host.docks["counting"]
    dock.hide()
    before = len(dock.panel.seen)
    for dest in (2, 3):
        ask(qtbot, document, lambda state, dest=dest: replace(state, dest=dest))
    assert len(dock.panel.seen) == before
    assert dock.stale
    dock.show()
    qtbot.waitUntil(lambda: not dock.stale)
    assert len(dock.panel.seen) == before + 1
    assert dock.panel.seen[-1] is document.snapshot
