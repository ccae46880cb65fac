"""Opening runs the check, in the precision asked, whoever opens; a model that fails is refused."""

import weakref

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import circuitview
from circuitview.core import check as checking
from circuitview.core.names import CircuitviewError
from circuitview.session.opening import opening_steps
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import State
from tests.tiny_models import Tiny, build_bundle, tiny_model

PROMPT = "w1 w2 w3"


@pytest.fixture
def shifted(monkeypatch):
    """As if something stood behind attention in layer 1."""
    real = checking._heads

    def heads(weights, recording, layer, outputs):
        return real(weights, recording, layer, outputs) + (0.25 if layer == 1 else 0.0)

    monkeypatch.setattr(checking, "_heads", heads)


@pytest.fixture
def overflowing(tmp_path):
    """A folder of weights whose stream passes what float32 holds, and not what float64 does."""
    folder = build_bundle(tmp_path / "mine", Tiny(normalization_type=None, n_layers=3))
    arrays = load_file(folder / "model.safetensors")
    huge = {name: (1e4 * array).astype(np.float32) for name, array in arrays.items()}
    save_file(huge, folder / "model.safetensors")
    return folder


def answer_of(steps):
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def test_model_that_fails_is_refused_by_every_way_in(shifted, tmp_path):
    folder = build_bundle(tmp_path / "mine", Tiny())
    for way in (circuitview.open_model, lambda named: circuitview.analyse(named, PROMPT)):
        with pytest.raises(
            CircuitviewError, match=r"mine: layer 1: sum of heads \+ b_O = attention"
        ):
            way(folder)
    assert circuitview.open_model(folder, checked=False).name == "mine"


def test_precision_that_is_asked_is_the_one_that_is_checked(overflowing):
    with pytest.raises(CircuitviewError, match="numbers pass what floats can hold"):
        circuitview.open_model(overflowing)
    model = circuitview.open_model(overflowing, dtype="float64")
    assert np.isfinite(float(model.run(model.prompt(PROMPT), "float64").logits.abs().max()))
    assert circuitview.analyse(overflowing, PROMPT, dtype="float64").balanced


def test_window_opens_in_float64_what_float32_can_not_hold(overflowing):
    pipeline = Pipeline()
    state = State(model=str(overflowing), prompt=PROMPT, dtype="float64")
    assert answer_of(opening_steps(pipeline, state)).state == state
    with pytest.raises(CircuitviewError, match="numbers pass what floats can hold"):
        pipeline.advance(State(model=str(overflowing), prompt=PROMPT))
    assert pipeline.advance(state).expansion.balanced  # what was open is still there


def test_another_precision_does_not_open_the_model_again(tmp_path, monkeypatch):
    pipeline = Pipeline()
    state = State(model=str(build_bundle(tmp_path / "mine", Tiny())), prompt=PROMPT)
    pipeline.advance(state)
    model = pipeline.model_of(state)
    wide = State(model=state.model, prompt=PROMPT, dtype="float64")
    pipeline.advance(wide)
    assert pipeline.model_of(wide) is model


def test_only_the_precision_that_was_asked_last_is_kept():
    model = tiny_model(Tiny())
    narrow = weakref.ref(model.weights("float32"))
    assert model.weights("float32") is narrow()
    wide = model.exact
    assert narrow() is None
    assert model.exact is wide
