"""`circuitview repeat`: a saved run again, equal bit by bit, or why not."""

import json
from pathlib import Path

import pytest
import torch

from tests.cli.calling import PROMPT


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("I like green tea, so I drink green tea. " * 40, encoding="utf-8")
    return path


def test_saved_run_is_repeated_equal(call, bundle, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["ablate", bundle, "--text", text.name, "--length", 8, "--with", "resample"]
    code, out, err = call(*asked, "--seed", 5, "--save", "kept", "--format", "json")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in Path("kept").iterdir()) == [
        "run.json",
        "values.safetensors",
    ]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, again, err = call("repeat", tmp_path / "kept", "--format", "json")
    assert code == 0
    assert "every number is equal, bit by bit" in err
    assert err.count("\n") == 1
    assert json.loads(again)["rows"] == json.loads(out)["rows"]


def test_repeated_run_that_differs_says_why(call, bundle, text, tmp_path):
    asked = ["ablate", bundle, "--text", text, "--length", 8, "--windows", 2]
    call(*asked, "--save", tmp_path / "kept")
    text.write_text("so green I like tea, drink. " * 20, encoding="utf-8")
    code, out, err = call("repeat", tmp_path / "kept")
    assert code == 1
    assert "what is run changed" in err
    assert "the largest difference is" in err
    assert "each head, zero" in out


def test_repeat_takes_as_many_threads_as_the_run_had(call, bundle, tmp_path, monkeypatch):
    """The window leaves a core free; its runs came out different in their last bits."""
    kept, asked = tmp_path / "run", []
    assert call("ablate", bundle, "--prompt", PROMPT, "--save", kept)[0] == 0
    run = json.loads((kept / "run.json").read_text())
    assert run["threads"] == torch.get_num_threads()
    (kept / "run.json").write_text(json.dumps(run | {"threads": 3}))
    before = torch.get_num_threads()
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    call("repeat", kept)
    assert asked == [3, before]
