"""What the runner does with MLPs, beyond agreeing with the oracle and transformer_lens."""

from dataclasses import replace

import pytest
import torch

from circuitview.core import runner
from circuitview.core.activations import activation
from circuitview.core.checkpoint.bundle import open_bundle, write_bundle
from circuitview.core.config import ACTIVATIONS, ELEMENTWISE
from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.observation import LayerOutputs
from tests.tiny_models import MLP_KINDS, Tiny, random_arrays, record, tiny_model, word_tokenizer

TOKENS = [1, 5, 2, 2, 7, 0]
# float64, sums of some dozens of numbers of order one to ten.
CLOSE = 1e-12
_KINDS = [replace(kind, seed=60 + place) for place, kind in enumerate(MLP_KINDS)]
_WITH_MLPS = [kind for kind in _KINDS if kind.act_fn]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_nonlinearity_says_rightly_whether_neurons_mix(name):
    act = activation(name, 1e-5)
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    moved = torch.tensor([0.5, -1.0, 3.0], dtype=torch.float64)
    assert torch.equal(act(x)[:2], act(moved)[:2]) == (name in ELEMENTWISE)
    assert act(x).dtype == torch.float64


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
def test_float32_agrees_with_float64(tiny):
    model = tiny_model(tiny)
    wide, narrow = record(model, TOKENS), record(model, TOKENS, "float32")
    assert narrow.logits.dtype == torch.float32
    largest = wide.logits.abs().max()
    assert (wide.logits - narrow.logits).abs().max() <= 1e-5 * largest
    assert bool(model.weights("float32").mlps) == bool(model.exact.mlps) == model.carries_mlps


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
def test_what_is_observed_adds_up_layer_by_layer(tiny):
    model = tiny_model(tiny)
    prompt = record(model, TOKENS).prompt
    observed = model.observe(prompt)
    for layer in observed.layers:
        assert _off(layer) <= 1e-5 * layer.resid_post.abs().max()  # float32
        assert (layer.mlp_out is None) == (tiny.act_fn is None)
        between = tiny.act_fn is not None and not tiny.parallel_attn_mlp
        assert (layer.resid_mid is not None) == between
    assert torch.equal(observed.logits, record(model, TOKENS, "float32").logits)


def test_what_is_observed_is_what_the_run_did_and_not_made_anew(monkeypatch):
    """As if what attention writes were another number each time it is asked for."""
    real, calls = runner.written_by, []

    def written(*given):
        calls.append(None)
        return real(*given) + 0.5 * len(calls)

    monkeypatch.setattr(runner, "written_by", written)
    tiny = next(kind for kind in _WITH_MLPS if not kind.parallel_attn_mlp)
    model = tiny_model(tiny)
    observed = model.observe(record(tiny_model(tiny), TOKENS).prompt, "float64")
    for layer in observed.layers:
        between = layer.resid_pre + layer.attn_out
        assert (between - layer.resid_mid).abs().max() <= CLOSE
        assert (layer.resid_mid + layer.mlp_out - layer.resid_post).abs().max() <= CLOSE


def test_a_run_keeps_one_table_of_every_head_and_no_scores():
    recording = record(tiny_model(_WITH_MLPS[0]), TOKENS)
    shape = recording.pattern.shape
    held = [name for name, value in vars(recording).items() if getattr(value, "shape", 0) == shape]
    assert held == ["pattern"]


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
def test_scores_of_one_head_give_its_pattern_back(tiny):
    model = tiny_model(tiny)
    recording = record(model, TOKENS)
    future = torch.ones(len(TOKENS), len(TOKENS), dtype=torch.bool).triu(1)
    for head in (Head(0, 0), Head(1, tiny.n_heads - 1)):
        scores = model.scores(recording, head)
        assert not scores[future].any()
        pattern = scores.masked_fill(future, -torch.inf).softmax(-1)
        assert (pattern - recording.pattern[head.layer, head.head]).abs().max() <= CLOSE


def _off(layer: LayerOutputs) -> float:
    total = layer.resid_pre + layer.attn_out
    if layer.resid_mid is not None:
        assert (total - layer.resid_mid).abs().max() == 0
    if layer.mlp_out is not None:
        total = total + layer.mlp_out
    return float((total - layer.resid_post).abs().max())


@pytest.mark.parametrize("tiny", _WITH_MLPS, ids=str)
def test_mlps_are_sources_and_only_some_can_be_gone_through(tiny):
    weights = tiny_model(tiny).exact
    assert [str(source) for source in weights.sources if source.kind == "mlp"] == [
        f"mlp {layer}" for layer in range(tiny.n_layers)
    ]
    assert len(weights.blocks) == tiny.n_layers
    assert len(weights.mlps) == (0 if tiny.act_fn.startswith("solu") else tiny.n_layers)


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
def test_a_zeroed_head_is_a_head_without_W_O_and_all_after_it_reacts(tiny):
    model = tiny_model(tiny)
    head = Head(0, tiny.n_heads - 1)
    W_O = model.exact.W_O.clone()
    W_O[head.layer, head.head] = 0.0
    without = replace(model, folded=replace(model.exact, W_O=W_O).to)
    zeroed = record(model, TOKENS, edits=Edits(zeroed=frozenset({head})))
    expected = record(without, TOKENS)
    largest = expected.logits.abs().max()
    assert (zeroed.logits - expected.logits).abs().max() <= CLOSE * largest
    if tiny.act_fn and not tiny.parallel_attn_mlp:
        assert (zeroed.mlp_out[0] - record(model, TOKENS).mlp_out[0]).abs().max() > 1e-3


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
def test_a_frozen_run_without_changes_is_the_clean_run(tiny):
    model = tiny_model(tiny)
    clean = record(model, TOKENS)
    frozen = record(model, TOKENS, edits=Edits(frozen=clean))
    assert (frozen.logits - clean.logits).abs().max() <= CLOSE * clean.logits.abs().max()


def test_a_frozen_run_of_another_length_is_refused_with_both():
    model = tiny_model(Tiny())
    clean = record(model, TOKENS)
    with pytest.raises(CircuitviewError, match="2 tokens, the frozen run 6"):
        record(model, [1, 2], edits=Edits(frozen=clean))


@pytest.mark.parametrize("tiny", [_KINDS[0], _KINDS[8], _KINDS[9]], ids=str)
def test_a_written_bundle_runs_as_before(tiny, tmp_path):
    model = tiny_model(tiny)
    arrays = {name: torch.from_numpy(array) for name, array in random_arrays(tiny).items()}
    tokenizer = word_tokenizer(tiny.d_vocab).to_str()
    write_bundle(tmp_path, model.config, arrays, tokenizer, "# A model\n")
    again = open_bundle(tmp_path, "again")
    assert again.config == model.config
    assert again.stored == "float64"
    assert torch.equal(record(again, TOKENS).logits, record(model, TOKENS).logits)
