"""Bad input: exit code 2, exactly one line on stderr that names the thing, nothing on stdout."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from circuitview.core import analysis
from tests.cli.calling import PROMPT

PATHS = ["paths", "{bundle}", "--prompt", PROMPT]
EXPORT = ["export", "{bundle}", "--prompt", PROMPT, "--figure", "ov", "--out", "{tmp}/x.svg"]
CASES = {
    "unknown command": (["plot"], "'plot'"),
    "unknown option": ([*PATHS, "--floor", "1"], "--floor"),
    "unknown model": (["paths", "gpt-7", "--prompt", "a"], "'gpt-7'"),
    "model is a text": (
        ["paths", "{bundle}/README.md", "--prompt", "a"], "README.md is a file that holds no model",
    ),
    "folder without weights": (["paths", "{tmp}", "--prompt", "a"], "model.safetensors"),
    "no prompt": (["paths", "{bundle}"], "--prompt"),
    "empty prompt": (["paths", "{bundle}", "--prompt", ""], "the prompt is empty"),
    "long prompt": (["paths", "{bundle}", "--prompt", "tea " * 30], "the model reads 1 to 24"),
    "unknown word": (["paths", "cat-on-the-mat", "--prompt", "the dog"], "'dog'"),
    "target of three tokens": ([*PATHS, "--target", "tea"], "'t' 'e' 'a'; did you mean ' tea'?"),
    "target of many tokens": ([*PATHS, "--target", "banana"], "'banana' is 6 tokens: 'b' 'a' 'n'"),
    "empty target": ([*PATHS, "--target", ""], "the target is empty"),
    "versus of many tokens": ([*PATHS, "--versus", "zz"], "versus 'zz' is 2 tokens"),
    "versus is target": (
        [*PATHS, "--target", " tea", "--versus", " tea"], "target and versus are both",
    ),
    "dest too large": ([*PATHS, "--dest", "99"], "dest 99 is out of range"),
    "dest too small": ([*PATHS, "--dest", "-99"], "dest -99 is out of range"),
    "dest no number": ([*PATHS, "--dest", "last"], "--dest"),
    "top negative": ([*PATHS, "--top", "-1"], "--top"),
    "list nothing": ([*PATHS, "--list", "0"], "--list"),
    "unknown device": ([*PATHS, "--device", "tpu"], "--device"),
    "config of a whole model": ([*PATHS, "--config", "eps=1"], "says eps itself"),
    "config without a value": ([*PATHS, "--config", "eps"], "'eps' is not KEY=VALUE"),
    "config twice": (
        [*PATHS, "--config", "eps=1", "--config", "eps=2"], "--config gives eps twice",
    ),
    "tokenizer of a whole model": ([*PATHS, "--tokenizer", "numbers"], "tokenizer of its own"),
    "check an unknown model": (["check", "gpt-7"], "'gpt-7'"),
    "check an empty prompt": (["check", "{bundle}", "--prompt", ""], "the prompt is empty"),
    "open with answers and no model": (["open", "--config", "eps=1"], "name one"),
    "unknown dtype": ([*PATHS, "--dtype", "float16"], "--dtype"),
    "unknown format": ([*PATHS, "--format", "xml"], "--format"),
    "unknown figure": ([*EXPORT[:5], "pie", *EXPORT[6:]], "--figure"),
    "no out": (EXPORT[:6], "--out"),
    "unknown ending": ([*EXPORT[:7], "{tmp}/x.gif"], "x.gif"),
    "no ending": ([*EXPORT[:7], "{tmp}/x"], "end it in .svg, .pdf or .png"),
    "out in no folder": ([*EXPORT[:7], "{tmp}/none/x.svg"], "none/x.svg"),
    "out is a folder": ([*EXPORT[:7], "{bundle}.svg"], "is a folder"),
    "out of a long name": ([*EXPORT[:7], "{tmp}/" + "l" * 300 + ".svg"], "choose another name"),
    "scale no number": ([*EXPORT, "--scale", "nan"], "--scale nan: choose 0.1 to 8 dots a pixel"),
    "size no size": ([*EXPORT, "--size", "wide"], "'wide'"),
    "size too small": ([*EXPORT, "--size", "0x720"], "'0x720'"),
    "size too large": ([*EXPORT, "--size", "1280x99999"], "'1280x99999'"),
    "floor negative": ([*EXPORT, "--floor", "-1"], "--floor"),
    "floor undefined": ([*EXPORT, "--floor", "nan"], "floor"),
    "floor infinite": ([*EXPORT, "--floor", "inf"], "floor inf"),
    "head no head": ([*EXPORT, "--head", "first"], "'first' is not a head"),
    "head missing": ([*EXPORT, "--head", "2.0"], "no head 2.0"),
    "chain falls": ([*EXPORT, "--head", "1.0>0.1"], "layers must rise"),
    "unknown theme": ([*EXPORT, "--theme", "blue"], "--theme"),
    "scores of a chain": (
        [*EXPORT[:5], "attention", *EXPORT[6:], "--mode", "scores", "--head", "0.0>1.1"],
        "no scores of its own",
    ),
    "train on nothing": (["train", "{tmp}/none", "--out", "{tmp}/m"], "no such file or folder"),
    "train on no text": (["train", "{tmp}", "--out", "{tmp}/m"], "no .txt file"),
    "train without out": (["train", "{tmp}"], "--out"),
}  # fmt: skip


def one_line(call, arguments, needle, code=2):
    got, out, err = call(*arguments)
    assert got == code, err
    assert out == ""
    assert err.startswith("circuitview: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert needle in err
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_line_and_exit_code_2(name, call, bundle, tmp_path):
    arguments, needle = CASES[name]
    if name == "out is a folder":
        Path(f"{bundle}.svg").mkdir(exist_ok=True)
    filled = [part.format(bundle=bundle, tmp=tmp_path) for part in arguments]
    one_line(call, filled, needle)
    assert not (tmp_path / "x.svg").exists()


@pytest.fixture
def broken(bundle, tmp_path):
    """A copy of the bundle to break."""
    return Path(shutil.copytree(bundle, tmp_path / "broken"))


def change_weights(folder, change):
    path = folder / "model.safetensors"
    arrays = load_file(path)
    change(arrays)
    save_file(arrays, path)


def test_truncated_weights_are_named(call, broken):
    path = broken / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    one_line(call, ["paths", broken, "--prompt", "a"], "model.safetensors: not a whole")


def test_misshaped_weights_are_named(call, broken):
    def change(arrays):
        arrays["unembed.W_U"] = arrays["unembed.W_U"].T.contiguous()

    change_weights(broken, change)
    one_line(call, ["paths", broken, "--prompt", "a"], "unembed.W_U has shape")


def test_nan_weights_are_named(call, broken):
    def change(arrays):
        arrays["embed.W_E"][3, 2] = torch.nan

    change_weights(broken, change)
    one_line(call, ["paths", broken, "--prompt", "a"], "embed.W_E holds NaN")


def test_missing_weights_are_named(call, broken):
    change_weights(broken, lambda arrays: arrays.pop("blocks.1.attn.W_V"))
    one_line(call, ["paths", broken, "--prompt", "a"], "blocks.1.attn.W_V is missing")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"n_layers": 2}'])
def test_bad_config_is_named(call, broken, content):
    (broken / "config.json").write_text(content)
    one_line(call, ["paths", broken, "--prompt", "a"], "config.json")


def test_config_that_asks_for_mlps_the_weights_lack_is_refused_by_name(call, broken):
    fields = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps(fields | {"attn_only": False}))
    one_line(call, ["paths", broken, "--prompt", "a"], "act_fn")


def test_missing_tokenizer_is_named(call, broken):
    (broken / "tokenizer.json").unlink()
    one_line(call, ["paths", broken, "--prompt", "a"], "tokenizer.json")


@pytest.mark.parametrize("command", ["paths", "export"])
def test_what_does_not_add_up_leaves_with_1_and_its_numbers(
    call, bundle, monkeypatch, tmp_path, command
):
    expand = analysis.expand

    def off_by_one(*asked):
        expansion = expand(*asked)
        return replace(expansion, logit=expansion.logit + 1)

    monkeypatch.setattr(analysis, "expand", off_by_one)
    out = tmp_path / "x.svg"
    more = ["--figure", "diagram", "--out", out] if command == "export" else ["--format", "json"]
    arguments = [command, bundle, "--prompt", PROMPT, *more]
    err = one_line(call, arguments, "don't add up", code=1)
    assert "error 1.0e+00 passes the tolerance" in err
    assert not out.exists()


def test_defect_of_the_program_is_a_line_too(call, bundle, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr(analysis, "expand", fail)
    arguments = ["paths", bundle, "--prompt", PROMPT]
    one_line(call, arguments, "ZeroDivisionError: first line second line", code=70)


def test_ctrl_c_leaves_with_130(call, bundle, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(analysis, "expand", stop)
    one_line(call, ["paths", bundle, "--prompt", PROMPT], "stopped", code=130)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
@pytest.mark.parametrize("arguments", [[], ["open", "cat-on-the-mat"]])
@pytest.mark.parametrize("platform", ["", "xcb", "wayland"])
def test_window_without_a_display_is_refused_with_a_line(call, monkeypatch, arguments, platform):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    one_line(call, arguments, "no display")


@pytest.mark.parametrize("model", ["gpt-7", "~nobody-of-that-name/model", "m" * 5000])
def test_window_on_a_model_that_is_nowhere_is_refused_with_a_line(call, model):
    shown = f"'{model[:120]}…'" if len(model) > 120 else f"'{model}'"
    one_line(call, ["open", model], f"no bundled model and no folder or file {shown}")


def test_open_with_an_empty_prompt_does_not_take_the_last_one(call, monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    one_line(call, ["open", "cat-on-the-mat", "--prompt", ""], "the prompt is empty")


def test_fault_that_is_no_exception_is_a_line_too(call, bundle, monkeypatch):
    class Fault(BaseException):
        pass

    def fail(*_):
        raise Fault("index out of bounds")

    monkeypatch.setattr(analysis, "expand", fail)
    one_line(call, ["paths", bundle, "--prompt", PROMPT], "Fault: index out of bounds", code=70)


def test_tokenizer_that_brings_its_library_down_is_named(call, broken):
    path = broken / "tokenizer.json"
    fields = json.loads(path.read_text())
    fields["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    path.write_text(json.dumps(fields))
    one_line(call, ["paths", broken, "--prompt", PROMPT], str(path))
