"""The heatmap: orientation, colours, reading and clicking it, and which head is shown."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from circuitview.core.names import Head
from circuitview.figures.figure import Box, texts
from circuitview.figures.theme import DARK, LIGHT, sequential
from circuitview.gui.panels.attention import AttentionPanel, coloured, levels
from circuitview.gui.plots.heatmap_marks import View, axes, cell_values, labels_shown
from tests.gui.conftest import WAIT, ask

INDUCTION = (Head(1, 0),)


@pytest.fixture
def panel(put_up):
    return put_up(AttentionPanel)


def pixel(panel, dest, src):
    """The middle of a cell, in the plot's own pixels."""
    view = panel.plot.view()
    return QPoint(round(view.x(src + 0.5)), round(view.y(dest + 0.5)))


def click(qtbot, panel, dest, src, modifier=Qt.KeyboardModifier.NoModifier):
    port = panel.plot.viewport()
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, modifier, pixel(panel, dest, src))


def test_the_strongest_head_is_shown_first(panel, analysed):
    assert analysed.snapshot.results.chain == INDUCTION
    assert panel.chooser.currentText() == "strongest head: 1.0"
    assert panel.readout.text() == "Head 1.0: attention pattern"
    assert panel.modes.place == 0


def test_dest_0_is_on_top_and_src_0_on_the_left(panel):
    """An asymmetric picture: pyqtgraph would turn it without its row-major option."""
    view = panel.plot.view()
    assert view.at(view.x(0.5), view.y(0.5)) == (0, 0)
    shown = panel.plot.grab().toImage()
    strong = pixel(panel, 9, 4)  # green looks at tea: the cell of weight 1
    colour = shown.pixelColor(QPoint(strong.x() - 7, strong.y() - 7))
    assert colour.name() == LIGHT.attention[-1]
    future = pixel(panel, 4, 9)
    assert shown.pixelColor(future).name() == LIGHT.background


def test_hover_reads_the_cell(qtbot, panel, analysed):
    qtbot.mouseMove(panel.plot.viewport(), pixel(panel, 9, 4))
    qtbot.waitUntil(lambda: "dest 9 green ← 4 tea" in panel.readout.text(), timeout=WAIT)
    assert panel.readout.text().startswith("1.00")
    panel.plot.hovered.emit(None)
    assert panel.readout.text() == "Head 1.0: attention pattern"


def test_a_click_makes_the_row_the_dest(qtbot, panel, analysed):
    click(qtbot, panel, 6, 3)
    assert analysed.state.dest == 6
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert analysed.snapshot.results.expansion.target.dest == 6


def test_a_click_on_the_dest_row_asks_for_nothing(qtbot, panel, analysed):
    before = analysed.state
    click(qtbot, panel, 9, 3)
    assert analysed.state == before


def test_shift_click_marks_the_source(qtbot, panel, analysed):
    click(qtbot, panel, 9, 4, Qt.KeyboardModifier.ShiftModifier)
    assert analysed.state.selection.source == 4
    assert analysed.state.dest is None


def test_modes_are_asked_of_the_document(qtbot, panel, analysed):
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.modes.button(1).click()
    assert analysed.state.heatmap_mode == "scores"
    assert panel.readout.text() == "Head 1.0: scores before softmax"
    assert panel.bar._low < 0 < panel.bar._high


def test_scores_of_a_virtual_head_are_said_not_to_exist(qtbot, panel, analysed):
    ask(
        qtbot,
        analysed,
        lambda state: replace(state, opened=(Head(0, 1), Head(1, 0)), heatmap_mode="scores"),
    )
    assert panel.message.isVisible()
    assert "0.1 > 1.0 has no scores" in panel.message.text()
    assert panel.chooser.currentText() == "Virtual head 0.1 > 1.0"
    assert texts(panel.figure(analysed.snapshot, LIGHT, 400, 300)) == ()
    ask(qtbot, analysed, lambda state: replace(state, heatmap_mode="pattern"))
    assert panel.plot.isVisible()
    assert "product" in panel.readout.text()


def test_next_and_previous_go_round_the_heads(qtbot, panel, analysed):
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.next.click()
    assert analysed.state.opened == (Head(1, 1),)
    assert panel.chooser.currentText() == "Head 1.1"
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.next.click()
    assert analysed.state.opened == (Head(0, 0),)
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.previous.click()
    assert analysed.state.opened == (Head(1, 1),)


