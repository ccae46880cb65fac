"""The ablation panel: rows arrive, can be stopped, and are never shown for what they are not."""

import csv
import io
import threading
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from circuitview.core.names import Head
from circuitview.figures.figure import Box, Group, Text, bounds, texts, walk
from circuitview.figures.theme import LIGHT
from circuitview.gui.panels.ablation import NOTE, AblationPanel
from circuitview.gui.tables.ablation_model import CONTRIBUTION, EFFECT
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE
from circuitview.session import numbers
from tests.gui.conftest import WAIT, ask

HEADS = [Head(0, 0), Head(0, 1), Head(1, 0), Head(1, 1)]


@pytest.fixture
def panel(put_up):
    return put_up(AblationPanel)


@pytest.fixture
def measured(qtbot, panel):
    measure(qtbot, panel)
    return panel


def measure(qtbot, panel):
    with qtbot.waitSignal(panel.experiment.ended, timeout=WAIT):
        panel.run_button.click()


def amounts(panel, column):
    model = panel.model
    return {
        row.head: model.index(place, column).data(AMOUNT_ROLE)
        for place, row in enumerate(model.rows)
    }


def test_rows_say_what_each_head_contributes_and_what_zeroing_does(measured):
    assert [row.head for row in measured.model.rows] == HEADS
    contributions, effects = amounts(measured, CONTRIBUTION), amounts(measured, EFFECT)
    assert contributions[Head(1, 0)] == pytest.approx(5.4, abs=1e-4)
    # The head that notes the word before is worth 1 in the books, and 6.4 in the experiment.
    assert contributions[Head(0, 0)] == pytest.approx(1.0, abs=1e-4)
    assert effects[Head(0, 0)] == pytest.approx(2.3 - 8.7, abs=1e-3)
    assert "Patterns free · tea 8.70" in measured._words
    assert NOTE in measured.status.toolTip()


def test_frozen_the_effect_is_minus_the_contribution(qtbot, panel):
    panel.patterns.button(1).click()
    measure(qtbot, panel)
    contributions, effects = amounts(panel, CONTRIBUTION), amounts(panel, EFFECT)
    for head in HEADS:
        assert effects[head] == pytest.approx(-contributions[head], abs=1e-4)
    assert "frozen" in panel.status.text()


def test_rows_arrive_one_by_one_and_in_order(qtbot, panel):
    counts = []
    panel.model.rowsInserted.connect(lambda *_: counts.append(panel.model.rowCount()))
    measure(qtbot, panel)
    assert counts == sorted(set(counts))
    assert counts[-1] == len(HEADS)


def test_while_it_runs_it_can_be_cancelled(qtbot, panel, analysed):
    panel.run()
    assert panel.experiment.running
    assert panel.cancel_button.isVisible()
    assert not panel.run_button.isVisible()
    with qtbot.waitSignal(panel.experiment.ended, timeout=WAIT):
        panel.cancel_button.click()
    assert not panel.experiment.running
    assert panel.run_button.isVisible()
    assert analysed.snapshot.failure is None  # cancelled is not an error
    if panel.model.rows:
        assert "so far" in panel._words


def test_results_of_a_former_question_are_marked(qtbot, measured, analysed):
    ask(qtbot, analysed, lambda state: replace(state, dest=5))
    assert measured.model.stale
    assert "former question" in measured.status.text()
    assert "former question" in measured.figure(analysed.snapshot, LIGHT, 500, 400).title
    assert measured.plot._overlay.opacity() < 1
    ask(qtbot, analysed, lambda state: replace(state, dest=None, target="apples"))
    assert measured.model.stale  # another target is another question
    measure(qtbot, measured)
    assert not measured.model.stale
    assert "apples 2.50" in measured.status.text()
    assert measured.plot._overlay.opacity() == 1


def test_a_new_prompt_stops_a_run_that_nobody_waits_for(qtbot, panel, analysed):
    panel.run()
    ask(qtbot, analysed, lambda state: state.with_prompt("I like milk"))
    qtbot.waitUntil(lambda: not panel.experiment.running, timeout=WAIT)
    assert panel.model.stale or not panel.model.rows


