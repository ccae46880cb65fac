"""The document: results and state belong together, failures leave the last good ones."""

from dataclasses import replace

import pytest

from circuitview.core import expansion as expansion_module
from circuitview.core.names import TOKEN, Head
from circuitview.core.path import Path
from circuitview.core.progress import Progress
from circuitview.gui.document import Document
from circuitview.session.state import Selection, State
from tests.gui.conftest import MODEL, PROMPT, WAIT, ask, begin, unbalanced


def test_first_results_belong_to_the_first_state(analysed):
    snapshot = analysed.snapshot
    assert snapshot.state == analysed.state
    assert snapshot.results.model.name == MODEL
    assert snapshot.results.expansion.balanced
    assert snapshot.results.predictions[0].label == "tea"
    assert snapshot.results.heatmap.shape == (10, 10)
    assert not analysed.computing


def test_every_snapshot_shown_has_the_results_of_its_state(qtbot, analysed):
    seen = []
    analysed.changed.connect(lambda new, old: seen.append(new))
    for dest in (3, 5, 7, 2):
        ask(qtbot, analysed, lambda state, dest=dest: replace(state, dest=dest))
    assert [s.results.expansion.target.dest for s in seen] == [s.state.dest for s in seen]
    assert seen[-1].state.dest == 2


def test_rapid_edits_show_only_the_last_answer(qtbot, analysed):
    seen = []
    analysed.changed.connect(lambda new, old: seen.append(new.state.dest))
    for dest in (1, 2, 3, 4, 5, 6):
        analysed.edit(lambda state, dest=dest: replace(state, dest=dest))
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert seen == [6]


def test_edit_back_to_what_is_shown_drops_the_answer_under_way(qtbot, analysed):
    seen = []
    before = analysed.state
    analysed.changed.connect(lambda new, old: seen.append(new.state.dest))
    analysed.edit(lambda state: replace(state, dest=1))
    analysed.set(before)
    qtbot.waitUntil(lambda: not analysed.jobs.busy, timeout=WAIT)
    assert seen == []
    assert not analysed.computing


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.with_prompt(""), "empty"),
        (lambda state: state.with_prompt("no such words"), "vocabulary"),
        (lambda state: state.with_prompt("I " * 60), "61 tokens"),
        (lambda state: replace(state, target="I like"), "2 tokens"),
        (lambda state: replace(state, target="tea", versus="tea"), "both"),
        (lambda state: replace(state, dest=99), "out of range"),
        (lambda state: state.with_model("no-such-model"), "no-such-model"),
        (lambda state: replace(state, opened=(Head(1, 0), Head(0, 0))), "rise"),
    ],
)
def test_bad_input_is_told_and_the_last_analysis_stays(qtbot, analysed, change, words):
    good = analysed.snapshot
    ask(qtbot, analysed, change)
    assert words in analysed.snapshot.failure
    assert "\n" not in analysed.snapshot.failure
    assert analysed.snapshot.results is good.results
    assert analysed.snapshot.state == analysed.state == good.state
    ask(qtbot, analysed, lambda state: replace(state, dest=4))
    assert analysed.snapshot.failure is None
    assert analysed.snapshot.state.dest == 4


def test_visual_fields_apply_at_once_and_need_no_worker(analysed):
    before = analysed.snapshot.results
    path = Path(TOKEN, (Head(1, 0),))
    analysed.select_path(path)
    analysed.edit(lambda state: replace(state, floor=0.5, theme="dark"))
    assert not analysed.computing
    assert analysed.snapshot.state.selection.path == path
    assert (analysed.snapshot.state.floor, analysed.snapshot.state.theme) == (0.5, "dark")
    assert analysed.snapshot.results is before


def test_visual_edit_while_computing_is_kept_by_the_answer(qtbot, analysed):
    analysed.edit(lambda state: replace(state, dest=3))
    analysed.edit(lambda state: replace(state, floor=0.25))
    assert analysed.snapshot.state.floor == 0.25
    assert analysed.snapshot.state.dest is None
    assert analysed.computing
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert (analysed.snapshot.state.dest, analysed.snapshot.state.floor) == (3, 0.25)


