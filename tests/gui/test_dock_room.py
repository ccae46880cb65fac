"""A dock under the diagram gets height when it has something to show, unless someone chose it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from circuitview.gui.main_window import MainWindow
from circuitview.gui.panels.ablation import AblationPanel
from circuitview.gui.panels.freezing import FreezingPanel
from tests.gui.conftest import WAIT, CountingPanel, SilentPanel

ROOM = 200  # pixels; more than the first arrangement gives, less than half of the window


class LowPanel(CountingPanel):
    """Stands under the diagram, in front of a tab."""

    NAME, TITLE, AREA = "low", "Low", "bottom"


class BehindPanel(LowPanel):
    """The tab behind it."""

    NAME, TITLE, TABBED, ORDER = "behind", "Behind", True, 1


PANELS = [LowPanel, BehindPanel, SilentPanel]


@pytest.fixture
def low(qtbot, make_window):
    window = make_window(PANELS)
    window.resize(1280, 800)
    window.reset_layout()
    qtbot.waitUntil(lambda: window.host.docks["low"].made)
    return window


def ask_for_room(window, name="low"):
    dock = window.host.docks[name]
    dock.panel.room_asked.emit(ROOM)
    return dock.panel.height()


def test_a_dock_that_no_one_has_sized_grows(qtbot, low):
    assert low.host.docks["low"].panel.height() < ROOM
    assert ask_for_room(low) >= ROOM
    assert low.diagram.height() > ROOM
    qtbot.waitUntil(low.diagram.updatesEnabled)  # it is painted in the next turn


def test_it_grows_in_a_window_that_was_made_larger(qtbot, low):
    low.resize(1400, 900)
    qtbot.waitUntil(lambda: low.host.width() == 1400)
    assert ask_for_room(low) >= ROOM


def test_it_never_takes_more_than_half(low):
    low.host.docks["low"].panel.room_asked.emit(5000)
    assert low.host.docks["low"].height() <= low.host.height() / 2


@pytest.mark.parametrize("height", [140, 190])
def test_a_height_that_was_chosen_stays(low, height):
    dock = low.host.docks["low"]
    low.host.resizeDocks([dock], [height], Qt.Orientation.Vertical)
    low.host.layout().activate()
    before = dock.height()
    ask_for_room(low)
    assert dock.height() == before


def test_it_grows_once(low):
    ask_for_room(low)
    dock = low.host.docks["low"]
    low.host.resizeDocks([dock], [150], Qt.Orientation.Vertical)
    low.host.layout().activate()
    before = dock.height()
    ask_for_room(low)
    assert dock.height() == before


@pytest.mark.parametrize("chosen", [False, True])
def test_next_time_a_height_that_was_chosen_is_known_as_chosen(qtbot, low, document, store, chosen):
    if chosen:
        low.host.resizeDocks([low.host.docks["low"]], [150], Qt.Orientation.Vertical)
        low.host.layout().activate()
    low.keep_settings()
    again = MainWindow(document, store, PANELS)
    qtbot.addWidget(again)
    with qtbot.waitSignal(again.first_painted):
        again.show()
    before = again.host.docks["low"].panel.height()
    assert before < ROOM
    assert (ask_for_room(again) >= ROOM) == (not chosen)


def test_a_panel_that_filled_the_window_leaves_it_as_it_was(low):
    low.host.toggle_maximised("low")
    low.host.toggle_maximised("low")
    assert ask_for_room(low) >= ROOM


@pytest.mark.parametrize("size", [(1280, 800), (1440, 900)])
def test_the_lab_shows_nine_rows_and_a_plot_once_it_has_run(qtbot, make_window, document, size):
    window = make_window([AblationPanel, FreezingPanel, SilentPanel, CountingPanel])
    window.resize(*size)
    window.reset_layout()
    dock = window.host.docks["ablation"]
    qtbot.waitUntil(lambda: dock.panel.form.run_button.isEnabled())
    form = dock.panel.form
    fields = (form.what, form.kind, form.later, form.on, form.measure)
    # Before anything has run, all of the form is seen.
    qtbot.waitUntil(lambda: all(is_in_view(field, form.viewport()) for field in fields))
    form.run_button.click()
    qtbot.waitUntil(lambda: document.lab.runs[-1].ended, timeout=WAIT)
    qtbot.waitUntil(lambda: dock.panel.results.plots.height() >= 180)
    table = dock.panel.results.table
    assert table.viewport().height() >= 9 * table.sizeHintForRow(0)
    assert whole(form.run_button)
    assert all(whole(dock.panel.pages.button(place)) for place in (0, 1))


def is_in_view(field: QWidget, view: QWidget) -> bool:
    return view.rect().contains(field.mapTo(view, field.rect().bottomRight()))


def whole(button: QWidget) -> bool:
    """Whether a button is seen, with room for all of its words."""
    words = button.fontMetrics().horizontalAdvance(button.text())
    return button.isVisible() and button.visibleRegion().boundingRect().width() >= words + 8
