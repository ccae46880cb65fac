"""Opening a model that can't read the prompt at hand."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from circuitview.core.bundled import DEFAULT_PROMPT
from circuitview.core.names import CircuitviewError, ImbalanceError
from circuitview.session.opening import opening_steps
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import State
from tests.hf_families import save_family
from tests.tiny_models import Tiny, build_bundle


def finished(steps):
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def run(steps):
    answer = finished(steps)
    return answer.state, answer.results, answer.why_prompt


def test_prompt_that_can_be_read_stays():
    state = State(model="induction-by-hand", prompt="I like")
    asked, results, why = run(opening_steps(Pipeline(), state))
    assert asked == state
    assert why is None
    assert len(results.expansion.recording.prompt) == 3


def test_card_says_what_to_try():
    asked, _, why = run(opening_steps(Pipeline(), State(model="cat-on-the-mat", prompt="I like")))
    assert asked.prompt == "the cat sat on the mat . the cat"
    assert "vocabulary" in why


def test_without_a_card_the_vocabulary_gives_a_prompt(tmp_path):
    folder = build_bundle(tmp_path / "mine", Tiny())
    asked, results, why = run(opening_steps(Pipeline(), State(model=str(folder), prompt="I like")))
    assert asked.prompt == "w1 w2 w3 w4 w5 w6 w7 w8"
    assert results.expansion.balanced
    assert why


def test_too_long_a_prompt_makes_way_for_one_that_reads_well():
    state = State(model="attn-only-2l", prompt="tea " * 300)
    asked, _, why = run(opening_steps(Pipeline(), state))
    assert asked.prompt == DEFAULT_PROMPT
    assert "shorten it" in why


def test_model_that_cannot_be_opened_fails_with_its_own_reason(tmp_path):
    with pytest.raises(CircuitviewError, match="gone"):
        run(opening_steps(Pipeline(), State(model=str(tmp_path / "gone"))))


def test_target_that_fails_is_no_matter_of_the_prompt():
    state = State(model="induction-by-hand", prompt="I like", target="unknown")
    with pytest.raises(CircuitviewError, match="unknown"):
        run(opening_steps(Pipeline(), state))


def test_weights_that_do_not_add_up_are_not_taken_for_an_unknown_word(tmp_path):
    folder = build_bundle(tmp_path / "mine", Tiny(normalization_type=None, n_layers=3))
    arrays = load_file(folder / "model.safetensors")
    huge = {name: (1e4 * array).astype(np.float32) for name, array in arrays.items()}
    save_file(huge, folder / "model.safetensors")
    state = State(model=str(folder), prompt="I like")
    with pytest.raises(CircuitviewError, match=r"layer 2: .*numbers pass what floats can hold"):
        run(opening_steps(Pipeline(), state))


def test_device_that_a_model_does_not_run_on_is_said(monkeypatch):
    monkeypatch.setattr("circuitview.core.device.why_not", lambda _: None)
    state = State(model="induction-by-hand", prompt="I like", device="cuda")
    answer = finished(opening_steps(Pipeline(), state))
    assert answer.notice == (
        "induction-by-hand is run by this program's own runner: computed on cpu, not on cuda"
    )
    assert finished(opening_steps(Pipeline(), replace(state, device="cpu"))).notice is None


def test_colon_in_a_name_leaves_the_notice_whole(tmp_path):
    folder = save_family("llama", tmp_path / "lab: llama")
    state = State(model=str(folder), prompt=" a b", dtype="float64")
    answer = finished(opening_steps(Pipeline(), state))
    assert answer.state.dtype == "float32"
    assert answer.notice == "lab: llama runs in float32, not in float64: computed in float32"


def test_imbalance_is_no_matter_of_the_prompt(monkeypatch):
    def unbalanced(*_):
        raise ImbalanceError("the paths don't add up")
        yield

    monkeypatch.setattr("circuitview.core.expansion.expansion_steps", unbalanced)
    pipeline, state = Pipeline(), State(model="induction-by-hand", prompt="I like")
    with pytest.raises(ImbalanceError, match="don't add up"):
        run(opening_steps(pipeline, state))
    assert pipeline.facts_of(state).name == "induction-by-hand"
