"""The freezing panel: asks, runs in the worker, says what goes wrong, labels old numbers."""

import csv
import io
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.core.progress import Progress
from circuitview.figures.figure import Group, Rect, bounds, texts, walk
from circuitview.figures.theme import LIGHT
from circuitview.gui.dock_host import find_panels
from circuitview.gui.panels import freezing as freezing_module
from circuitview.gui.panels.freezing import FreezingPanel
from tests.gui.conftest import WAIT, ask

LINEARITY, SWAP, ROW = range(3)


@pytest.fixture
def panel(put_up):
    shown = put_up(FreezingPanel)
    shown.resize(820, 320)
    return shown


def choose(panel, place):
    panel.experiments.button(place).click()


def run(qtbot, panel):
    panel.run()
    assert panel.cancel_button.isVisible()
    qtbot.waitUntil(lambda: not panel.cancel_button.isVisible(), timeout=WAIT)


def shown(panel):
    return texts(panel.figure(panel.document.snapshot, LIGHT, 900, 500))


def table(panel):
    return list(csv.DictReader(io.StringIO(panel.csv(panel.document.snapshot))))


def test_nothing_is_run_before_it_is_asked(panel):
    assert panel.csv(panel.document.snapshot) is None
    assert not panel.answers
    assert panel.run_button.isEnabled()
    assert not panel.cancel_button.isVisible()


@pytest.mark.parametrize("place", [LINEARITY, SWAP, ROW])
def test_what_an_experiment_does_is_told_whole_before_it_is_run(panel, place):
    choose(panel, place)
    figure = panel.figure(panel.document.snapshot, LIGHT, 381, 200)
    assert " ".join(texts(figure)[1:]) == freezing_module._HINTS[place]
    assert all(bounds(item).right <= 381 for item in walk(figure))


def test_linearity_is_run_and_shown(qtbot, panel):
    run(qtbot, panel)
    assert "largest |logit|" in shown(panel)
    frozen, free = table(panel)
    assert (frozen["run"], free["run"]) == ("frozen", "free")
    assert float(frozen["added"]) < 1e-4 < float(free["added"])  # float32; free by whole logits
    assert not panel.grab().isNull()


def test_a_swap_starts_at_the_token_that_brings_most_and_runs_when_the_new_one_is_taken(
    qtbot, panel
):
    choose(panel, SWAP)
    assert panel.form.position.currentText() == "4 tea"
    qtbot.keyClicks(panel.form.token, "apples")
    panel.form.token.returnPressed.emit()
    qtbot.waitUntil(lambda: "swap" in panel.answers, timeout=WAIT)
    for row in table(panel):
        if row["swapped_logit"]:  # a whole logit, and not a change
            swapped = float(row["clean_logit"]) + float(row["change"])
            assert float(row["swapped_logit"]) == pytest.approx(swapped, abs=1e-9)
        if row["what"] == "path":
            moved = float(row["value_after"]) - float(row["value_before"])
            assert float(row["weight"]) * moved == pytest.approx(float(row["change"]), abs=1e-9)
    rows = {row["what"]: float(row["change"]) for row in table(panel) if row["what"] != "path"}
    paths = sum(float(row["change"]) for row in table(panel) if row["what"] == "path")
    # float32: the sum of the paths and the frozen run.
    assert paths + rows["remainder"] == pytest.approx(rows["sum of paths"], abs=1e-9)
    assert rows["frozen"] == pytest.approx(rows["sum of paths"], abs=1e-4)
    assert "tea → apples at position 4: change of tea" in shown(panel)


def test_a_click_on_a_token_chooses_it_for_the_swap(panel, analysed):
    choose(panel, SWAP)
    analysed.select_source(3)
    assert panel.form.position.currentText() == "3 green"
    panel.form.position.setCurrentIndex(1)
    analysed.select_head(Head(0, 1))
    assert panel.form.position.currentIndex() == 1  # only another source takes it away


