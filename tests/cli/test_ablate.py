"""`circuitview ablate` and `circuitview repeat`: what goes out, and what bad input gets."""

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from circuitview.cli import waiting
from circuitview.cli.ablate_options import SETTINGS, KindName
from circuitview.core.ablation.kinds import kinds
from circuitview.core.progress import Progress
from tests.cli.calling import PROMPT, process
from tests.cli.test_bad_input import one_line
from tests.cli.test_process import NOTHING_HEAVY, python

BOOK = Path(__file__).parents[2] / "resources" / "texts" / "jekyll_and_hyde.txt"
HEADS = ["0.0", "0.1", "1.0", "1.1"]


@pytest.fixture
def measured(call, bundle):
    """Calls ablate on the bundle; gives its JSON."""

    def measured(*options, model=bundle):
        code, out, err = call("ablate", model, *options, "--format", "json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return measured


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("I like green tea, so I drink green tea. " * 40, encoding="utf-8")
    return path


def test_json_is_what_was_promised(measured):
    found = measured("--prompt", PROMPT)
    assert list(found)[:6] == ["model", "metric", "with", "frozen", "seed", "clean"]
    values = [found[key] for key in ("metric", "with", "frozen", "seed")]
    assert values == ["logit", "zero", False, 0]
    assert [row["what"] for row in found["rows"]] == HEADS
    for row in found["rows"]:
        assert {"what", "contribution", "effect", "value", "stderr"} <= set(row)
        assert row["stderr"] is None
        # The same two numbers, subtracted once more.
        assert row["value"] - found["clean"] == pytest.approx(row["effect"], abs=1e-12)


def test_frozen_zero_is_minus_the_contribution(measured):
    for what in ("heads", "paths", "each-order"):
        found = measured("--prompt", PROMPT, "--what", what, "--frozen")
        assert found["frozen"] is True
        largest = max(abs(row["contribution"]) for row in found["rows"])
        for row in found["rows"]:
            # float32, relative to the largest as theory says.
            assert abs(row["effect"] + row["contribution"]) <= 1e-4 * largest, row


def test_several_prompts_have_a_standard_error(measured):
    found = measured("--prompt", "green tea", "--prompt", "I like tea", "--prompt", "so")
    assert found["n"] == 3
    assert all(row["stderr"] > 0 for row in found["rows"])
    assert found["target"] == "their own"


def test_defaults_follow_what_is_run(measured, text):
    assert measured("--text", text, "--length", 8, "--windows", 2)["metric"] == "loss"
    assert measured("--prompt", PROMPT, "--what", "orders")["metric"] == "loss"
    versus = measured("--prompt", PROMPT, "--versus", " tea", "--target", " green")
    assert versus["metric"] == "difference"
    assert versus["target"] == "␣green − ␣tea"
    only = measured("--prompt", PROMPT, "--only", "0.1 + 1.0", "--only", "token > 0.1")
    assert [row["what"] for row in only["rows"]] == ["0.1 + 1.0", "token > 0.1"]


def test_same_seed_gives_the_same_numbers_and_another_others(measured, text):
    asked = ["--text", text, "--length", 8, "--windows", 6, "--with", "resample"]
    first = measured(*asked, "--seed", 1)
    assert measured(*asked, "--seed", 1) == first
    other = measured(*asked, "--seed", 2)
    assert other["clean"] == first["clean"]
    assert [row["value"] for row in other["rows"]] != [row["value"] for row in first["rows"]]


def test_settings_reach_their_kind(measured, text):
    asked = ["--prompt", PROMPT, "--with", "mean"]
    over = measured(*asked, "--set", f"text={text}", "--set", "length=8", "--set", "windows=3")
    assert over["parameters"] == {"text": str(text), "length": 8, "windows": 3}
    assert over["rows"] != measured(*asked)["rows"]
    other = measured("--prompt", "I like tea", "--with", "pattern", "--set", "prompt=U like tea")
    assert max(abs(row["effect"]) for row in other["rows"]) > 0.01
    own = measured("--prompt", "I like tea", "--with", "pattern")
    # Its own pattern is a control: theory's bound for identity replacements.
    assert max(abs(row["effect"]) for row in own["rows"]) < 1e-5


def test_usual_window_is_as_long_as_the_model_reads(measured, text):
    """Asked for nothing, a model that reads 24 tokens gets windows of 24."""
    found = measured("--text", text, "--windows", 2)
    assert found["n_tokens"] == 2 * 24
    usual = measured("--prompt", PROMPT, "--with", "mean", "--set", f"text={text}")
    asked = ["--prompt", PROMPT, "--with", "mean", "--set", f"text={text}", "--set", "length=24"]
    assert measured(*asked)["rows"] == usual["rows"]


def test_pairs_and_orders_have_their_rows(measured, text):
    pairs = measured("--prompt", PROMPT, "--what", "pairs", "--only", "0.0", "--only", "1.1")
    assert [row["what"] for row in pairs["rows"]] == ["0.0", "1.1", "0.0 + 1.1"]
    first, second, both = (row["effect"] for row in pairs["rows"])
    assert pairs["rows"][0]["interaction"] is None
    # Logits below 10, in float32.
    assert pairs["rows"][2]["interaction"] == pytest.approx(both - first - second, abs=1e-5)
    orders = measured("--text", text, "--length", 8, "--what", "orders")
    assert [row["what"] for row in orders["rows"]] == ["order 0", "order 1", "order 2"]
    assert orders["frozen"] is True
    assert {"marginal", "marginal_stderr"} <= set(orders["rows"][0])
    # The last order is the model; float32 sums.
    assert orders["rows"][-1]["value"] == pytest.approx(orders["clean"], abs=1e-5)


def test_loss_falls_order_by_order_on_the_bundled_text(call):
    code, out, _ = call(
        "ablate", "attn-only-2l", "--text", BOOK, "--windows", 6, "--what", "orders",
        "--format", "json",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    values = [row["value"] for row in found["rows"]]
    assert values == sorted(values, reverse=True)
    # Each order is worth more than two of its standard errors.
    for row in found["rows"][1:]:
        assert -row["marginal"] > 2 * row["marginal_stderr"]
    assert values[-1] == pytest.approx(found["clean"], abs=1e-5)


def test_csv_and_table_say_the_same(call, bundle, measured):
    asked = ["ablate", bundle, "--prompt", PROMPT, "--prompt", "green tea"]
    found = measured(*asked[2:])
    rows = list(csv.DictReader(io.StringIO(call(*asked, "--format", "csv")[1])))
    assert [float(row["effect"]) for row in rows] == [row["effect"] for row in found["rows"]]
    table = call(*asked)[1]
    for row in found["rows"]:
        (line,) = [line for line in table.splitlines() if line.startswith(row["what"] + " ")]
        cells = [float(cell.replace("−", "-")) for cell in line.split()[1:]]
        assert cells[1] == pytest.approx(row["effect"], abs=5.1e-5)  # four digits are shown


def test_help_says_what_resampling_needs(call):
    said = " ".join(call("ablate", "--help")[1].split())
    assert "A single prompt can't be drawn from: name another one, or a text" in said


def test_settings_in_the_help_are_the_kinds_own():
    assert get_args(KindName) == tuple(kinds())
    own = {name: [field.name for field in fields(kind)] for name, kind in kinds().items()}
    written = "; ".join(f"{name}: {', '.join(names)}" for name, names in own.items() if names)
    assert written == SETTINGS


def test_whole_numbers_in_the_settings_are_the_kinds_own():
    """parse_settings knows them by name."""
    numbers = {
        field.name
        for kind in kinds().values()
        for field in fields(kind)
        if isinstance(field.default, int)
    }
    assert numbers == {"length", "windows"}


@pytest.mark.parametrize("command", ["ablate", "repeat"])
def test_help_loads_nothing_heavy(command):
    done = python(NOTHING_HEAVY.format(arguments=[command, "--help"]))
    assert done.returncode == 0, done.stderr


ONE = ["ablate", "{bundle}", "--prompt", PROMPT]
MEAN = [*ONE, "--with", "mean"]
TEXT = ["ablate", "{bundle}", "--text", "{tmp}/text.txt", "--length", "8"]
CASES = {
    "nothing to run": (["ablate", "{bundle}"], "nothing to run: give --prompt TEXT or --text FILE"),
    "prompt and text": ([*ONE, "--text", "{tmp}/text.txt"], "--prompt and --text can't both"),
    "unknown model": (["ablate", "gpt-7", "--prompt", "a"], "'gpt-7'"),
    "empty prompt": (["ablate", "{bundle}", "--prompt", ""], "the prompt is empty"),
    "one of two prompts empty": ([*ONE, "--prompt", ""], "the prompt is empty"),
    "long prompt": ([*ONE, "--prompt", "tea " * 30], "the model reads 1 to 24"),
    "no such text": ([*TEXT[:3], "{tmp}/none.txt"], "none.txt: No such file"),
    "text is a folder": ([*TEXT[:3], "{tmp}"], "is a folder; name a text file"),
    "no text": ([*TEXT[:3], ""], "name a text file"),
    "empty text": ([*TEXT[:3], "{tmp}/empty.txt"], "empty.txt: the file is empty"),
    "short text": ([*TEXT[:3], "{tmp}/short.txt"], "shorter windows"),
    "text not UTF-8": ([*TEXT[:3], "{tmp}/bytes.txt"], "bytes.txt: not UTF-8 text"),
    "no windows": ([*TEXT, "--windows", "0"], "--windows"),
    "window of one": ([*TEXT[:5], "1"], "'--length': choose 2 or more (see"),
    "window beyond the context": ([*TEXT[:5], "25"], "25 tokens: the model reads up to 24"),
    "mean beyond the context": (
        [*ONE, "--with", "mean", "--set", "text={tmp}/text.txt", "--set", "length=25"],
        "25 tokens: the model reads up to 24",
    ),
    "windows of a prompt": ([*ONE, "--windows", "3"], "--windows goes with --text"),
    "length of a prompt": ([*ONE, "--length", "8"], "--length goes with --text"),
    "target of a text": ([*TEXT, "--target", " tea"], "--target goes with --prompt"),
    "dest of a text": ([*TEXT, "--dest", "3"], "--dest goes with --prompt"),
    "unknown what": ([*ONE, "--what", "neurons"], "'--what': 'neurons' is not"),
    "unknown kind": ([*ONE, "--with", "noise"], "--with"),
    "unknown metric": ([*ONE, "--metric", "accuracy"], "--metric"),
    "unknown format": ([*ONE, "--format", "xml"], "--format"),
    "site no site": ([*ONE, "--only", "first"], "'first' names nothing to take away"),
    "empty site": ([*ONE, "--only", ""], "names nothing to take away"),
    "head missing": ([*ONE, "--only", "2.0"], "there is no head 2.0"),
    "head of too many": ([*ONE, "--only", "1.7"], "there is no head 1.7"),
    "path falls": ([*ONE, "--only", "token > 1.0 > 0.1"], "layers must rise"),
    "path of a head missing": ([*ONE, "--only", "token > 1.9"], "there is no head 1.9"),
    "order too high": ([*ONE, "--only", "order 3"], "paths have at most 2 heads"),
    "same head twice": ([*ONE, "--only", "0.1 + 0.1"], "names the same thing twice"),
    "MLP of none": ([*ONE, "--only", "mlp 0"], "the model has no MLPs"),
    "MLPs of none": ([*ONE, "--what", "mlps"], "has no MLPs"),
    "nothing chosen": ([*ONE, "--what", "chosen"], "with --only SITE"),
    "path among heads": ([*ONE, "--what", "heads", "--only", "direct"], "not among the heads"),
    "path among pairs": ([*ONE, "--what", "pairs", "--only", "direct"], "is not one head"),
    "head among paths": ([*ONE, "--what", "paths", "--only", "1.0"], "'1.0' is not a source"),
    "only of orders": ([*ONE, "--what", "orders", "--only", "order 1"], "is of all orders"),
    "orders free": ([*ONE, "--what", "orders", "--free"], "--what orders is always frozen"),
    "orders resampled": ([*ONE, "--what", "orders", "--with", "mean"], "left out, not replaced"),
    "most of heads": ([*ONE, "--most", "3"], "--most goes with --what paths"),
    "most none": ([*ONE, "--what", "paths", "--most", "0"], "--most"),
    "paths of a text": ([*TEXT, "--what", "paths"], "name the paths to measure on a text"),
    "difference of one": ([*ONE, "--metric", "difference"], "with --versus"),
    "difference on a text": ([*TEXT, "--metric", "difference"], "of a prompt's two tokens"),
    "versus of a logit": ([*ONE, "--metric", "kl", "--versus", " tea"], "not with kl"),
    "versus of many tokens": ([*ONE, "--versus", "zz"], "versus 'zz' is 2 tokens"),
    "target of many tokens": ([*ONE, "--target", "banana"], "'banana' is 6 tokens"),
    "dest too large": ([*ONE, "--dest", "99"], "dest 99 is out of range"),
    "dest too small": ([*ONE, "--dest", "-99"], "dest -99 is out of range"),
    "dest out of one prompt": ([*ONE, "--prompt", "so", "--dest", "4"], "dest 4 is out of range"),
    "seed negative": ([*ONE, "--seed", "-1"], "'--seed': choose 0 or more (see"),
    "seed no number": ([*ONE, "--seed", "x"], "'--seed': give a whole number (see"),
    "most too many": ([*ONE, "--most", "9999999"], "'--most': choose 100000 or less (see"),
    "path without a source": ([*ONE, "--only", "0.1>1.0"], "write token > 0.3 > 1.4"),
    "path without a source, of paths": (
        [*ONE, "--what", "paths", "--only", "0.1 > 1.0"], "does not say where the path starts",
    ),
    "figure of no format": ([*ONE, "--figure", "{tmp}/a.gif"], "end it in .svg, .pdf or .png"),
    "figure without an ending": ([*ONE, "--figure", "{tmp}/a"], "end it in .svg, .pdf or .png"),
    "figure in no folder": ([*ONE, "--figure", "{tmp}/none/a.svg"], "there is no such folder"),
    "figure on a folder": ([*ONE, "--figure", "{tmp}/folder.svg"], "is a folder; name a file"),
    "figure of no size": ([*ONE, "--figure", "{tmp}/a.svg", "--size", "9x9"], "not WIDTHxHEIGHT"),
    "figure too large": (
        [*ONE, "--figure", "{tmp}/a.png", "--size", "8000x800", "--scale", "4"], "is not possible",
    ),
    "size of no figure": ([*ONE, "--size", "800x600"], "--size goes with --figure FILE"),
    "paper of no figure": ([*ONE, "--transparent"], "--transparent goes with --figure FILE"),
    "pattern of paths": ([*ONE, "--what", "paths", "--with", "pattern"], "only heads have a"),
    "nothing to draw from": ([*ONE, "--with", "resample"], "nothing to resample from"),
    "lengths that differ": (
        [*ONE, "--with", "resample", "--set", "prompt=so"], "the other prompt has",
    ),
    "prompts of two lengths": (
        [*ONE, "--prompt", "so", "--with", "resample"], "can't stand in for each other",
    ),
    "pattern of another length": (
        [*ONE, "--with", "pattern", "--set", "prompt=so"], "the other prompt has",
    ),
    "setting of nothing": ([*ONE, "--set", "text=a"], "zero has no such setting; it has none"),
    "setting of another": (
        [*ONE, "--with", "mean", "--set", "prompt=a"], "it has text, length, windows",
    ),
    "setting without a value": ([*ONE, "--with", "mean", "--set", "text"], "is not NAME=VALUE"),
    "setting twice": (
        [*ONE, "--with", "mean", "--set", "length=4", "--set", "length=5"], "gives length twice",
    ),
    "setting no number": (
        [*ONE, "--with", "mean", "--set", "length=four"], "give a whole number",
    ),
    "setting out of range": (
        [*MEAN, "--set", "text={tmp}/none.txt", "--set", "windows=0"],
        "windows is 1 to 100,000, not 0",
    ),
    "length of no text": ([*MEAN, "--set", "length=300"], "length goes with --set text=FILE"),
    "windows of no text": (
        [*MEAN, "--set", "text=", "--set", "windows=3"], "windows goes with --set text=FILE",
    ),
    "mean of no text": (
        [*ONE, "--with", "mean", "--set", "text={tmp}/none.txt"], "none.txt: No such file",
    ),
    "save on a folder": ([*ONE, "--save", "{tmp}"], "is there already; name a new folder"),
    "save in no folder": ([*ONE, "--save", "{tmp}/none/run"], "there is no folder"),
    "config of a whole model": ([*ONE, "--config", "eps=1"], "says eps itself"),
    "repeat nothing": (["repeat", "{tmp}/none"], "name the folder of a saved run"),
    "repeat a folder": (["repeat", "{tmp}"], "run.json: no such file"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_line_and_exit_code_2(name, call, bundle, tmp_path, text):
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "short.txt").write_text("so")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments, needle = CASES[name]
    one_line(call, [part.format(bundle=bundle, tmp=tmp_path) for part in arguments], needle)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_run_that_can_not_be_saved_is_written_out(call, bundle, tmp_path, monkeypatch):
    from circuitview.session import run_file

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_file, "_write", full)
    code, out, err = call("ablate", bundle, "--prompt", PROMPT, "--save", tmp_path / "run")
    assert code == 2
    assert "No space left on device" in err
    assert "each head, zero" in out
    assert list(tmp_path.iterdir()) == []


def test_first_interruption_ends_after_a_step(capsys, monkeypatch):
    """The rows of the last step count, and the generator is closed."""
    closed = []

    def steps():
        try:
            for done in range(1, 5):
                if done == 3:
                    signal.raise_signal(signal.SIGINT)
                yield Progress(done, 4)
        finally:
            closed.append(True)

    noted = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(waiting.StoppedError, match="stopped at 3"):
        waiting.finished(
            steps(), "runs", lambda progress: noted.append(progress.done), lambda: "stopped at 3"
        )
    assert noted == [1, 2, 3]
    assert closed == [True]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(os.name == "nt", reason="no terminals of this kind there")
def test_terminal_shows_a_bar_and_interruption_exits_with_130():
    master, slave = pty.openpty()
    command = ["ablate", "attn-only-2l", "--text", str(BOOK), "--windows", "400"]
    running = subprocess.Popen(
        [sys.executable, "-m", "circuitview", *command], stdout=subprocess.PIPE, stderr=slave
    )
    os.close(slave)
    seen = b""
    until = time.monotonic() + 120
    while b" of " not in seen and time.monotonic() < until:
        seen += os.read(master, 1000)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=120)
    try:
        while more := os.read(master, 1000):
            seen += more
    except OSError:  # how a terminal without a program behind it ends
        pass
    os.close(master)
    shown = seen.decode()
    assert re.search(r"\[[#.]{24}\] \d+%, [\d,]+ of [\d,]+ runs", shown), shown
    assert re.search(r"circuitview: stopped after [\d,]+ of [\d,]+ runs, \d+ rows? measured", shown)
    assert running.returncode == 130
    assert out == b""


def test_elsewhere_a_quick_run_says_nothing(bundle):
    done = process("ablate", bundle, "--prompt", PROMPT, "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("what,contribution,effect,value,stderr,n\n")
