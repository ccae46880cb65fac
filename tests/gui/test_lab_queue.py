"""The queue of the lab: one run after the other, each with its own model, none lost by another."""

import random
import threading
from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.ablation.sites import Site
from circuitview.core.checkpoint import open_model
from circuitview.gui import lab_queue
from circuitview.gui.lab_queue import _Pace
from circuitview.session.lab import Question, run_question
from tests.gui.conftest import MODEL, PROMPT, WAIT, ask
from tests.hf_families import save_family

TEXT = "I like milk , so I drink milk\nI like green tea , so I drink green tea\n" * 8
HEADS = Question(model=MODEL, prompts=(PROMPT,))


@pytest.fixture
def lab(analysed):
    return analysed.lab


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def wait_for(qtbot, *entries):
    qtbot.waitUntil(lambda: all(entry.ended for entry in entries), timeout=WAIT)


def measured(qtbot, lab, question):
    entry = lab.submit(question, "model")
    wait_for(qtbot, entry)
    assert entry.state == "done", entry.failure
    return entry


def numbers(entry):
    table = entry.run.table
    return table.values.tobytes(), table.clean_values.tobytes(), repr(table.rows)


def test_frozen_zero_effects_are_minus_the_contributions(qtbot, lab):
    entry = measured(qtbot, lab, replace(HEADS, frozen=True))
    assert [str(site) for site in entry.rows] == ["0.0", "0.1", "1.0", "1.1"]
    for row in entry.rows.values():
        # Logits of size 10 in float32.
        assert row.effect == pytest.approx(-row.contribution, abs=1e-4)
    assert entry.model_name == MODEL
    assert entry.run.target == "tea"


def test_runs_go_one_after_the_other_in_the_order_of_their_coming(qtbot, lab):
    began = []
    lab.changed.connect(lambda entry: began.append(entry) if entry.state == "running" else None)
    entries = [lab.submit(replace(HEADS, seed=seed), "model") for seed in range(3)]
    assert [entry.state for entry in entries] == ["running", "waiting", "waiting"]
    wait_for(qtbot, *entries)
    order = list(dict.fromkeys(began))
    assert order == entries
    assert lab.current is None


def test_a_failing_run_loses_nothing_of_the_others(qtbot, lab):
    first = lab.submit(HEADS, "model")
    wrong = lab.submit(replace(HEADS, what="chosen", chosen=("7.7",)), "model")
    missing = lab.submit(replace(HEADS, model="no-such-model"), "model")
    last = lab.submit(HEADS, "model")
    wait_for(qtbot, first, wrong, missing, last)
    assert [e.state for e in (first, wrong, missing, last)] == ["done", "failed", "failed", "done"]
    assert "7.7" in wrong.failure
    assert "no-such-model" in missing.failure
    assert "\n" not in missing.failure
    assert numbers(first) == numbers(last)


def test_a_fault_in_the_program_is_one_entry_of_the_list(qtbot, lab, monkeypatch):
    def faulty(model, question):
        if question.seed:
            raise ZeroDivisionError("made for the test")
        return (yield from run_question(model, question))

    monkeypatch.setattr(lab_queue, "run_question", faulty)
    monkeypatch.setattr("circuitview.gui.jobs.log.error", lambda *_, **__: None)
    broken, sound = lab.submit(replace(HEADS, seed=1), "model"), lab.submit(HEADS, "model")
    wait_for(qtbot, broken, sound)
    assert (broken.state, sound.state) == ("failed", "done")
    assert "made for the test" in broken.failure
    assert "ZeroDivisionError" in broken.details


