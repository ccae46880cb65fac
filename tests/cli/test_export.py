"""`circuitview export`: every figure in every format, read back."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pypdfium2
import pytest
from PIL import Image

from circuitview.core.analysis import analyse
from circuitview.core.checkpoint import open_model
from circuitview.core.ov import strongest_head
from tests.cli.calling import PROMPT, process, random_bundle

FIGURES = ("diagram", "attention", "ov", "table")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def export(call, bundle, qapp, tmp_path):
    """Exports into a fresh file; gives its path."""

    def export(figure, ending, *options, model=bundle, prompt=PROMPT):
        out = tmp_path / f"{figure}.{ending}"
        done = call("export", model, "--prompt", prompt, "--figure", figure, "--out", out, *options)
        assert done == (0, "", "")
        return out

    return export


def svg_texts(path):
    root = ET.parse(path).getroot()
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGBA"))


@pytest.mark.parametrize("figure", FIGURES)
def test_svg_has_the_size_asked_for_and_says_where_it_is_from(export, figure):
    root = ET.parse(export(figure, "svg", "--size", "900x640")).getroot()
    assert (root.get("width"), root.get("height")) == ("900", "640")
    about = root.findtext(f"{SVG}desc")
    for part in ("model two-layers", "float32", "norm scales held", "error", "BOS(0)"):
        assert part in about
    assert root.findtext(f"{SVG}title")


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_png_has_the_size_asked_for_and_something_on_it(export, figure, theme):
    shown = pixels(export(figure, "png", "--size", "800x600", "--theme", theme))
    assert shown.shape == (600, 800, 4)
    assert (shown[..., 3] == 255).all()
    paper = shown[0, 0, :3].astype(int)
    assert (paper.sum() > 384) == (theme == "light")
    drawn = np.abs(shown[..., :3].astype(int) - paper).sum(-1) > 60
    assert 0.002 < drawn.mean() < 0.7
    # Nothing is cut off: the rim is paper.
    assert not drawn[:2].any()
    assert not drawn[-2:].any()
    assert not drawn[:, :2].any()
    assert not drawn[:, -2:].any()


def test_png_scale_gives_more_dots(export):
    shown = pixels(export("ov", "png", "--size", "400x300", "--scale", "2"))
    assert shown.shape == (600, 800, 4)


@pytest.mark.parametrize("figure", FIGURES)
def test_pdf_is_one_page_of_that_size_with_text(export, figure):
    path = export(figure, "pdf", "--size", "960x720")
    document = pypdfium2.PdfDocument(path)
    assert len(document) == 1
    assert document[0].get_size() == pytest.approx((720, 540), abs=1)
    text = document[0].get_textpage().get_text_bounded()
    assert "tea" in text
    shown = document[0].render(scale=1).to_numpy()
    assert shown.std() > 1
    document.close()


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_transparent_leaves_the_paper_out(export, ending):
    path = export("ov", ending, "--transparent")
    if ending == "png":
        shown = pixels(path)
        assert shown[0, 0, 3] == 0
        assert shown[..., 3].max() == 255
    else:
        body = path.read_text(encoding="utf-8").split("</desc>")[1]
        assert not re.match(r"\s*<rect[^>]*width=\"1280\"", body)


def test_default_head_is_the_one_that_carries_most(export, bundle):
    expansion = analyse(open_model(bundle), PROMPT)
    strongest = strongest_head(expansion.recording, expansion.target)
    assert svg_texts(export("ov", "svg"))[0].startswith(f"Head {strongest}")
    assert svg_texts(export("attention", "svg"))[0].startswith(f"Head {strongest}")


@pytest.mark.parametrize("named", ["1.0", "L1H0", " 1.0 "])
def test_head_can_be_written_in_both_ways(export, named):
    assert svg_texts(export("attention", "svg", "--head", named))[0].startswith("Head 1.0")


@pytest.mark.parametrize("figure", ["attention", "ov"])
def test_virtual_head_is_drawn_like_a_head(export, figure):
    texts = svg_texts(export(figure, "svg", "--head", "0.1>1.0"))
    assert texts[0].startswith("Virtual head 0.1 > 1.0")


@pytest.mark.parametrize("mode", ["pattern", "scores", "value-weighted"])
def test_attention_has_three_modes(export, mode):
    texts = svg_texts(export("attention", "svg", "--mode", mode, "--head", "0.0"))
    assert texts[0].startswith("Head 0.0")


def test_ov_figure_of_the_hand_worked_model_shows_its_numbers(export):
    sentence = "the cat sat on the mat . the"
    options = ["--target", "cat", "--head", "0.0"]
    texts = svg_texts(export("ov", "svg", *options, model="cat-on-the-mat", prompt=sentence))
    assert "+3.00" in texts
    assert "+5.00" in texts
    assert "+3.06" in texts


def test_table_lists_no_more_than_asked_for(export):
    texts = svg_texts(export("table", "svg", "--top", "2"))
    paths = [text for text in texts if text.split(" > ")[0] in ("token", "position", "bias 0")]
    assert len(paths) <= 2
    assert "sum" in texts


def test_table_says_where_paths_start_where_that_is_asked_for(export):
    plain = svg_texts(export("table", "svg"))
    assert "starts mostly at" not in plain
    assert "starts mostly at" in svg_texts(export("table", "svg", "--by-source"))


def test_every_option_of_paths_is_taken(export, bundle, call):
    import inspect

    from circuitview.cli.export import export as command
    from circuitview.cli.paths import paths

    assert set(inspect.signature(paths).parameters) < set(inspect.signature(command).parameters)
    options = ["--target", " tea", "--versus", " green", "--dest", "2", "--no-bos", "--top", "3"]
    options += ["--by-source", "--dtype", "float64"]
    assert call("paths", bundle, "--prompt", PROMPT, *options, "--format", "table")[0] == 0
    for figure in FIGURES:
        about = export(figure, "svg", *options, "--format", "svg").read_text(encoding="utf-8")
        assert "float64" in about


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_format_decides_where_the_file_has_no_ending(call, bundle, qapp, tmp_path, form):
    options = ["--prompt", PROMPT, "--figure", "ov", "--format", form]
    for name in ("plain", "UPPER." + form.upper()):
        assert call("export", bundle, *options, "--out", tmp_path / name) == (0, "", "")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"UPPER.{form.upper()}", f"plain.{form}"]
    starts = {"svg": b"<?xml", "pdf": b"%PDF-", "png": b"\x89PNG"}
    assert all(path.read_bytes().startswith(starts[form]) for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "form", "needle"),
    [
        ("x.svg", "pdf", "x.svg does not end in .pdf"),
        ("x.txt", "svg", "x.txt does not end in .svg"),
        ("x", "json", "`circuitview paths`"),
        ("x.svg", "table", "`circuitview paths`"),
        ("x.svg", "csv", "`circuitview paths`"),
        ("x.svg", "gif", "'gif'"),
        ("x", None, "give --format"),
    ],
)
def test_format_and_ending_must_agree(call, bundle, tmp_path, name, form, needle):
    options = [] if form is None else ["--format", form]
    asked = ["--prompt", PROMPT, "--figure", "diagram", "--out", tmp_path / name]
    code, out, err = call("export", bundle, *asked, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert needle in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(
    ("head", "needle"),
    [("9.9", "no head 9.9"), ("1.0>0.1", "layers must rise"), ("x", "'x'"), ("", "''")],
)
def test_head_that_cannot_be_is_refused_for_every_figure(
    call, bundle, tmp_path, figure, head, needle
):
    asked = ["--prompt", PROMPT, "--figure", figure, "--out", tmp_path / "x.svg", "--head", head]
    code, _, err = call("export", bundle, *asked)
    assert (code, err.count("\n")) == (2, 1)
    assert needle in err
    assert not list(tmp_path.iterdir())


def test_floor_turns_small_paths_into_a_remainder(export):
    whole = export("diagram", "svg").read_text(encoding="utf-8")
    floored = export("diagram", "svg", "--floor", "1000").read_text(encoding="utf-8")
    assert len(floored) < len(whole)


@pytest.fixture(scope="module")
def six_layers(tmp_path_factory):
    """So many layers are a grid, of which one can be shown alone."""
    return str(random_bundle(tmp_path_factory.mktemp("bundles") / "six-layers", n_layers=6))


def test_one_layer_of_a_deep_model_is_drawn_alone(export, six_layers):
    whole = export("diagram", "svg", model=six_layers)
    assert "residual stream" in svg_texts(whole)
    assert "by layer" in svg_texts(whole)
    alone = export("diagram", "svg", "--layer", "3", model=six_layers)
    texts = svg_texts(alone)
    assert "layer 3" in texts
    assert "by layer" not in texts
    assert ET.parse(alone).getroot().find(f"{SVG}title").text.endswith("through layer 3")


@pytest.mark.parametrize(
    ("layer", "needle"), [("6", "no layer 6; name one from 0 to 5"), ("-1", "no layer -1")]
)
def test_a_layer_that_the_model_lacks_is_refused(call, six_layers, tmp_path, layer, needle):
    asked = ["--prompt", PROMPT, "--figure", "diagram", "--out", tmp_path / "x.svg"]
    code, _, err = call("export", six_layers, *asked, "--layer", layer)
    assert (code, err.count("\n")) == (2, 1)
    assert needle in err
    assert not list(tmp_path.iterdir())


def test_a_layer_of_a_model_that_is_shown_whole_is_refused(call, bundle, tmp_path):
    asked = ["--prompt", PROMPT, "--figure", "diagram", "--out", tmp_path / "x.svg"]
    code, _, err = call("export", bundle, *asked, "--layer", "0")
    assert (code, err.count("\n")) == (2, 1)
    assert "shows all 2 layers" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_export_in_a_process_without_a_display(bundle, tmp_path, ending):
    out = tmp_path / f"x.{ending}"
    # A platform that needs a screen is set, as in a desktop session's leftovers.
    surroundings = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "QT_QPA_PLATFORM": "xcb"}
    options = ["--prompt", PROMPT, "--figure", "diagram", "--out", out]
    done = process("export", bundle, *options, **surroundings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert out.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [out]


def test_svg_needs_no_qt(bundle, tmp_path):
    code = f"""