def test_the_chooser_opens_a_head_and_returns_to_the_strongest(qtbot, panel, analysed):
    place = panel.chooser.findText("Head 0.1")
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.chooser.setCurrentIndex(place)
        panel.chooser.activated.emit(place)
    assert analysed.state.opened == (Head(0, 1),)
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.chooser.activated.emit(0)
    assert analysed.state.opened is None
    assert panel.chooser.currentText() == "strongest head: 1.0"


def test_zoom_stays_when_the_dest_changes_and_goes_with_the_prompt(qtbot, panel, analysed):
    panel.plot.box.setRange(xRange=(2, 6), yRange=(3, 7), padding=0)
    ask(qtbot, analysed, lambda state: replace(state, dest=5))
    assert panel.plot.view().visible_src() == range(2, 6)
    panel.reset.click()
    assert panel.plot.view().visible_src() == range(10)
    panel.plot.box.setRange(xRange=(2, 6), yRange=(3, 7), padding=0)
    ask(qtbot, analysed, lambda state: state.with_prompt("I like tea"))
    assert panel.plot.view().visible_src() == range(4)


def test_the_future_is_transparent_and_levels_are_fixed():
    values = np.array([[0.2, 0.0], [0.6, 0.1]])
    assert levels(values, "pattern") == (0.0, 1.0)
    assert levels(np.array([[-3.0, 99.0], [1.0, 2.0]]), "scores") == (-3.0, 3.0)
    assert levels(values, "value-weighted") == (0.0, 0.6)
    for mode in ("pattern", "scores", "value-weighted"):
        rgba = coloured(values, mode, DARK, 1.0)
        assert rgba[0, 1, 3] == 0
        assert rgba[np.tril_indices(2)][:, 3].tolist() == [255] * 3
    assert np.array_equal(coloured(values, "pattern", LIGHT, 1.0)[1, 0], sequential(0.6, LIGHT))


def test_labels_thin_out_and_keep_the_chosen_one():
    ticks, sparse = labels_shown(range(120), 2.0, 57)
    assert sparse
    assert 57 in ticks
    assert len(ticks) <= 120 * 2.0 / 13
    assert all(later - earlier >= 6 for earlier, later in pairwise(ticks))
    assert labels_shown(range(10), 10.0, None) == ([0, 2, 4, 6, 8], False)
    assert labels_shown(range(10), 20.0, None) == (list(range(10)), False)


def test_a_view_tells_cells_from_the_future_and_the_outside():
    view = View(Box(50, 10, 150, 110), src=2.0, dest=3.0, side=20.0, count=10)
    assert view.visible_src() == range(2, 7)
    assert view.visible_dest() == range(3, 8)
    assert view.at(51, 11) == (3, 2)
    assert view.at(149, 11) is None  # src 6 lies after dest 3
    assert view.at(10, 50) is None


def test_labels_of_what_is_out_of_view_are_not_drawn():
    view = View(Box(50, 10, 150, 110), src=2.0, dest=3.0, side=20.0, count=10)
    labels = [f"t{place}" for place in range(10)]
    drawn = {item.text for item in axes(view, labels, 4, 2, 60, LIGHT) if hasattr(item, "text")}
    assert drawn == {"t2", "t3", "t4", "t5", "t6", "t7", "dest", "src"}


def test_values_are_written_where_they_fit():
    values = np.tril(np.full((5, 5), 0.25))
    rgba = coloured(values, "pattern", LIGHT, 1.0)
    large = View(Box(0, 0, 200, 200), 0, 0, 40.0, 5)
    assert {text.text for text in cell_values(large, values, rgba, True, LIGHT)} == {"0.25"}
    small = View(Box(0, 0, 50, 50), 0, 0, 10.0, 5)
    assert cell_values(small, values, rgba, True, LIGHT) == []


@pytest.mark.parametrize("count", [256, 1024])
def test_long_prompts_are_drawn(panel, count):
    from circuitview.gui.plots.heatmap import HeatmapContent

    values = np.tril(np.full((count, count), 1 / count))
    labels = tuple(f"t{place}" for place in range(count))
    rgba = coloured(values, "pattern", LIGHT, 1.0)
    panel.plot.show_content(HeatmapContent(values, rgba, labels, count - 1, 3, True), LIGHT)
    shown = panel.plot.grab().toImage()
    low = pixel(panel, count * 3 // 4, count // 4)
    assert shown.pixelColor(low).name() != LIGHT.background
    high = pixel(panel, count // 4, count * 3 // 4)
    assert shown.pixelColor(high).name() == LIGHT.background
