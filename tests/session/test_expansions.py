"""Which of the two sums is shown, and what is held, in the same words everywhere."""

import pytest

from circuitview.core.expansion import expand
from circuitview.core.target import Target
from circuitview.session.balance import balance_text
from circuitview.session.expansions import (
    before_soft_cap,
    expansion_kind,
    expansion_shown,
    held_fixed,
    precision,
    soft_cap,
)
from circuitview.session.pipeline import STAGES, Pipeline
from circuitview.session.state import State
from tests.tiny_models import MLP_KINDS, Tiny, build_bundle, record, tiny_model


def expansion(tiny, through_mlps=False):
    return expand(record(tiny_model(tiny), [1, 4, 2]), Target(2, 3, "w3"), through_mlps)


@pytest.mark.parametrize(
    ("tiny", "through", "kind", "shown", "held"),
    [
        (Tiny(), False, "attention only", "", "patterns and norm scales held"),
        (Tiny(), True, "attention only", "", "patterns and norm scales held"),
        (
            MLP_KINDS[0],
            False,
            "mlp outputs as sources",
            "MLP outputs as sources",
            "patterns, norm scales and MLP outputs held",
        ),
        (
            MLP_KINDS[0],
            True,
            "through mlps",
            "paths through MLPs (activation ratios held)",
            "patterns, norm scales and MLP activation ratios held",
        ),
    ],
)
def test_words_are_true_of_the_expansion(tiny, through, kind, shown, held):
    made = expansion(tiny, through)
    assert expansion_kind(made) == kind
    assert expansion_shown(made) == shown
    assert held_fixed(made) == held


def test_soft_cap_is_said_behind_the_models_logit():
    from dataclasses import replace

    import msgspec

    made = expansion(MLP_KINDS[0])
    assert soft_cap(made.recording.weights.config) is None
    assert "soft cap" not in balance_text(made)
    capped = msgspec.structs.replace(made.recording.weights.config, output_logits_soft_cap=30.0)
    assert before_soft_cap(capped) == " before the soft cap of 30"
    weights = replace(made.recording.weights, config=capped)
    made = replace(made, recording=replace(made.recording, weights=weights))
    assert " before the soft cap of 30; error " in balance_text(made)


def told(pipeline, state):
    """What is said on the way to the results."""
    steps, said = pipeline.steps(state), []
    while True:
        try:
            said.append(next(steps).partial)
        except StopIteration:
            return said


def test_opening_says_what_and_how_large(tmp_path):
    folder = build_bundle(tmp_path / "mine", MLP_KINDS[0])
    state = State(model=str(folder), prompt="w1 w2")
    said = told(Pipeline(), state)
    assert said[0].startswith("opening mine, 0.0 MB in memory")
    assert said[1] == "checking mine"
    assert len(said) > len([stage for stage in STAGES if stage.needed(state)]) - 2


def test_through_mlps_sums_anew_and_runs_nothing_again(tmp_path):
    folder = build_bundle(tmp_path / "mine", MLP_KINDS[0])
    pipeline, state = Pipeline(), State(model=str(folder), prompt="w1 w2")
    first = pipeline.advance(state)
    second = pipeline.advance(State(model=str(folder), prompt="w1 w2", through_mlps=True))
    assert second.expansion.recording is first.expansion.recording
    assert second.expansion.through_mlps
    assert second.ov is first.ov


def test_expansion_can_be_left_half_way(monkeypatch):
    """A deep model's sum is cancelled between two of its steps."""
    import circuitview.core.expansion as module
    from circuitview.core.progress import Progress

    real, closed = module.expansion_steps, []

    def slow(*asked):
        try:
            yield Progress(1, 4)
            yield Progress(2, 4, "searching longer paths")
            return (yield from real(*asked))
        finally:
            closed.append(True)

    monkeypatch.setattr(module, "expansion_steps", slow)
    pipeline, state = Pipeline(), State(model="cat-on-the-mat", prompt="the cat")
    steps = pipeline.steps(state)
    said = []
    while "searching longer paths" not in said:
        said.append(next(steps).partial)
    assert "summing paths, 25%" in said
    steps.close()
    assert closed == [True]
    assert pipeline.stale(state)[0] == "expansion"
    assert pipeline.advance(state).expansion.balanced


@pytest.mark.parametrize(
    ("stored", "words"),
    [("Q4_1", "float32 from Q4_1"), ("IQ2_XS", "float32 from IQ2_XS"), ("F16", "float32")]
    + [(plain, "float32") for plain in ("F32", "BF16", "float16", "bfloat16", "float64")],
)
def test_precision_names_how_weights_are_packed(stored, words):
    assert precision("float32", stored) == words
