"""`circuitview ablate` on models from elsewhere: what holds there, and repeating it."""

import json

import pytest
import torch

from tests.gguf_file import save_gguf
from tests.hf_families import save_family
from tests.tiny_models import Tiny, state_dict

PROMPT = "a b c d"


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    """With MLPs, soft caps and grouped heads."""
    return str(save_family("gemma2", tmp_path_factory.mktemp("hf") / "gemma2"))


def kept(call, tmp_path, *arguments):
    """The JSON of a run, which was saved and then repeated equal."""
    place = tmp_path / f"run {len(list(tmp_path.iterdir()))}"
    code, out, err = call("ablate", *arguments, "--format", "json", "--save", place)
    assert code == 0, err
    code, again, err = call("repeat", place, "--format", "json")
    assert code == 0, err
    assert "every number is equal, bit by bit" in err
    found = json.loads(out)
    assert json.loads(again)["rows"] == found["rows"]
    return found


def require_minus_contribution(found):
    largest = max(abs(row["contribution"]) for row in found["rows"])
    for row in found["rows"]:
        # float32, relative to the largest as theory says.
        assert abs(row["effect"] + row["contribution"]) <= 1e-4 * largest, row


@pytest.mark.parametrize("what", ["heads", "mlps", "paths", "each-order"])
def test_model_of_the_hub_loses_what_is_contributed(call, gemma, tmp_path, what):
    found = kept(call, tmp_path, gemma, "--prompt", PROMPT, "--what", what, "--frozen")
    require_minus_contribution(found)
    assert found["soft_cap"] == 2.0


def test_table_says_that_a_logit_is_before_the_soft_cap(call, gemma):
    out = call("ablate", gemma, "--prompt", PROMPT, "--only", "mlp 0")[1]
    assert "target logit before the soft cap of 2: clean" in out
    out = call("ablate", gemma, "--prompt", PROMPT, "--only", "mlp 0", "--metric", "kl")[1]
    assert "soft cap" not in out


def test_mlps_output_is_a_path_or_the_mlp(call, gemma, tmp_path):
    asked = [gemma, "--prompt", PROMPT, "--only", "mlp 0"]
    path = kept(call, tmp_path, *asked, "--what", "paths")
    mlp = kept(call, tmp_path, *asked)
    assert path["rows"][0]["what"] == mlp["rows"][0]["what"] == "mlp 0"
    assert path["rows"][0]["contribution"] != mlp["rows"][0]["contribution"]


def test_gguf_is_run_and_repeated(call, tmp_path):
    path = tmp_path / "tiny.gguf"
    save_gguf(path)
    require_minus_contribution(kept(call, tmp_path, path, "--prompt", "a b", "--frozen"))


def test_bare_weights_are_run_on_numbers_and_repeated(call, tmp_path, monkeypatch):
    path = tmp_path / "mine.pth"
    torch.save(state_dict(Tiny(normalization_type="LNPre")), path)
    text = tmp_path / "numbers.txt"
    text.write_text(" ".join(str(place % 9) for place in range(4000)))
    monkeypatch.chdir(tmp_path)
    asked = ["mine.pth", "--tokenizer", "numbers", "--config", "normalization_type=LNPre"]
    require_minus_contribution(kept(call, tmp_path, *asked, "--prompt", "1 2 3", "--frozen"))
    asked += ["--text", "numbers.txt", "--length", "5", "--windows", "4", "--with", "resample"]
    assert kept(call, tmp_path, *asked)["n_tokens"] == 20


def test_name_in_the_cache_is_run_and_repeated(call, tmp_path, monkeypatch):
    home, commit = tmp_path / "cache" / "models--me--tiny", "0" * 40
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    save_family("llama", home / "snapshots" / commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    found = kept(call, tmp_path, "me/tiny", "--prompt", PROMPT, "--frozen")
    assert found["model"] == "me/tiny"
    require_minus_contribution(found)
