"""Models from elsewhere on the command line: answers, sizes, devices, and which of the two sums."""

import json
import math

import pytest
import torch

from circuitview.cli import opening
from circuitview.core import memory
from circuitview.core.answers import KEYS
from tests.gguf_file import save_gguf
from tests.hf_families import save_family
from tests.tiny_models import Tiny, state_dict

BARE = Tiny(normalization_type="LNPre")
PROMPT = "a b c d"


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    """With MLPs, soft caps and grouped heads."""
    return str(save_family("gemma2", tmp_path_factory.mktemp("hf") / "gemma2"))


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "mine.pth"
    torch.save(state_dict(BARE), path)
    return path


def facts(call, *arguments):
    code, out, err = call("paths", *arguments, "--format", "json")
    assert (code, err) == (0, ""), err
    return json.loads(out)


def refusal(call, *arguments, code=2):
    got, out, err = call(*arguments)
    assert (got, out, err.count("\n")) == (code, "", 1), err
    return err


def test_paths_say_which_of_the_two_sums_they_are(call, gemma):
    sources = facts(call, gemma, "--prompt", PROMPT)
    through = facts(call, gemma, "--prompt", PROMPT, "--through-mlps")
    assert sources["expansion"] == "mlp outputs as sources"
    assert through["expansion"] == "through mlps"
    assert facts(call, "attn-only-1l", "--prompt", "I like")["expansion"] == "attention only"
    assert {term["source"] for term in sources["terms"]} >= {"mlp 0", "mlp 1", "mlp 2"}
    assert any("mlp 0" in term["steps"] for term in through["terms"])
    for answer in (sources, through):
        total = math.fsum(term["contribution"] for term in answer["terms"])
        total += answer["constant"] + answer["remainder"]
        assert total + answer["error"] == pytest.approx(answer["logit"], abs=1e-9)
    # One float32 run, summed in two ways.
    assert through["logit"] == pytest.approx(sources["logit"], abs=1e-4)


def test_table_says_what_is_held_and_capped(call, gemma):
    _, out, _ = call("paths", gemma, "--prompt", PROMPT)
    assert "float32, patterns, norm scales and MLP outputs held; numbers in logits" in out
    assert "\nMLP outputs as sources\n" in out
    assert "model's logit before the soft cap of 2 " in out
    _, out, _ = call("paths", gemma, "--prompt", PROMPT, "--through-mlps")
    assert "norm scales and MLP activation ratios held" in out
    assert "\npaths through MLPs (activation ratios held)\n" in out


def test_json_has_the_soft_cap_and_the_models_own_probability(call, gemma):
    from circuitview.core.checkpoint import open_model

    answer = facts(call, gemma, "--prompt", PROMPT)
    assert answer["soft_cap"] == 2.0
    model = open_model(gemma)
    logits = model.run(model.prompt(PROMPT)).logits[-1].double()
    chances = (2 * torch.tanh(logits / 2)).softmax(-1)
    assert answer["probability"] == pytest.approx(float(chances[answer["target_id"]]), rel=1e-6)
    assert facts(call, "attn-only-1l", "--prompt", "I like")["soft_cap"] is None


@pytest.mark.parametrize("figure", ["diagram", "attention", "ov", "table"])
def test_every_figure_of_a_model_with_mlps_is_drawn(call, gemma, tmp_path, figure):
    out = tmp_path / "x.svg"
    options = ["--prompt", PROMPT, "--figure", figure, "--out", out, "--through-mlps"]
    assert call("export", gemma, *options) == (0, "", "")
    text = out.read_text(encoding="utf-8")
    assert "paths through MLPs" in text
    assert "before the soft cap of 2" in text


def test_scores_of_a_model_that_keeps_none_are_drawn(call, gemma, tmp_path):
    options = ["--figure", "attention", "--mode", "scores", "--head", "1.2"]
    out = tmp_path / "x.svg"
    assert call("export", gemma, "--prompt", PROMPT, *options, "--out", out) == (0, "", "")
    assert "scores before softmax" in out.read_text(encoding="utf-8")


