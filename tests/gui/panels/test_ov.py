"""The OV breakdown: its sum, its two senses, its rows as sources."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt

from circuitview.core.names import Head
from circuitview.figures.figure import Group, texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.panels.ov import OVPanel
from tests.gui.conftest import WAIT, ask


@pytest.fixture
def panel(put_up):
    return put_up(OVPanel)


def rows(panel):
    """The data of the groups that are drawn, with where they are."""
    return {
        item.data: span
        for item, span in panel.view._pieces
        if isinstance(item, Group) and item.data is not None
    }


def test_every_source_has_a_row_and_the_total_is_theirs(panel, analysed):
    ov = analysed.snapshot.results.ov
    assert list(rows(panel)) == list(range(10))
    assert panel.total.text() == "Head 1.0: +5.40 logits"
    assert ov.contribution.sum() == pytest.approx(ov.total)


def test_the_two_senses_are_asked_of_the_document_and_explained(qtbot, panel, analysed):
    assert "all paths ending in 1.0" in panel.explanation.text()
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        panel.senses.button(0).click()
    assert analysed.state.ov_sense == "token"
    assert "token > 1.0" in panel.explanation.text()
    assert panel.total.text() == "Head 1.0: +6.00 logits"  # the path alone


def test_a_click_on_a_row_marks_its_source_and_a_second_takes_it_back(qtbot, panel, analysed):
    span = rows(panel)[4]
    y = ((span.top + span.bottom) / 2 - panel.view._crop.top) * panel.view._factor
    for expected in (4, None):
        qtbot.mouseClick(panel.view, Qt.MouseButton.LeftButton, pos=QPoint(60, round(y)))
        assert analysed.state.selection.source == expected


def test_a_source_marked_elsewhere_is_marked_here(panel, analysed):
    assert panel.view.marked_span() is None
    analysed.select_source(3)
    top, bottom = panel.view.marked_span()
    assert 0 < top < bottom
    analysed.select_source(None)
    assert panel.view.marked_span() is None


def test_arrow_keys_walk_through_the_sources(qtbot, panel, analysed):
    for expected in (0, 1, 2):
        qtbot.keyClick(panel.view, Qt.Key.Key_Down)
        assert analysed.state.selection.source == expected
    qtbot.keyClick(panel.view, Qt.Key.Key_Up)
    assert analysed.state.selection.source == 1


def test_long_prompts_scroll_and_leave_no_source_out(qtbot, panel, analysed):
    words = " ".join(["I like green tea , so I drink green"] * 3)
    ask(qtbot, analysed, lambda state: state.with_prompt(words))
    assert len(rows(panel)) == 28
    assert panel.view.height() > panel.scroll_area.viewport().height()
    assert panel.scroll_area.verticalScrollBar().maximum() > 0


def test_the_figure_follows_the_width(panel):
    before = panel.view.width()
    panel.resize(760, 500)
    assert panel.view.width() == panel.scroll_area.viewport().width() > before
    panel.resize(300, 300)  # narrower than the figure can be: drawn smaller, nothing left out
    assert panel.view.width() == panel.scroll_area.viewport().width()
    assert "weight" in texts(item for item, _ in panel.view._pieces)


def test_a_virtual_head_is_named(qtbot, panel, analysed):
    ask(qtbot, analysed, lambda state: replace(state, opened=(Head(0, 1), Head(1, 0))))
    assert panel.total.text().startswith("Virtual head 0.1 > 1.0: −0.60")
    assert "Virtual head 0.1 > 1.0" in panel.figure(analysed.snapshot, LIGHT, 500, 300).title