def test_a_hidden_panel_stops_a_run_that_nobody_waits_for(qtbot, make_window, document):
    """The run on the former question went on, while its dock was closed."""
    window = make_window([AblationPanel])
    dock = window.host.docks["ablation"]
    release = threading.Event()
    document.jobs.start(release.wait)  # no head is measured before
    dock.panel.run()
    dock.close()
    document.edit(lambda state: replace(state, dest=3))
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        release.set()
    assert dock.panel.experiment._job is None or dock.panel.experiment._job._task.cancelled
    qtbot.waitUntil(lambda: not dock.panel.experiment.running, timeout=WAIT)
    assert len(dock.panel.model.rows) < len(HEADS)
    assert not dock.panel.experiment.measured.complete


def test_a_row_and_a_point_select_the_head_everywhere(qtbot, measured, analysed):
    where = measured.view.visualRect(measured.model.index_of(Head(0, 1))).center()
    qtbot.mouseClick(measured.view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert analysed.state.selection.head == Head(0, 1)
    measured.plot.clicked.emit("1.0")
    assert analysed.state.selection.head == Head(1, 0)
    assert measured._sole_head() == Head(1, 0)
    marked = [point.label for point in measured._points() if point.marked]
    assert marked == ["1.0"]


def test_the_point_under_the_mouse_is_found(measured):
    scale = measured.plot._scale()
    from PySide6.QtCore import QPointF

    row = measured.model.rows[0]
    found = measured.plot.point_at(QPointF(scale.x(row.contribution), scale.y(row.effect)))
    assert found is not None
    assert found.data == "0.0"
    assert measured.plot.point_at(QPointF(1, 1)) is None


def test_sorted_rows_keep_the_selected_head(measured, analysed):
    analysed.select_head(Head(1, 1))
    measured.view.header().setSortIndicator(EFFECT, Qt.SortOrder.AscendingOrder)
    effects = [row.effect for row in measured.model.rows]
    assert effects == sorted(effects)
    assert measured._sole_head() == Head(1, 1)


def test_csv_has_clean_plus_effect_equal_to_ablated(measured, analysed):
    rows = list(csv.DictReader(io.StringIO(measured.csv(analysed.snapshot))))
    assert [row["head"] for row in rows] == [str(head) for head in HEADS]
    for row in rows:
        clean, effect, ablated = (float(row[key]) for key in ("clean", "effect", "ablated"))
        assert clean + effect == pytest.approx(ablated, abs=1e-9)
        assert row["patterns"] == "free"


def test_the_exported_figure_names_every_head(measured, analysed):
    figure = measured.figure(analysed.snapshot, LIGHT, 900, 600)
    assert {str(head) for head in HEADS} <= set(texts(figure))
    assert "effect = −contribution" in texts(figure)
    assert "circuitview" in figure.description


@pytest.mark.parametrize("size", [(900, 300), (460, 620), (1920, 1080)])
def test_the_exported_figure_holds_the_table_in_its_order(measured, analysed, size):
    measured.view.header().setSortIndicator(EFFECT, Qt.SortOrder.AscendingOrder)
    figure = measured.figure(analysed.snapshot, LIGHT, *size)
    table = next(item for item in walk_groups(figure.items) if item.id == "table")
    rows = [item for item in walk_groups(table.items) if isinstance(item.data, Head)]
    assert [row.data for row in rows] == [row.head for row in measured.model.rows]
    for row, item in zip(measured.model.rows, rows, strict=True):
        amounts = [numbers.logits(value, signed=True) for value in (row.contribution, row.effect)]
        cells = [text.text for text in item.items if isinstance(text, Text)]
        assert cells == [str(row.head), *amounts, numbers.logits(row.value)]
    assert {"head", "contribution", "effect", "ablated", "clean"} <= set(texts(figure))
    assert any(item.id == "point-0.1" for item in walk_groups(figure.items))
    frame = Box(0, 0, *size)
    boxes = [box for box in map(bounds, walk(figure)) if box is not None]
    assert all(frame.contains(box, slack=1.0) for box in boxes)


def walk_groups(items):
    for item in items:
        if isinstance(item, Group):
            yield item
            yield from walk_groups(item.items)
