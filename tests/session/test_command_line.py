"""The command line of a question asks the same question."""

import shlex
import sys
from dataclasses import replace

import pytest
import typer

from circuitview.cli import ablate as command
from circuitview.core.config import ModelConfig
from circuitview.session.command_line import command_line
from circuitview.session.lab import Question, located
from circuitview.session.lab_limits import count_sites, reason_against

PLAIN = Question(model="attn-only-2l", prompts=("I like green tea",))
QUESTIONS = {
    "plain": PLAIN,
    "difference": replace(
        PLAIN, metric="difference", target=" tea", versus="-", dest=-2, prepend_bos=False
    ),
    "prompts": replace(PLAIN, prompts=('a "quoted" one', "--looks-like-an-option", "it's")),
    "orders": replace(PLAIN, what="orders", frozen=True, metric="loss", seed=0),
    "chosen": replace(PLAIN, what="chosen", chosen=("token > 0.3 > 1.4", "0.1 + 1.2"), frozen=True),
    "paths": replace(PLAIN, what="paths", most=7, dtype="float64"),
    "text": replace(
        PLAIN,
        what="each-order",
        prompts=(),
        text="a book.txt",
        length=33,
        windows=5,
        metric="kl",
        kind="mean",
        parameters=(("text", "other.txt"), ("length", 12)),
    ),
    "text of usual length": replace(PLAIN, prompts=(), text="a book.txt", metric="loss"),
    "resampled": replace(
        PLAIN, kind="resample", parameters=(("prompt", " I drink a = b"),), seed=12, device="cuda"
    ),
    "bare": replace(PLAIN, model="weights.pth", given=(("act_fn", "gelu"),), tokenizer="numbers"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_command_line_asks_the_same(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked, question = [], QUESTIONS[name]
    monkeypatch.setattr(command, "measured", lambda _opening, q: asked.append(q))
    monkeypatch.setattr(command, "write", lambda *_: None)
    app = typer.Typer()
    app.command()(command.ablate)
    app.callback()(lambda: None)
    program, *words = shlex.split(command_line(question))
    assert program == "circuitview"
    app(words, standalone_mode=False)
    assert asked == [located(question)]


def test_what_has_no_effect_is_left_out():
    """The command line refuses it."""
    length = (("length", 9), ("windows", 3))
    over = replace(PLAIN, kind="mean", parameters=(("text", ""), *length))
    assert "--set" not in command_line(over)
    read = replace(PLAIN, kind="mean", parameters=(("text", "/a.txt"), *length))
    assert "--set text=/a.txt --set length=9 --set windows=3" in command_line(read)
    none = replace(PLAIN, kind="resample", parameters=(("prompt", ""), ("text", "/a.txt")))
    assert "--set text=/a.txt" in command_line(none)
    assert "prompt=" not in command_line(none)


CONFIG = ModelConfig(
    n_layers=2, n_heads=3, d_model=6, d_head=2, d_vocab=7, n_ctx=16, attn_only=True
)


@pytest.mark.parametrize(
    ("what", "chosen", "count"),
    [
        ("heads", (), 6),
        ("heads", ("0.1", "1.2"), 2),
        ("pairs", (), 6 + 15),
        ("orders", (), 3),
        ("each-order", (), 3),
        ("paths", (), 200),
        ("chosen", ("0.1",), 1),
    ],
)
def test_rows_are_counted(what, chosen, count):
    assert count_sites(replace(PLAIN, what=what, chosen=chosen), CONFIG) == count


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"prompts": (" ",)}, "nothing to run"),
        ({"what": "chosen", "chosen": ("5.0",)}, "no head 5.0"),
        ({"what": "chosen", "chosen": ("nonsense",)}, "names nothing"),
        ({"what": "pairs", "chosen": ("0.1",)}, "two heads"),
        ({"what": "pairs", "chosen": ("0.1", "order 1")}, "pairs are of heads"),
        ({"what": "chosen", "chosen": ("order 1",), "kind": "pattern"}, "only heads"),
        ({"kind": "resample"}, "nothing to resample"),
        ({"kind": "resample", "parameters": (("prompt", "b"),)}, None),
        ({"kind": "resample", "prompts": ("a", "b")}, None),
    ],
)
def test_what_cant_be_run_has_a_reason(change, reason):
    found = reason_against(replace(PLAIN, **change), CONFIG)
    assert found is None if reason is None else reason in found


def test_limits_and_command_lines_load_no_torch():
    import subprocess

    code = (
        "import sys, circuitview.session.command_line, circuitview.session.lab_limits;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
