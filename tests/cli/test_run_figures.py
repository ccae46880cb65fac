"""`--figure` of `circuitview ablate` and `circuitview repeat`: the lab's picture of a run."""

import xml.etree.ElementTree as ET

import pytest

from tests.cli.calling import PROMPT
from tests.cli.test_bad_input import one_line

FIGURES = {
    "heads": (["--prompt", PROMPT], "contribution (logits)"),
    "paths": (["--prompt", PROMPT, "--what", "paths"], "contribution (logits)"),
    "mixed": (
        ["--prompt", PROMPT, "--only", "0.1 + order 0"], "effect, later layers free (logits)",
    ),
    "orders": (["--prompt", PROMPT, "--what", "orders"], "paths of up to so many heads"),
    "pairs": (["--prompt", PROMPT, "--what", "pairs"], "effect of removing both (logits)"),
    "text": (
        ["--text", "{tmp}/text.txt", "--length", "8"],
        "contribution to the next tokens, mean (logits)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_that_of_what_was_asked(name, call, bundle, tmp_path):
    words = "I like green tea, so I drink green tea. " * 9
    (tmp_path / "text.txt").write_text(words, encoding="utf-8")
    options, words = FIGURES[name]
    asked = ["ablate", bundle, *(option.format(tmp=tmp_path) for option in options)]
    code, out, err = call(*asked, "--figure", tmp_path / "run.svg", "--size", "1000x700")
    assert (code, err) == (0, "")
    assert out == call(*asked)[1]  # the table is the same with a figure and without
    figure = ET.parse(tmp_path / "run.svg").getroot()
    assert (figure.get("width"), figure.get("height")) == ("1000", "700")
    assert words in {item.text for item in figure.iter() if item.tag.endswith("text")}
    about = (tmp_path / "run.svg").read_text(encoding="utf-8")
    assert "model files sha256" in about
    assert f"circuitview ablate {bundle}" in about


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_figure_of_a_repeated_run_is_drawn_in_every_format(call, bundle, qapp, tmp_path, ending):
    kept = tmp_path / "run"
    assert call("ablate", bundle, "--prompt", PROMPT, "--save", kept)[0] == 0
    out = tmp_path / f"again.{ending}"
    code, _, err = call("repeat", kept, "--figure", out, "--theme", "dark", "--transparent")
    assert code == 0, err
    begin = {"svg": b"<", "pdf": b"%PDF", "png": b"\x89PNG"}[ending]
    assert out.read_bytes().startswith(begin)
    assert call("repeat", kept, "--figure", tmp_path / "none" / "a.svg")[0] == 2


def test_figure_that_can_not_be_written_leaves_the_numbers(call, bundle, tmp_path, monkeypatch):
    """The run was measured: it is saved and printed whatever becomes of its figure."""
    from circuitview.core import files

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_fill", full)
    asked = ["ablate", bundle, "--prompt", PROMPT, "--save", tmp_path / "run"]
    code, out, err = call(*asked, "--figure", tmp_path / "run.svg")
    assert code == 2
    assert "No space left on device" in err
    assert "each head, zero" in out
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("command", ["ablate", "repeat", "export"])
def test_folder_that_is_missing_is_told_before_anything_is_opened(call, tmp_path, command):
    """An hour's run must not end in a figure that can't be put anywhere."""
    nowhere = tmp_path / "none" / "a.svg"
    asked = {
        "ablate": ["no-such-model", "--prompt", PROMPT, "--figure", nowhere],
        "repeat": [tmp_path / "no-such-run", "--figure", nowhere],
        "export": ["no-such-model", "--prompt", PROMPT, "--figure", "ov", "--out", nowhere],
    }
    code, _, err = call(command, *asked[command])
    assert code == 2
    assert f"can't write {nowhere}: there is no such folder; make it first" in err


ONE = ["ablate", "{bundle}", "--prompt", PROMPT]
SVG = [*ONE, "--figure", "{tmp}/a.svg"]
REFUSED = {
    "figure of no name": ([*ONE, "--figure", ""], "--figure names no file: give one"),
    "figure of a long name": (
        [*ONE, "--figure", "{tmp}/" + "l" * 300 + ".svg"], "choose another name",
    ),
    "scale no number": ([*SVG, "--scale", "nan"], "--scale nan: choose 0.1 to 8 dots a pixel"),
    "scale without end": ([*SVG, "--scale", "inf"], "--scale inf: choose 0.1 to 8"),
    "scale too small": ([*SVG, "--scale", "0.01"], "--scale 0.01: choose 0.1 to 8"),
    "save on the figure": ([*SVG, "--save", "{tmp}/a.svg"], "--save and --figure both name"),
    "save on the figure by another way": (
        [*SVG, "--save", "{tmp}/folder.svg/../a.svg"], "--save and --figure both name",
    ),
    "save on what the figure's link names": (
        [*ONE, "--figure", "{tmp}/link.svg", "--save", "{tmp}/a.svg"], "both name",
    ),
    "save of no name": ([*ONE, "--save", ""], "no folder is named to save to"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_figure_that_can_not_be_is_refused_before_the_run(name, call, tmp_path):
    """The model is not even looked for."""
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "link.svg").symlink_to(tmp_path / "a.svg")
    arguments, needle = REFUSED[name]
    one_line(
        call, [part.format(bundle="no-such-model", tmp=tmp_path) for part in arguments], needle
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.svg", "link.svg"]
