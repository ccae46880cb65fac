"""The pipeline: what is made again for which change, and what a failure leaves."""

import gc
import weakref
from dataclasses import replace

import pytest

from circuitview.core.model import NativeModel
from circuitview.core.names import CircuitviewError, Head, IncomparableError
from circuitview.session.pipeline import STAGES, Pipeline
from circuitview.session.state import State

START = State(model="induction-by-hand", prompt="I like green tea , so I drink green")
SHOWN = ("a", "b", "difference")
NAMES = tuple(stage.name for stage in STAGES if stage.needed(START))


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


# --- two prompts ---------------------------------------------------------------------------------

PAIR = replace(START, other="I like green cat , so I drink green")


@pytest.fixture
def counted(monkeypatch):
    """How often the model has run."""
    runs = []
    real = NativeModel.run

    def run(self, prompt, dtype):
        runs.append(prompt)
        return real(self, prompt, dtype)

    monkeypatch.setattr(NativeModel, "run", run)
    return runs


def test_looking_from_one_prompt_to_the_other_runs_the_model_no_more(counted):
    pipeline = Pipeline()
    seen = {shown: pipeline.advance(replace(PAIR, shown=shown)) for shown in SHOWN}
    n_runs = len(counted)
    assert {prompt.labels[4] for prompt in counted[-2:]} == {"tea", "cat"}
    for shown in (*SHOWN, *reversed(SHOWN)):
        state = replace(PAIR, shown=shown)
        assert pipeline.stale(state) == ()
        again = pipeline.advance(state)
        assert again.expansion is seen[shown].expansion
        assert again.heatmap is seen[shown].heatmap
    assert len(counted) == n_runs


def test_second_prompt_is_not_computed_before_it_is_shown_and_leaves_the_first_fresh():
    pipeline = Pipeline()
    first = pipeline.advance(START)
    assert {name for name in pipeline.stale(PAIR) if name.endswith("of B")} == {
        "tokens of B",
        "recording of B",
    }
    assert pipeline.advance(PAIR).expansion is first.expansion  # its goal came out equal


def test_b_is_as_if_it_were_alone_but_for_the_target():
    alone = Pipeline().advance(replace(START, prompt=PAIR.other, target="tea"))
    shown = Pipeline().advance(replace(PAIR, shown="b"))
    assert shown.expansion.target == alone.expansion.target  # A's top prediction
    assert shown.expansion.contributions.tolist() == alone.expansion.contributions.tolist()
    assert shown.predictions == alone.predictions
    assert shown.chain == alone.chain
    assert shown.ov.contribution.tolist() == alone.ov.contribution.tolist()
    assert shown.heatmap.tolist() == alone.heatmap.tolist()


@pytest.mark.parametrize("mode", ["pattern", "scores", "value-weighted"])
def test_difference_is_b_minus_a(mode):
    pipeline, opened = Pipeline(), (Head(1, 0),)
    state = replace(PAIR, heatmap_mode=mode, opened=opened)
    a, b, both = (pipeline.advance(replace(state, shown=shown)) for shown in SHOWN)
    assert both.expansion.between == (a.expansion, b.expansion)
    assert both.expansion.balanced
    assert both.expansion.logit == b.expansion.logit - a.expansion.logit
    assert both.heatmap.tolist() == (b.heatmap - a.heatmap).tolist()
    assert both.ov is None
    assert both.lengths == (10, 10)


def test_prompts_of_different_lengths_are_each_shown_and_not_subtracted():
    pipeline = Pipeline()
    state = replace(PAIR, other=f"{PAIR.other} tea")
    lengths = {pipeline.advance(replace(state, shown=shown)).lengths for shown in ("a", "b")}
    ((a, b),) = lengths
    assert b == a + 1
    with pytest.raises(IncomparableError, match=f"A has {a} tokens, B has {b}"):
        pipeline.advance(replace(state, shown="difference"))
    assert pipeline.stale(replace(state, shown="a")) == ()
    assert pipeline.stale(replace(state, shown="b")) == ()


def test_dest_that_the_shorter_prompt_lacks_is_its_last():
    pipeline = Pipeline()
    state = replace(PAIR, other=f"{PAIR.other} tea")
    last = pipeline.advance(state).lengths[1] - 1
    state = replace(state, dest=last)
    assert pipeline.advance(replace(state, shown="b")).expansion.target.dest == last
    assert pipeline.advance(replace(state, shown="a")).expansion.target.dest == last - 1
    with pytest.raises(CircuitviewError, match="out of range"):
        pipeline.advance(replace(state, other=None))


def test_second_prompt_that_cannot_be_read_is_named():
    with pytest.raises(CircuitviewError, match=r"^second prompt: "):
        Pipeline().advance(replace(PAIR, other="xylophone"))


def test_nothing_is_kept_of_a_second_prompt_that_was_taken_away():
    pipeline = Pipeline()
    kept = weakref.ref(pipeline.advance(replace(PAIR, shown="difference")).expansion)
    pipeline.advance(START)
    gc.collect()
    assert kept() is None
