"""Models of every Hugging Face family, opened from disk: exact paths, and their own logits."""

import socket
from dataclasses import replace
from functools import partial

import pytest
import torch

from circuitview.core.check import check_model
from circuitview.core.checkpoint import open_model
from circuitview.core.checkpoint.bridge import open_folder
from circuitview.core.edits import Edits
from circuitview.core.expansion import expand
from circuitview.core.formats import format_of_folder
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.hf_families import (
    FAMILIES,
    N_KV_HEADS,
    PARALLEL,
    POSITIONS,
    REFUSED,
    SOURCES_ONLY,
    TOKENS,
    build_model,
    save_family,
    save_tokenizer,
)

# Relative to the largest entry of what is compared: float32 sums of a few hundred numbers in
# another order come to 1e-6.
CLOSE = 1e-5
# Absolute [logits]: the same float32 model, run twice by different code.
SAME_LOGITS = 1e-4
# Of the largest term, as the paths of every model must balance.
BALANCED = 1e-4


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """A model is opened and run without it."""

    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="module", params=FAMILIES)
def opened(request, tmp_path_factory):
    """(family, its folder, the open model, the hooks that the bridge itself has in it)"""
    folder = save_family(request.param, tmp_path_factory.mktemp("family"))
    model = open_model(folder)  # which tells the format, as everybody does
    return request.param, folder, model, hooks_of(model)


def prompt_of(model, tokens=TOKENS):
    return Prompt(model.name, tokens, tuple(model.tokenizer.label(token) for token in tokens))


def relative(ours, theirs):
    return float((ours.double() - theirs.double()).abs().max() / theirs.double().abs().max())


def hooks_of(model):
    """How many hooks each point has."""
    return {name: len(point.fwd_hooks) for name, point in model.bridge.hook_dict.items()}


def test_sizes_and_kinds_are_those_of_the_family(opened):
    family, folder, model, _ = opened
    config = model.config
    assert format_of_folder(folder) == "hugging face"
    assert config.n_kv_heads == N_KV_HEADS[family]
    assert (config.n_heads, config.d_model, config.d_head, config.d_vocab) == (4, 32, 8, 60)
    assert config.n_layers == (4 if family == "gpt-neo" else 3)
    assert config.parallel_attn_mlp is (family in PARALLEL)
    assert config.has_positions is (family in POSITIONS)
    assert config.original_architecture == FAMILIES[family][0]
    assert len(model.weights().mlps) == (0 if family in SOURCES_ONLY else config.n_layers)
    assert model.carries_mlps is (family not in SOURCES_ONLY)


def test_logits_are_those_of_transformers(opened):
    from transformers import AutoModelForCausalLM

    _, folder, model, _ = opened
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        theirs = plain(torch.tensor([TOKENS])).logits[0]
    ours = model.run(prompt_of(model)).logits
    cap = model.config.output_logits_soft_cap
    shown = ours if cap is None else cap * torch.tanh(ours / cap)
    assert float(theirs.abs().max()) > 0.1
    assert float((shown - theirs).abs().max()) <= SAME_LOGITS
    probabilities = model.run(prompt_of(model)).probabilities(5)
    assert torch.allclose(probabilities, theirs[5].double().softmax(-1), rtol=0, atol=1e-5)


def test_every_layer_is_what_its_value_side_says(opened):
    _, _, model, _ = opened
    recording, weights = model.run(prompt_of(model)), model.weights()
    for layer, seen in enumerate(model.observe(prompt_of(model)).layers):
        read = recording.stream[layer] / recording.ln_scale[layer].unsqueeze(-1)
        values = read @ weights.W_V[layer] + weights.b_V[layer].unsqueeze(1)
        mixed = seen.pattern @ values.repeat_interleave(weights.group, 0)
        assert relative(mixed, seen.z) <= CLOSE
        written = (seen.z @ weights.W_O[layer]).sum(0) + weights.b_O[layer]
        if recording.post_scale is not None:
            written = written / recording.post_scale[layer].unsqueeze(-1)
        assert relative(written, seen.attn_out) <= CLOSE
        assert relative(seen.resid_pre + seen.attn_out + seen.mlp_out, seen.resid_post) <= CLOSE
        assert torch.equal(recording.stream[layer], seen.resid_pre)
        if seen.resid_mid is not None:
            assert relative(seen.resid_pre + seen.attn_out, seen.resid_mid) <= CLOSE