def test_selection_that_a_shorter_prompt_lacks_is_dropped(qtbot, analysed):
    analysed.edit(lambda state: state.with_prompt("I like"))
    analysed.select_source(8)  # of the tokens still shown
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert analysed.snapshot.state.selection == Selection()
    assert analysed.state.selection == Selection()


def test_model_switch_drops_a_head_that_it_lacks(qtbot, analysed):
    analysed.select_head(Head(1, 1))
    ask(qtbot, analysed, lambda state: state.with_model("cat-on-the-mat"))
    assert analysed.snapshot.results.model.name == "cat-on-the-mat"
    assert analysed.snapshot.state.selection == Selection()


def test_model_that_cannot_read_the_prompt_opens_on_its_own(qtbot, analysed):
    ask(qtbot, analysed, lambda state: state.with_model("cat-on-the-mat"))
    assert analysed.snapshot.failure is None
    assert analysed.snapshot.state.prompt == "the cat sat on the mat . the cat"
    ask(qtbot, analysed, lambda state: state.with_model(MODEL))
    assert analysed.snapshot.state.prompt == PROMPT


def test_model_switch_in_the_middle_of_a_job_leaves_the_job_running(qtbot, analysed):
    def rows():
        for i in range(200):
            yield Progress(i + 1, 200, i)
        return "all"

    job = analysed.jobs.start(rows)
    ask(qtbot, analysed, lambda state: state.with_model("cat-on-the-mat"))
    assert analysed.snapshot.results.model.name == "cat-on-the-mat"
    qtbot.waitUntil(lambda: not job.running, timeout=WAIT)


def test_imbalance_is_refused_and_shows_nothing(qtbot, analysed, monkeypatch):
    facts = analysed.snapshot.results.model
    with monkeypatch.context() as patch:
        patch.setattr(expansion_module, "expansion_steps", unbalanced)
        ask(qtbot, analysed, lambda state: replace(state, dest=4))
    snapshot = analysed.snapshot
    assert snapshot.refused
    assert "don't add up" in snapshot.failure
    assert snapshot.results.expansion is None
    assert snapshot.results.model is facts
    ask(qtbot, analysed, lambda state: replace(state, dest=5))
    assert not analysed.snapshot.refused
    assert analysed.snapshot.results.expansion.target.dest == 5


def test_failure_after_a_refusal_comes_back_to_the_last_good_analysis(qtbot, analysed, monkeypatch):
    good = analysed.snapshot.results
    with monkeypatch.context() as patch:
        patch.setattr(expansion_module, "expansion_steps", unbalanced)
        ask(qtbot, analysed, lambda state: replace(state, dest=4))
    ask(qtbot, analysed, lambda state: replace(state, target="no such"))
    assert not analysed.snapshot.refused
    assert analysed.snapshot.results is good


def test_dismissed_failure_is_gone_and_a_report_shows(qtbot, analysed):
    analysed.report("something else", "at length")
    assert (analysed.snapshot.failure, analysed.snapshot.details) == ("something else", "at length")
    analysed.dismiss()
    assert analysed.snapshot.failure is None


def test_fallback_opens_where_the_first_model_does_not(qtbot, jobs):
    document = Document(jobs, State(model="gone"))
    fallback = State(model=MODEL, prompt=PROMPT)
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        document.start(fallback)
    assert "gone" in document.snapshot.failure
    assert document.snapshot.results.model.name == MODEL
    assert document.state.model == MODEL


def test_without_fallback_the_first_failure_shows_nothing(qtbot, jobs):
    document = Document(jobs, State(model="gone"))
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        document.start()
    assert document.snapshot.results.expansion is None
    assert not document.snapshot.refused


def test_what_is_done_is_told_and_ends(qtbot, document):
    said = []
    document.computing_changed.connect(said.append)
    begin(qtbot, document)
    assert said[0] == "computing"
    assert said[-1] == ""
    assert any(text.startswith("opening ") for text in said)


def test_fault_of_the_program_is_told_with_its_traceback(qtbot, analysed, monkeypatch):
    good = analysed.snapshot.results

    def break_down(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("circuitview.core.target.resolve_target", break_down)
    ask(qtbot, analysed, lambda state: replace(state, dest=2))
    assert "ZeroDivisionError" in analysed.snapshot.failure
    assert "Traceback" in analysed.snapshot.details
    assert analysed.snapshot.results is good
