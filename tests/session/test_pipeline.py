"""The pipeline: what is made again for which change, and what a failure leaves."""

from dataclasses import replace

import pytest

from circuitview.core.names import CircuitviewError, Head
from circuitview.session.pipeline import STAGES, Pipeline
from circuitview.session.state import State

START = State(model="induction-by-hand", prompt="I like green tea , so I drink green")
NAMES = tuple(stage.name for stage in STAGES)


@pytest.fixture(scope="module")
def done():
    pipeline = Pipeline()
    pipeline.advance(START)
    return pipeline


def test_fresh_pipeline_makes_everything():
    assert Pipeline().stale(START) == NAMES


@pytest.mark.parametrize(
    ("change", "stale"),
    [
        ({}, ()),
        ({"floor": 1.0, "theme": "dark"}, ()),
        ({"heatmap_mode": "scores"}, ("heatmap",)),
        ({"ov_sense": "token"}, ("ov",)),
        ({"opened": (Head(1, 1),)}, ("chain", "ov", "heatmap")),
        ({"dest": 3}, ("goal", "expansion", "predictions", "chain", "ov", "heatmap")),
        ({"versus": "like"}, ("goal", "expansion", "predictions", "chain", "ov", "heatmap")),
        ({"prompt": "I like"}, NAMES[4:]),
        ({"prepend_bos": False}, NAMES[4:]),
        ({"dtype": "float64"}, ("room", "check", *NAMES[5:])),
        ({"through_mlps": True}, ("expansion",)),
        ({"device": "cuda"}, NAMES[1:]),
        ({"tokenizer": "numbers"}, NAMES[1:]),
        ({"given": (("eps", "0.1"),)}, NAMES[1:]),
        ({"model": "cat-on-the-mat"}, NAMES),
    ],
)
def test_change_makes_stale_what_depends_on_it_and_nothing_else(done, change, stale):
    assert done.stale(replace(START, **change)) == stale


def test_equal_value_leaves_the_later_stages_as_they_are():
    pipeline = Pipeline()
    first = pipeline.advance(START)
    same = pipeline.advance(replace(START, target="tea"))  # which was the top prediction
    assert same.expansion is first.expansion
    assert same.ov is first.ov
    same = pipeline.advance(replace(START, prompt=START.prompt + " "))  # the same tokens
    assert same.expansion is first.expansion


def test_results_are_those_of_the_state():
    results = Pipeline().advance(
        replace(START, dest=8, target="drink", versus="tea", dtype="float64", ov_sense="token")
    )
    assert results.expansion.target.dest == 8
    assert str(results.expansion.target) == "drink − tea"
    assert results.expansion.tolerance < 1e-9
    assert results.ov.heads == results.chain
    assert results.ov.sense == "token"
    assert sum(p.probability for p in results.predictions) <= 1 + 1e-9
    assert [p.probability for p in results.predictions] == sorted(
        (p.probability for p in results.predictions), reverse=True
    )


def test_virtual_head_has_a_pattern_and_no_scores():
    chain = (Head(0, 0), Head(1, 0))
    pipeline = Pipeline()
    assert pipeline.advance(replace(START, opened=chain)).heatmap.sum(1) == pytest.approx(1)
    assert pipeline.advance(replace(START, opened=chain, heatmap_mode="scores")).heatmap is None
    weighted = replace(START, opened=chain, heatmap_mode="value-weighted")
    assert (pipeline.advance(weighted).heatmap >= 0).all()


def test_failure_keeps_what_was_made_before_it(done):
    pipeline = Pipeline()
    pipeline.advance(START)
    with pytest.raises(CircuitviewError):
        pipeline.advance(START.with_prompt(""))
    assert pipeline.model_of(START) is not None
    assert pipeline.stale(START) == ()
    assert not pipeline.recorded(START.with_prompt(""))


def test_steps_can_be_left_and_taken_up_again():
    pipeline = Pipeline()
    steps = pipeline.steps(START)
    while pipeline.stale(START)[0] != "tokens":
        next(steps)
    steps.close()
    assert pipeline.stale(START) == NAMES[4:]
    assert pipeline.advance(START).expansion.balanced


@pytest.mark.parametrize(
    "opened",
    [
        (Head(2, 0),),
        (Head(0, 2),),
        (Head(1, 0), Head(0, 0)),
        (Head(1, 0), Head(1, 1)),
    ],
)
def test_chain_that_the_model_lacks_is_refused(done, opened):
    with pytest.raises(CircuitviewError, match=r"has no head|layers must rise"):
        done.advance(replace(START, opened=opened))


def test_what_views_ask_of_an_expansion_is_made_in_the_worker():
    """Walks over the paths of a deep model held up the window."""
    results = Pipeline().advance(State(model="induction-by-hand", prompt="I like green tea"))
    assert {"groups", "nets", "place"} <= set(vars(results.expansion))
