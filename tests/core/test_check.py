"""The check: every identity for every kind of model, and each fault found in its layer."""

from dataclasses import replace

import pytest
import torch

from circuitview.core.check import (
    ATTENTION,
    ATTENTION_ONLY,
    FROZEN,
    HEADS,
    LOGITS,
    MLP,
    MLP_OUT,
    PARALLEL,
    PATHS,
    ROWS,
    STREAM,
    TOLERANCE,
    VALUES,
    check_model,
    short_prompt,
)
from circuitview.core.names import CircuitviewError
from tests.tiny_models import KINDS, MLP_KINDS, Tiny, tiny_model

MODEL = tiny_model(MLP_KINDS[0])


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kind_of_model_passes(tiny, dtype):
    model = tiny_model(tiny)
    report = check_model(model, dtype=dtype)
    report.require_passed()
    assert report.worst.relative <= TOLERANCE[getattr(torch, dtype)]
    always = {HEADS, VALUES, ROWS, STREAM}
    if model.config.attn_only:
        assert set(report.identities) == always | {ATTENTION_ONLY}
    elif model.config.parallel_attn_mlp:
        assert set(report.identities) == always | {PARALLEL, MLP_OUT}
    else:
        assert set(report.identities) == always | {ATTENTION, MLP, MLP_OUT}
    assert len(report.comparisons) == len(report.identities) * model.config.n_layers + 2


def faulty(monkeypatch, layer=None, **changed):
    """MODEL, of which a run tells something else in `layer`, or of the whole."""
    real = type(MODEL).observe

    def observe(self, prompt, dtype="float32"):
        seen = real(self, prompt, dtype)
        if layer is None:
            return replace(seen, **{name: f(getattr(seen, name)) for name, f in changed.items()})
        layers = list(seen.layers)
        told = layers[layer]
        other = {name: f(getattr(told, name)) for name, f in changed.items()}
        layers[layer] = replace(told, **other)
        return replace(seen, layers=tuple(layers))

    monkeypatch.setattr(type(MODEL), "observe", observe)
    return MODEL


def shifted(array):
    return array + 0.5


@pytest.mark.parametrize(
    ("field", "identity"),
    [("resid_mid", ATTENTION), ("resid_post", MLP), ("z", HEADS), ("pattern", VALUES)],
)
def test_fault_is_found_in_its_layer(monkeypatch, field, identity):
    report = check_model(faulty(monkeypatch, 1, **{field: shifted}))
    assert not report.passed
    assert (report.first_failure.layer, report.first_failure.identity) == (1, identity)
    assert all(found.passed for found in report.of_layer(0).values())
    with pytest.raises(CircuitviewError) as caught:
        report.require_passed()
    said = str(caught.value)
    assert said.startswith(f"tiny: layer 1: {identity} fails by ")
    assert "choose another model" in said
    assert "\n" not in said


def test_weight_that_is_kept_back_is_found(monkeypatch):
    report = check_model(faulty(monkeypatch, 0, pattern=lambda pattern: 0.9 * pattern))
    failed = {found.identity for found in report.everything if not found.passed}
    assert failed == {VALUES, ROWS}
    assert report.of_layer(0)[ROWS].error == pytest.approx(0.1, rel=1e-5)


def test_logits_that_are_others_are_found(monkeypatch):
    report = check_model(faulty(monkeypatch, None, logits=shifted))
    failed = {found.identity for found in report.everything if not found.passed}
    assert failed == {LOGITS, FROZEN}
    assert report.first_failure.layer is None


def test_numbers_that_are_none_never_pass(monkeypatch):
    report = check_model(faulty(monkeypatch, 1, attn_out=lambda array: array * torch.nan))
    assert not report.passed
    assert "numbers pass what floats can hold" in report.first_failure.failure


def test_left_out_source_is_found_at_every_dest(monkeypatch):
    monkeypatch.setattr(type(MODEL.weights()), "constant", lambda *_: 40.0)
    report = check_model(MODEL)
    assert [dest.compared.passed for dest in report.dests] == [False, False, False]
    assert report.first_failure.identity == PATHS


def test_error_is_measured_against_the_largest_entry(monkeypatch):
    report = check_model(faulty(monkeypatch, 1, resid_post=shifted))
    found = report.of_layer(1)[MLP]
    assert found.error == pytest.approx(0.5, rel=1e-4)
    assert found.relative == found.error / found.largest


def test_prompt_is_short_and_from_all_over_the_vocabulary():
    prompt = short_prompt(tiny_model(Tiny(d_vocab=800, n_ctx=64)))
    assert prompt.token_ids == (0, 50, 150, 250, 350, 450, 550, 650, 750)
    assert len(short_prompt(tiny_model(Tiny(n_ctx=3)))) == 3


def test_one_token_has_one_dest():
    report = check_model(tiny_model(Tiny(n_ctx=1)))
    assert [dest.dest for dest in report.dests] == [0]
    report.require_passed()