def test_rows_come_while_it_runs(qtbot, lab, text_file, monkeypatch):
    monkeypatch.setattr("circuitview.gui.jobs._REPORT_EVERY", 0.0)
    seen = []
    lab.changed.connect(lambda entry: seen.append((entry.state, len(entry.rows), entry.done)))
    question = replace(HEADS, prompts=(), text=str(text_file), length=10, windows=8, metric="loss")
    entry = measured(qtbot, lab, question)
    partial = [(rows, done) for state, rows, done in seen if state == "running"]
    assert any(0 < rows <= len(entry.rows) for rows, _ in partial)
    assert [done for _, done in partial] == sorted(done for _, done in partial)
    assert entry.run.n_cases == 8
    assert tuple(entry.rows.values()) == entry.run.table.rows  # the last that came are the result
    assert all(row.contribution is not None for row in entry.rows.values())


def test_a_waiting_run_can_be_cancelled_and_taken_off(qtbot, lab):
    first, second, third = (lab.submit(HEADS, "model") for _ in range(3))
    lab.cancel(second)
    assert second.state == "cancelled"
    lab.remove(third)
    assert third not in lab.runs
    wait_for(qtbot, first)
    assert first.state == "done"
    qtbot.waitUntil(lambda: lab.current is None, timeout=WAIT)
    assert third.state == "cancelled"
    lab.clear_ended()
    assert lab.runs == []


def test_removing_the_run_that_goes_on_stops_it(qtbot, lab, analysed):
    release = threading.Event()
    analysed.jobs.start(release.wait)  # nothing is measured before
    entry, after = lab.submit(HEADS, "model"), lab.submit(HEADS, "model")
    lab.remove(entry)
    release.set()
    wait_for(qtbot, entry, after)
    assert (entry.state, after.state) == ("cancelled", "done")
    assert lab.runs == [after]


@pytest.mark.parametrize("seed", range(4))
def test_cancelled_at_any_moment_the_next_clean_run_is_equal_bit_by_bit(
    qtbot, lab, text_file, seed, monkeypatch
):
    monkeypatch.setattr("circuitview.gui.jobs._REPORT_EVERY", 0.0)
    question = replace(HEADS, prompts=(), text=str(text_file), length=10, windows=3, metric="loss")
    first = numbers(measured(qtbot, lab, question))
    draw = random.Random(seed)
    for _ in range(50):
        entry = lab.submit(question, "model")
        reports = draw.randrange(14)
        heard = []
        lab.changed.connect(heard.append)
        qtbot.waitUntil(lambda: len(heard) >= reports or entry.ended, timeout=WAIT)  # noqa: B023
        lab.cancel(entry)
        wait_for(qtbot, entry)
        lab.changed.disconnect(heard.append)
    assert numbers(measured(qtbot, lab, question)) == first
    states = {entry.state for entry in lab.runs}
    assert "cancelled" in states, "no run was ever cut short"


def test_another_model_in_the_window_neither_stops_nor_changes_a_run(qtbot, lab, analysed):
    alone = numbers(measured(qtbot, lab, HEADS))
    release = threading.Event()
    analysed.jobs.start(release.wait)
    running, waiting = lab.submit(HEADS, MODEL), lab.submit(HEADS, MODEL)
    analysed.edit(lambda state: state.with_model("cat-on-the-mat", "the cat"))
    release.set()
    wait_for(qtbot, running, waiting)
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert analysed.snapshot.results.model.name == "cat-on-the-mat"
    assert numbers(running) == numbers(waiting) == alone
    assert running.model_name == MODEL
    assert running.model is waiting.model is None  # let go when it has been measured on
    again = measured(qtbot, lab, HEADS)  # of a model that is not open any more
    assert numbers(again) == alone
    assert lab._models._kept is None  # what was opened for a run is let go when none waits


def test_a_run_waits_with_its_model_so_that_none_is_opened_again(qtbot, lab, analysed, monkeypatch):
    release = threading.Event()
    analysed.jobs.start(release.wait)
    waiting = lab.submit(HEADS, MODEL)
    analysed.edit(lambda state: state.with_model("cat-on-the-mat", "the cat"))

    def opened(name, *arguments, **named):
        assert name != MODEL, "opened again for a run that had it"
        return open_model(name, *arguments, **named)

    monkeypatch.setattr("circuitview.core.checkpoint.open_model", opened)
    release.set()
    wait_for(qtbot, waiting)
    assert (waiting.state, waiting.failure) == ("done", "")
    assert analysed.snapshot.results.model.name == "cat-on-the-mat"


