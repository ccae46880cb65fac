"""A freezing experiment asked in plain values gives what the core gives."""

import pytest

from circuitview.core.checkpoint import open_model
from circuitview.core.freezing.linearity import linearity
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.progress import finished
from circuitview.session.freezing import EXPERIMENTS, FreezingQuestion, run_freezing
from circuitview.session.state import State

PROMPT = "I like green tea , so I drink green"
ABOUT = State(model="induction-by-hand", prompt=PROMPT)


@pytest.fixture(scope="module")
def model():
    return open_model("induction-by-hand")


def found(model, **asked):
    return finished(run_freezing(model, FreezingQuestion(about=ABOUT, **asked)))


def test_linearity_is_asked_with_its_seed_or_another_prompt(model):
    recording = model.run(model.prompt(PROMPT))
    core = finished(linearity(model, recording, seed=5))
    asked = found(model, experiment="linearity", seed=5)
    assert (asked.other, asked.frozen, asked.free) == (core.other, core.frozen, core.free)
    other = found(model, experiment="linearity", other="we like black tea , so we drink black")
    assert other.other[1:3] == ("we", "like")


def test_a_swap_takes_the_target_and_dest_of_the_state(model):
    asked = found(model, experiment="swap", position=4, new_token="apples")
    assert (asked.target.label, asked.target.dest) == ("tea", 9)
    assert asked.frozen == pytest.approx(-5.2, abs=5e-6)  # the hand-built model's leak


def test_a_row_takes_the_head_that_is_named_else_the_strongest(model):
    other = "I like cold tea , so I drink green"
    named = found(model, experiment="row", other=other, head=Head(0, 1))
    assert (named.head, named.dest) == (Head(0, 1), 9)
    assert found(model, experiment="row", other=other).head == Head(1, 0)
    assert named.prompt_b.labels[3] == "cold"


def test_a_row_without_a_second_prompt_is_refused(model):
    with pytest.raises(CircuitviewError, match="prompt B is empty"):
        found(model, experiment="row", other="  ")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_each_can_be_stopped_after_any_step_and_the_next_run_is_the_same(model, experiment):
    question = FreezingQuestion(
        about=ABOUT, experiment=experiment, other=PROMPT, position=4, new_token="apples"
    )
    before = model.run(model.prompt(PROMPT)).logits
    total = sum(1 for _ in run_freezing(model, question))
    assert total >= 3
    for stop in range(1, total + 1):
        steps = run_freezing(model, question)
        for _ in range(stop):
            next(steps)
        steps.close()
    assert model.run(model.prompt(PROMPT)).logits.equal(before)
