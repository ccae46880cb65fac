"""`circuitview train`: from text files to a bundle that every other command opens."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SIZES = [
    "--layers", "1", "--heads", "2", "--d-model", "8", "--d-head", "4", "--n-ctx", "32",
    "--vocabulary", "260", "--batch-tokens", "256", "--threads", "1",
]  # fmt: skip


@pytest.fixture
def texts(tmp_path):
    """A folder with two texts and a file that is none."""
    folder = tmp_path / "texts"
    folder.mkdir()
    words = random.Random(0)
    for name in ("a.txt", "b.txt"):
        line = " ".join(words.choice(["tea", "green", "drink", "like"]) for _ in range(400))
        (folder / name).write_text(line)
    (folder / "notes.md").write_bytes(b"\xff\xfe")
    return folder


def test_trained_model_opens_and_balances(call, texts, tmp_path):
    out = tmp_path / "mine"
    code, said, progress = call("train", texts, "--out", out, "--tokens", 2560, *SIZES)
    assert (code, said) == (0, "")
    assert "reading 2 texts" in progress
    assert "step 1 of 10" in progress
    assert f"circuitview open {out}" in progress
    assert not (out / "training").exists()
    code, said, _ = call("paths", out, "--prompt", "green tea", "--format", "json")
    answer = json.loads(said)
    assert (code, answer["model"]) == (0, "mine")
    assert answer["tokens"][0] == "<|BOS|>"


def test_held_out_text_is_measured_and_not_trained_on(call, texts, tmp_path):
    held = texts / "b.txt"
    options = ["--tokens", 512, "--held-out", held, *SIZES]
    code, _, progress = call("train", texts, "--out", tmp_path / "mine", *options)
    assert code == 0
    assert "validation " in progress.splitlines()[-1]
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    assert "Trained on: A." in card


def test_finished_model_is_not_trained_over(call, texts, tmp_path):
    command = ["train", texts, "--out", tmp_path / "mine", "--tokens", 256, *SIZES]
    assert call(*command)[0] == 0
    code, _, err = call(*command)
    assert code == 2
    assert "holds a finished model already" in err


@pytest.mark.parametrize(
    ("options", "needle"),
    [
        (["--layers", "0"], "--layers"),
        (["--vocabulary", "12"], "--vocabulary"),
        (["--repeat-stage", "2"], "--repeat-stage"),
        (["--precision", "int8"], "--precision"),
        (["--held-out", "none.txt"], "none.txt"),
        (["--vocabulary", "9000"], "smaller --vocabulary"),
        (["--threads", "1000000000"], "--threads"),
        (["--seed", "1" + "0" * 30], "--seed"),
        (["--batch-tokens", "1000000000000"], "--batch-tokens"),
        (["--rate-rest", "inf"], "the run diverged; choose lower rates"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_a_line(call, texts, tmp_path, options, needle):
    code, _, err = call("train", texts, "--out", tmp_path / "mine", *SIZES, *options)
    assert code == 2
    assert needle in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("circuitview: ")
    assert "Traceback" not in err


def test_text_that_is_no_text_is_named(call, texts, tmp_path):
    code, _, err = call("train", texts / "notes.md", "--out", tmp_path / "mine", *SIZES)
    assert code == 2
    assert "notes.md: not UTF-8 text" in err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send there")
def test_interrupted_run_says_how_to_go_on(texts, tmp_path):
    out = tmp_path / "mine"
    command = [sys.executable, "-m", "circuitview", "train", str(texts), "--out", str(out)]
    endless = ["--tokens", "100000000", *SIZES]
    running = subprocess.Popen(
        [*command, *endless], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("step 500:"):
            running.send_signal(signal.SIGINT)
            break
    _, rest = running.communicate(timeout=60)
    assert running.returncode == 130
    assert rest.splitlines()[-1].startswith("circuitview: stopped at step ")
    assert "call the same command again to go on" in rest
    assert "Traceback" not in rest
    assert not (out / "model.safetensors").exists()
    # Other settings are not silently mixed into it.
    other = subprocess.run(
        [*command, "--tokens", "256", *SIZES],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert other.returncode == 2
    assert "interrupted run" in other.stderr


def test_text_files_takes_files_as_they_are_and_folders_by_name(texts):
    from circuitview.cli.train import text_files

    names = [path.name for path in text_files([texts, texts / "notes.md"])]
    assert names == ["a.txt", "b.txt", "notes.md"]
    assert all(isinstance(path, Path) for path in text_files([texts]))