def test_a_click_is_answered_while_a_run_goes_on(qtbot, lab, analysed, text_file):
    question = replace(
        HEADS, prompts=(), text=str(text_file), length=10, windows=16, metric="loss", what="pairs"
    )
    entry = lab.submit(question, "model")
    ask(qtbot, analysed, lambda state: replace(state, dest=3))
    assert not entry.ended, "the run was too short to tell"
    assert analysed.snapshot.results.expansion.target.dest == 3
    lab.cancel(entry)
    wait_for(qtbot, entry)


def test_shut_down_in_the_middle_of_a_run_nothing_is_heard_any_more(qtbot, lab, analysed):
    entry = lab.submit(replace(HEADS, what="pairs"), "model")
    waiting = lab.submit(HEADS, "model")
    heard = []
    analysed.jobs.shutdown()
    lab.changed.connect(heard.append)
    qtbot.wait(20)
    assert heard == []
    assert not any("circuitview" in thread.name for thread in threading.enumerate())
    assert waiting.state == "waiting"
    assert entry.run is None or entry.state == "done"


def test_an_opened_run_is_listed_as_done(qtbot, lab):
    entry = measured(qtbot, lab, HEADS)
    again = lab.add_opened(entry.run)
    assert again.opened
    assert again.state == "done"
    assert list(again.rows) == list(entry.rows)
    assert isinstance(next(iter(again.rows)), Site)


def test_the_pace_counts_from_the_first_report_on():
    clock = iter([10.0, 12.0, 14.0, 20.0])
    pace = _Pace(lambda: next(clock))
    assert pace.seconds_left(5, 100) is None  # preparing took its own time
    assert pace.seconds_left(15, 100) == pytest.approx(17.0)
    assert pace.seconds_left(25, 100) == pytest.approx(15.0)
    assert pace.seconds_left(25, 200) is None  # another part of the work has begun


def test_a_model_that_is_not_open_is_opened_for_the_run(qtbot, lab):
    entry = measured(qtbot, lab, Question(model="cat-on-the-mat", prompts=("the cat sat",)))
    assert np.isfinite(entry.run.table.values).all()
    assert entry.model_name == "cat-on-the-mat"


def test_cancelled_runs_leave_no_hook_in_a_model_of_another_program(
    qtbot, lab, analysed, tmp_path, monkeypatch
):
    monkeypatch.setattr("circuitview.gui.jobs._REPORT_EVERY", 0.0)
    folder = str(save_family("gpt2", tmp_path / "gpt2"))
    with qtbot.waitSignal(analysed.changed, timeout=WAIT):
        analysed.edit(lambda state: state.with_model(folder))
    qtbot.waitUntil(lambda: not analysed.computing, timeout=WAIT)
    assert analysed.snapshot.failure is None
    question = Question(model=folder, prompts=(analysed.state.prompt,), kind="zero")
    first = numbers(measured(qtbot, lab, question))
    model = analysed.pipeline.model_of(analysed.state)
    before, draw = n_hooks(model), random.Random(5)
    for _ in range(200):
        entry, heard, reports = lab.submit(question, "gpt2"), [], draw.randrange(10)
        lab.changed.connect(heard.append)
        qtbot.waitUntil(lambda: len(heard) >= reports or entry.ended, timeout=WAIT)  # noqa: B023
        lab.cancel(entry)
        wait_for(qtbot, entry)
        lab.changed.disconnect(heard.append)
        assert n_hooks(model) == before
    assert "cancelled" in {entry.state for entry in lab.runs}
    assert numbers(measured(qtbot, lab, question)) == first


def n_hooks(model):
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in model.bridge.modules()
    )