def test_mlps_do_what_the_model_s_own_do(opened):
    family, _, model, _ = opened
    recording, weights = model.run(prompt_of(model)), model.weights()
    for layer, mlp in enumerate(weights.mlps):
        stream, scale = recording.into_mlp(layer), recording.into_mlp_scale(layer)
        neurons = mlp.normed(stream, scale) @ mlp.W_in + mlp.b_in
        out = (recording.mlp_ratio(layer) * neurons) @ mlp.W_out + mlp.b_out
        if recording.mlp_post_scale is not None:
            out = out / recording.mlp_post_scale[layer].unsqueeze(-1)
        out = out if mlp.out_gain is None else out * mlp.out_gain
        out = out if mlp.b_post is None else out + mlp.b_post
        assert relative(out, recording.mlp_out[layer]) <= CLOSE
    assert weights.mlps or family in SOURCES_ONLY


def test_config_holds_no_facts_of_another_model(opened):
    family, _, model, _ = opened
    config = model.config
    if family in SOURCES_ONLY - {"mpt"}:
        with pytest.raises(ValueError, match="can't be read"):
            _ = config.n_neurons
    else:
        wide = family in ("gpt2", "gpt-neo", "gpt-j", "falcon", "mpt")  # 4 d_model
        assert config.n_neurons == (128 if wide else 48)
        assert config.gated_mlp is ("gate" in model.bridge.blocks[0].mlp.submodules)
    if model.weights().mlps:
        assert config.gated_mlp is (model.weights().mlps[0].W_gate is not None)
        assert config.act_fn in ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu")
    with pytest.raises(ValueError, match="its own code"):
        _ = config.n_rotated


# Their queries and keys are normed, or bent by a cap, behind the points where they can be seen.
_HIDDEN = {"qwen3", "gemma2", "gemma3", "olmo2", "mpt"}