def test_the_row_is_that_of_the_selected_head(qtbot, panel, analysed):
    choose(panel, ROW)
    assert panel.form.prompt_b.text() == analysed.state.prompt
    assert panel.form.head.text() == "head 1.0 at dest 9"
    analysed.select_head(Head(0, 1))
    assert panel.form.head.text() == "head 0.1 at dest 9"
    panel.form.prompt_b.clear()
    qtbot.keyClicks(panel.form.prompt_b, "I like cold tea , so I drink green")
    panel.form.prompt_b.returnPressed.emit()
    qtbot.waitUntil(lambda: "row" in panel.answers, timeout=WAIT)
    assert panel.answers["row"].found.head == Head(0, 1)
    assert "3 green → cold" in shown(panel)
    assert [row["token_b"] for row in table(panel)][3] == "cold"
    analysed.edit(lambda state: replace(state, theme="dark"))
    assert panel.form.prompt_b.text() == "I like cold tea , so I drink green"


@pytest.mark.parametrize(
    ("place", "field", "text", "says"),
    [
        (LINEARITY, "summand", "I like", "3 tokens, the frozen run 10"),
        (ROW, "prompt_b", "I like", "no position 9"),
        (ROW, "prompt_b", "I like trains", "trains"),
    ],
)
def test_what_can_not_be_run_is_said_in_the_panel_alone(qtbot, panel, place, field, text, says):
    choose(panel, place)
    line = getattr(panel.form, field)
    line.clear()
    qtbot.keyClicks(line, text)
    run(qtbot, panel)
    assert says in panel.told.text()
    assert panel.told.isVisible()
    assert not panel.answers
    assert panel.document.snapshot.failure is None
    choose(panel, SWAP)
    assert not panel.told.isVisible()  # it is of the other experiment


def test_a_swap_without_a_token_says_so(qtbot, panel):
    choose(panel, SWAP)
    run(qtbot, panel)
    assert "new token is empty" in panel.told.text()


def test_what_is_no_single_token_is_kept_and_told_when_the_field_is_left(qtbot, panel):
    """It was thrown away without a word, and the former token was run."""
    choose(panel, SWAP)
    field = panel.form.token
    panel.activateWindow()
    field.setFocus()
    qtbot.keyClicks(field, "tea green")
    panel.run_button.setFocus()
    qtbot.waitUntil(panel.told.isVisible, timeout=WAIT)
    assert "new token 'tea green' is 2 tokens" in panel.told.text()
    assert "type one token" in panel.told.text()
    assert field.text() == "tea␣green"
    assert field.property("wrong")
    run(qtbot, panel)
    assert "is 2 tokens" in panel.told.text()  # and it is what is run
    field.clear()
    qtbot.keyClicks(field, "milk")
    assert not panel.told.isVisible()
    assert not field.property("wrong")
    run(qtbot, panel)
    assert panel.answers["swap"].question.new_token == "milk"


def test_return_on_what_is_no_single_token_keeps_the_advice_and_the_mark(qtbot, panel):
    choose(panel, SWAP)
    field = panel.form.token
    field.setFocus()
    qtbot.keyClicks(field, "tea green")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "is 2 tokens" in panel.told.text(), timeout=WAIT)
    assert "type one token" in panel.told.text()
    assert field.property("wrong")
    qtbot.keyClick(field, Qt.Key.Key_Backspace)
    assert not panel.told.isVisible()
    assert not field.property("wrong")


def test_a_token_that_is_one_is_no_trouble_when_the_field_is_left(qtbot, panel):
    choose(panel, SWAP)
    panel.form.token.setText("milk")
    panel.form.token.kept.emit("milk")
    qtbot.waitUntil(lambda: not panel.document.jobs.busy, timeout=WAIT)
    assert not panel.told.text()


def test_another_prompt_turns_the_answer_into_that_of_a_former_question(qtbot, panel, analysed):
    run(qtbot, panel)
    ask(qtbot, analysed, lambda state: state.with_prompt("I like milk"))
    assert panel.told.text() == "Of another question: run again"
    assert any(text.startswith("Of another question: ") for text in shown(panel))
    assert any("“I like green tea , so I drink green”" in text for text in shown(panel))
    run(qtbot, panel)
    assert not panel.told.isVisible()
    assert not any("another question" in text for text in shown(panel))


def test_another_head_or_prompt_b_turns_the_row_into_that_of_a_former_question(
    qtbot, panel, analysed
):
    choose(panel, ROW)
    run(qtbot, panel)
    assert not panel.told.isVisible()
    analysed.select_head(Head(0, 1))
    assert panel.told.text() == "Of another question: run again"
    assert any(text.startswith("Of another question: ") for text in shown(panel))
    analysed.select_head(panel.answers["row"].found.head)
    assert not panel.told.isVisible()
    qtbot.keyClicks(panel.form.prompt_b, " tea")
    assert panel.told.text() == "Of another question: run again"
    on_screen = [item for item, _ in panel.view._pieces if isinstance(item, Group) and item.data]
    assert all(
        part.opacity < 0.5 for row in on_screen for part in row.items if isinstance(part, Rect)
    )
    exported = panel.figure(analysed.snapshot, LIGHT, 900, 500)  # a file is to be read
    assert all(item.opacity == 1 for item in walk(exported) if isinstance(item, Rect))


