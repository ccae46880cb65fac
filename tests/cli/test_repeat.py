"""`circuitview repeat`: a saved run again, equal bit by bit, or why not."""

import json
import re
import shutil
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
    assert re.search(r"not as in .*/kept: the numbers differ: clean by up to \de", err)
    assert err.count("\n") == 1
    assert "each head, zero" in out


def edited(folder, change):
    """Change what run.json of a saved run says."""
    saved = json.loads((folder / "run.json").read_text())
    change(saved)
    (folder / "run.json").write_text(json.dumps(saved))


def test_a_run_saved_without_contributions_is_equal_in_the_rest(call, bundle, text, tmp_path):
    """Texts had none once; the line said that the largest difference was 0e+00."""
    kept = tmp_path / "kept"
    call("ablate", bundle, "--text", text, "--length", 8, "--windows", 2, "--save", kept)
    edited(kept, lambda saved: [row.update(contribution=None) for row in saved["rows"]])
    code, _, err = call("repeat", kept)
    assert code == 0
    assert err.endswith(f"to that in {kept}; contributions were not kept then\n")
    edited(kept, lambda saved: [row.update(contribution=1e3) for row in saved["rows"]])
    code, _, err = call("repeat", kept)
    assert code == 1
    assert "the numbers differ: contribution by up to 1e+03" in err


def test_equal_numbers_of_other_weights_are_not_called_equal(call, bundle, tmp_path):
    kept = tmp_path / "kept"
    call("ablate", bundle, "--prompt", PROMPT, "--save", kept)
    edited(kept, lambda saved: saved.update(model_hash="0" * 64))
    code, _, err = call("repeat", kept)
    assert code == 1
    assert "every number is equal, bit by bit, but the model's weight file changed" in err


def test_a_mean_whose_windows_were_once_cut_is_repeated(call, bundle, text, tmp_path):
    """A length beyond the context was cut without a word before runs knew of their threads; it is
    refused where it is asked for today."""
    asked = ["ablate", bundle, "--prompt", PROMPT, "--with", "mean", "--set", f"text={text}"]
    kept, today = tmp_path / "kept", tmp_path / "today"
    assert call(*asked, "--set", "length=24", "--save", kept)[0] == 0

    def ask_for_more(saved):
        saved["question"]["parameters"] = [["text", str(text)], ["length", 300]]

    edited(kept, ask_for_more)
    shutil.copytree(kept, today)
    edited(kept, lambda saved: saved.pop("threads"))
    code, out, err = call("repeat", kept)
    assert (code, "every number is equal, bit by bit" in err) == (0, True), err
    assert "length = 24" in out
    code, _, err = call("repeat", today)
    assert (code, "windows of 300 tokens" in err) == (2, True), err


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