def test_scores_are_divided_by_what_the_config_says(opened):
    family, _, model, _ = opened
    if family in _HIDDEN:
        expected = 8**0.5
        assert model.config.score_scale == pytest.approx(expected)  # as their configs ask
        return
    seen = {}
    n, config, head = len(TOKENS), model.config, Head(1, 3)
    hooks = [(f"blocks.1.attn.{kind}.hook_out", partial(_keep, seen, kind)) for kind in ("q", "k")]
    with torch.inference_mode():
        model.logits(torch.tensor(TOKENS), hooks)
    q = seen["q"].reshape(n, config.n_heads, config.d_head)[:, 3]
    group = config.n_heads // config.n_kv_heads
    k = seen["k"].reshape(n, config.n_kv_heads, config.d_head)[:, 3 // group]
    scores = model.scores(model.run(prompt_of(model)), head)
    # Rotated by the same angle, a query and a key of one position keep their product.
    assert relative((q * k).sum(-1) / config.score_scale, scores.diagonal()) <= CLOSE


def _keep(seen, kind, tensor, **_):
    seen[kind] = tensor.detach().clone()


def test_check_passes(opened):
    report = check_model(opened[2], prompt_of(opened[2]))
    report.require_passed()
    assert report.worst.relative <= CLOSE


@pytest.mark.parametrize("through_mlps", [False, True], ids=["to MLPs", "through MLPs"])
def test_paths_balance(opened, through_mlps):
    family, _, model, _ = opened
    if through_mlps and family in SOURCES_ONLY:
        with pytest.raises(CircuitviewError):
            expand(model.run(prompt_of(model)), Target(3, 7, "7"), through_mlps=True)
        return
    recording = model.run(prompt_of(model))
    for dest, token in [(0, 3), (len(TOKENS) - 1, 17)]:
        found = expand(recording, Target(dest, token, str(token)), through_mlps=through_mlps)
        assert found.balanced
        assert abs(found.error) <= BALANCED * found.scale


def test_scores_give_the_pattern_back(opened):
    _, _, model, own = opened
    recording = model.run(prompt_of(model))
    for head in (Head(0, 0), Head(1, 3), Head(2, 2)):
        scores = model.scores(recording, head)
        pattern = recording.pattern[head.layer, head.head]
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        assert bool((scores[future] == 0).all())
        # Local attention hides the far past, where the score is 0 too.
        hidden = future | (pattern == 0)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        assert torch.allclose(weights, pattern, rtol=0, atol=1e-6)
    assert hooks_of(model) == own


def test_zeroed_heads_change_all_that_follows(opened):
    from transformers import AutoModelForCausalLM

    family, folder, model, own = opened
    zeroed = frozenset({Head(0, 1), Head(1, 2)})
    recording = model.run(prompt_of(model))
    rerun = recording.rerun(Edits(zeroed=zeroed))
    assert not bool(rerun.z[0, 1].any())
    assert not bool(rerun.z[1, 2].any())
    assert torch.equal(rerun.pattern[0], recording.pattern[0])
    assert not torch.allclose(rerun.pattern[2], recording.pattern[2])
    # The same heads taken out of transformers' own model, by its own hooks.
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for layer, heads in ((0, [1]), (1, [2])):
        _output_projection(plain, layer).register_forward_pre_hook(_zero(heads))
    with torch.inference_mode():
        theirs = plain(torch.tensor([TOKENS])).logits[0]
    cap = model.config.output_logits_soft_cap
    ours = rerun.logits if cap is None else cap * torch.tanh(rerun.logits / cap)
    assert float((ours - theirs).abs().max()) <= SAME_LOGITS
    assert float((rerun.logits - recording.logits).abs().max()) > SAME_LOGITS, family
    assert hooks_of(model) == own


def _output_projection(plain, layer):
    names = ("o_proj", "out_proj", "c_proj", "dense")
    for name, module in plain.named_modules():
        *before, last = name.split(".")
        inside = any("attn" in part or "attention" in part for part in before)
        if last in names and inside and f".{layer}." in name:
            return module
    raise AssertionError(f"no output projection in layer {layer}")


def _zero(heads):
    def hook(_, args):
        z = args[0].clone()
        z.view(*z.shape[:-1], 4, 8)[..., heads, :] = 0.0
        return (z, *args[1:])

    return hook


def test_frozen_runs_read_the_prompt_and_hold_the_rest(opened):
    _, _, model, _ = opened
    recording = model.run(prompt_of(model))
    frozen = model.run(prompt_of(model), edits=Edits(frozen=recording))
    assert relative(frozen.logits, recording.logits) <= CLOSE
    other = prompt_of(model, tuple(reversed(TOKENS)))
    swapped = model.run(other, edits=Edits(frozen=recording))
    assert swapped.prompt == other
    assert torch.equal(swapped.pattern, recording.pattern)
    assert torch.equal(swapped.embedding, model.run(other).embedding)
    assert relative(swapped.logits, recording.logits) > CLOSE
    with pytest.raises(CircuitviewError, match="give it as many"):
        model.run(prompt_of(model, TOKENS[:3]), edits=Edits(frozen=recording))


def test_a_run_keeps_no_hooks(opened):
    _, _, model, own = opened
    model.run(prompt_of(model))
    assert hooks_of(model) == own


def test_no_hook_outlives_an_error(opened, monkeypatch):
    _, _, model, own = opened

    def fail(*_, **__):
        raise RuntimeError("in the middle of a run")

    block = model.bridge.blocks[1].original_component
    monkeypatch.setattr(block, "forward", fail)
    with pytest.raises(CircuitviewError, match=r"can't be run \(RuntimeError: in the middle"):
        model.run(prompt_of(model))
    assert hooks_of(model) == own
    monkeypatch.undo()
    model.run(prompt_of(model))


def test_float64_and_bad_tokens_are_refused(opened):
    model = opened[2]
    with pytest.raises(CircuitviewError, match="runs in float32, not in float64"):
        model.run(prompt_of(model), dtype="float64")
    with pytest.raises(CircuitviewError, match="outside the vocabulary of 60"):
        model.run(Prompt("x", (60,), ("x",)))
    n_ctx = model.config.n_ctx
    with pytest.raises(CircuitviewError, match=f"reads 1 to {n_ctx}"):
        model.run(Prompt("x", (1,) * (n_ctx + 1), ("x",) * (n_ctx + 1)))


@pytest.mark.parametrize("family", REFUSED)
def test_what_cannot_be_exact_is_refused_by_name(family, tmp_path):
    architecture, config, fields, why = REFUSED[family]
    build_model(architecture, config, fields).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    # Said before weights are looked at.
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CircuitviewError) as caught:
        open_folder(tmp_path, family)
    assert architecture in str(caught.value)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_scores_of_another_run_are_refused(tmp_path):
    model = open_folder(save_family("llama", tmp_path), "llama")
    recording = model.run(prompt_of(model))
    wrong = replace(recording, pattern=recording.pattern.flip(-1))
    with pytest.raises(CircuitviewError, match="does not show its scores"):
        model.scores(wrong, Head(1, 1))