def test_prompt_b_is_that_of_the_window_until_it_is_edited_or_the_window_is_given_another(
    qtbot, panel, analysed
):
    choose(panel, ROW)
    black, cold = "I like black tea , so I drink green", "I like cold tea , so I drink green"
    ask(qtbot, analysed, lambda state: replace(state, other=black))
    assert panel.form.prompt_b.text() == black
    panel.form.prompt_b.clear()
    qtbot.keyClicks(panel.form.prompt_b, "I like milk")
    analysed.edit(lambda state: replace(state, theme="dark"))
    assert panel.form.prompt_b.text() == "I like milk"
    ask(qtbot, analysed, lambda state: replace(state, other=cold))
    assert panel.form.prompt_b.text() == cold


def test_another_model_drops_the_answers(qtbot, panel, analysed):
    run(qtbot, panel)
    ask(qtbot, analysed, lambda state: state.with_model("cat-on-the-mat", "the cat sat"))
    assert not panel.answers
    assert panel.csv(analysed.snapshot) is None


def test_a_run_is_cancelled_and_what_was_found_before_stays(qtbot, panel, monkeypatch):
    run(qtbot, panel)
    before = panel.answers["linearity"]

    def endless(*_asked):
        while True:
            yield Progress(1, 2)

    monkeypatch.setattr(freezing_module, "run_freezing", endless)
    panel.run()
    panel.run()  # a second one is not begun
    panel.cancel_button.click()
    qtbot.waitUntil(lambda: not panel.cancel_button.isVisible(), timeout=WAIT)
    assert panel.answers["linearity"] is before
    assert not panel.document.jobs.busy


def test_another_model_stops_a_run_that_goes_on(qtbot, panel, analysed, monkeypatch):
    def endless(*_asked):
        while True:
            yield Progress(1, 2)

    monkeypatch.setattr(freezing_module, "run_freezing", endless)
    panel.run()
    analysed.edit(lambda state: state.with_model("cat-on-the-mat", "the cat sat"))
    qtbot.waitUntil(lambda: not panel.cancel_button.isVisible(), timeout=WAIT)
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert not panel.answers


def test_a_fault_of_the_program_is_told_with_its_details(qtbot, panel, monkeypatch):
    def faulty(*_asked):
        yield Progress(0, 1)
        raise ValueError("oh")

    monkeypatch.setattr(freezing_module, "run_freezing", faulty)
    panel.run()
    qtbot.waitUntil(lambda: panel.document.snapshot.failure is not None, timeout=WAIT)
    assert "ValueError: oh" in panel.told.text()
    assert "Traceback" in panel.document.snapshot.details


def test_rows_of_the_figure_select_what_they_stand_for(panel, analysed):
    panel._pick(3)
    assert analysed.state.selection.source == 3
    panel._pick(Path.parse("token > 1.0"))
    assert analysed.state.selection.path == Path.parse("token > 1.0")


def test_the_fields_stand_over_the_figure_where_the_panel_is_narrow(qtbot, panel):
    panel.resize(380, 520)
    run(qtbot, panel)
    assert panel.scroll_area.y() > panel.form.y()
    assert panel.view.width() <= panel.scroll_area.viewport().width()
    panel.resize(900, 300)
    assert panel.scroll_area.x() > panel.side.x()


def test_a_first_window_shows_the_ablation_and_keeps_freezing_behind_a_tab(
    qtbot, make_window, document
):
    window = make_window(panels=find_panels())
    ablation, frozen = (window.host.docks[name] for name in ("ablation", "freezing"))
    assert window.host.tabifiedDockWidgets(ablation) == [frozen]
    assert frozen.stale  # nothing was drawn
    assert not ablation.stale
    frozen.raise_()
    qtbot.waitUntil(lambda: not frozen.stale, timeout=WAIT)
    ask(qtbot, document, lambda state: state.with_prompt("I like milk"))
    assert ablation.stale
    assert not frozen.stale