def test_float64_of_a_model_that_has_none_is_a_line(call, gemma):
    said = refusal(call, "paths", gemma, "--prompt", PROMPT, "--dtype", "float64")
    assert "runs in float32, not in float64" in said
    assert "choose float32" in said


def test_device_that_a_model_does_not_run_on_is_said_in_a_line(call, monkeypatch):
    monkeypatch.setattr("circuitview.core.device.why_not", lambda _: None)
    for command in ("paths", "check"):
        asked = ["--prompt", "I like", "--device", "cuda"]
        code, out, err = call(command, "induction-by-hand", *asked)
        assert code == 0
        assert out
        assert err == (
            "circuitview: induction-by-hand is run by this program's own runner: computed on cpu, "
            "not on cuda\n"
        )


def test_bare_weights_open_with_answers(call, weights):
    said = refusal(call, "check", weights, "--tokenizer", "numbers")
    assert "does not say normalization_type" in said
    options = ["--tokenizer", "numbers", "--config", "normalization_type=LNPre"]
    code, out, _ = call("check", weights, *options, "--config", "eps=1e-6")
    assert code == 0
    assert "passed: " in out
    answer = facts(call, weights, *options, "--prompt", "3 1 4")
    assert answer["tokens"] == ["3", "1", "4"]


@pytest.mark.parametrize(
    ("pair", "needle"),
    [
        ("colour=red", "'colour' is no question"),
        ("normalization_type=maybe", "normalization_type=maybe"),
        ("n_layers=7", "n_layers is 2 by its arrays, 7 was given"),
        ("eps=small", "eps=small"),
    ],
)
def test_wrong_answer_is_named(call, weights, pair, needle):
    said = refusal(call, "check", weights, "--tokenizer", "numbers", "--config", pair)
    assert needle in said


def test_help_lists_the_keys_of_config(call):
    for command in ("paths", "export", "check", "open"):
        code, out, _ = call(command, "--help")
        said = " ".join(out.split())
        assert code == 0
        assert f"Keys: {', '.join(KEYS)}." in said
    assert {"act_fn", "normalization_type", "eps", "attn_scale", "n_ctx"} < set(KEYS)


def test_missing_tokenizer_names_the_option_that_gives_one(call, weights):
    said = refusal(call, "check", weights, "--config", "normalization_type=LNPre")
    assert "tokenizer.json: missing" in said
    assert "give --tokenizer FILE or --tokenizer numbers" in said


def test_word_where_tokens_are_numbers_is_answered_with_how_to_type_them(call, weights):
    options = ["--tokenizer", "numbers", "--config", "normalization_type=LNPre"]
    said = refusal(call, "paths", weights, *options, "--prompt", "hello")
    assert 'its tokens are the numbers 0 to 8, typed like "5 8 3"' in said


def test_long_unpacking_of_a_gguf_file_is_said_before_it_begins(call, tmp_path, monkeypatch):
    file = save_gguf(tmp_path / "model.gguf")
    options = [file, "--prompt", "a b", "--format", "json"]
    code, out, err = call("paths", *options)
    assert (code, err) == (0, ""), err
    monkeypatch.setattr(opening, "_SLOW", 1)
    code, again, err = call("paths", *options)
    assert (code, again) == (0, out)
    assert err == "circuitview: unpacking model.gguf to float32, 0.1 MB …\n"
    assert call("paths", "cat-on-the-mat", "--prompt", "the cat")[2] == ""


def test_what_does_not_fit_is_refused_unless_it_is_asked_for(call, gemma, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    for command in (["check", gemma], ["paths", gemma, "--prompt", PROMPT]):
        said = refusal(call, *command)
        assert "gemma2 takes 0.1 MB of memory in float32" in said
        assert "close other programs first, or add --even-if-large" in said
        assert call(*command, "--even-if-large")[0] == 0


def test_device_is_said(call, gemma):
    assert facts(call, gemma, "--prompt", PROMPT, "--device", "cpu")["device"] == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_device_that_is_not_there_is_a_line(call, gemma):
    said = refusal(call, "paths", gemma, "--prompt", PROMPT, "--device", "cuda")
    assert "can't compute on cuda: " in said
    assert "--device cpu" in said