import sys
sys.modules["PySide6"] = None
from circuitview.cli.app import run
model, prompt, folder = sys.argv[1:]
for figure in {FIGURES}:
    out = folder + "/" + figure + ".svg"
    if code := run(["export", model, "--prompt", prompt, "--figure", figure, "--out", out]):
        sys.exit(code)
"""
    command = [sys.executable, "-c", code, bundle, PROMPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.svg"))) == len(FIGURES)


@pytest.mark.parametrize("figure", ["diagram", "attention", "table"])
def test_figures_of_two_prompts_say_b_minus_a(call, tmp_path, figure):
    out = tmp_path / "made.svg"
    wanted = ["induction-by-hand", "--prompt", "we like tea", "--prompt-b", "we like cat"]
    assert call("export", *wanted, "--figure", figure, "--out", out)[0] == 0
    text = out.read_text(encoding="utf-8")
    assert "B − A" in text
    assert "prompt B minus that of prompt A" in text


def test_bars_of_two_prompts_are_refused(call, tmp_path):
    wanted = ["induction-by-hand", "--prompt", "we like tea", "--prompt-b", "we like cat"]
    code, _, err = call("export", *wanted, "--figure", "ov", "--out", tmp_path / "made.svg")
    assert code == 2
    assert "--prompt-b goes with" in err
