"""Painting and exporting: what is where in SVG, PDF and PNG, checked in pixels."""

import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PIL import Image as Reader
from PySide6.QtCore import QByteArray, QSizeF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from circuitview.core.names import CircuitviewError
from circuitview.figures.figure import Curve, Figure, Group, Image, Rect, Text, segment
from circuitview.figures.svg import svg
from circuitview.figures.text_width import width
from circuitview.gui import fonts, paint
from circuitview.gui.pdf_info import with_info
from circuitview.gui.program_icon import program_icon

ORIGIN = "model x, prompt “tea” <b>\nerror 2e-6"


@pytest.fixture(autouse=True)
def application(qapp):
    fonts.load_fonts()
    return qapp


def sample() -> Figure:
    cells = np.zeros((3, 4, 4), np.uint8)
    cells[:, :, 3] = 255
    cells[0, 0, 0] = 255  # red in the top left corner
    cells[2, 3, 2] = 255  # blue in the bottom right one
    cells[0, 3, 3] = 0  # a hole in the top right one
    return Figure(
        200.5,
        120,
        "#ffffff",
        (
            Rect(10, 10, 40, 20, fill="#2f6db5", opacity=0.5),
            Curve(segment(60, 20, 100, 20), stroke="#dd7622", stroke_width=8),
            Image(120, 10, 40, 30, cells),
            Group((Rect(0, 50, 100, 20, fill="#00ff00"),), clip=Rect(20, 40, 20, 100)),
            Text(190, 110, "␣tea −1.73", 14, "#1d2733", anchor="end"),
            Text(10, 110, "token > 0.3", 12.5, "#000000", bold=True, halo="#ffee00"),
        ),
        "Sample",
        ORIGIN,
    )


PLACES = {
    (15, 15): (151, 182, 218),  # half of the blue
    (80, 17): (221, 118, 34),
    (80, 26): (255, 255, 255),
    (125, 15): (255, 0, 0),
    (155, 35): (0, 0, 255),
    (145, 25): (0, 0, 0),
    (155, 15): (255, 255, 255),  # the hole
    (30, 60): (0, 255, 0),
    (60, 60): (255, 255, 255),  # clipped away
    (5, 5): (255, 255, 255),
}


def check_places(pixels: np.ndarray, scale: float, skip=()) -> None:
    for (x, y), colour in PLACES.items():
        if (x, y) not in skip:
            seen = pixels[round(y * scale), round(x * scale), :3].astype(int)
            assert np.abs(seen - colour).max() <= 3, ((x, y), seen, colour)


def pixels_of(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_RGBA8888)
    raw = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1)
    return raw[:, : 4 * image.width()].reshape(image.height(), image.width(), 4).copy()


@pytest.mark.parametrize("scale", [1.0, 2.0, 3.0])
def test_image_has_each_colour_in_its_place(scale: float) -> None:
    check_places(pixels_of(paint.image(sample(), scale)), scale)


def test_svg_drawn_back_has_each_colour_in_its_place() -> None:
    renderer = QSvgRenderer(QByteArray(svg(sample()).encode()))
    assert renderer.isValid()
    assert renderer.viewBoxF().size() == QSizeF(200.5, 120)
    raster = QImage(401, 240, QImage.Format.Format_ARGB32_Premultiplied)
    raster.fill(QColor("#ff00ff"))
    painter = QPainter(raster)
    renderer.render(painter)
    painter.end()
    # Qt's SVG reader is of the Tiny profile, without clip paths.
    check_places(pixels_of(raster), 2, skip={(60, 60)})


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="rsvg-convert is not installed")
def test_svg_drawn_by_another_program_has_each_colour_in_its_place(tmp_path: Path) -> None:
    import subprocess

    paint.write_figure(sample(), tmp_path / "a.svg")
    command = ["rsvg-convert", "-z", "2", str(tmp_path / "a.svg")]
    done = subprocess.run(command, capture_output=True, check=True)
    check_places(np.asarray(Reader.open(io.BytesIO(done.stdout)).convert("RGB")), 2)


def opened(path: Path) -> pypdfium2.PdfDocument:
    return pypdfium2.PdfDocument(path.read_bytes())


def test_pdf_has_each_colour_in_its_place_and_the_figures_size(tmp_path: Path) -> None:
    paint.write_figure(sample(), tmp_path / "a.pdf")
    document = opened(tmp_path / "a.pdf")
    assert len(document) == 1
    # 200.5 pixels are 150.4 points; pages are whole points, rounded up.
    assert document[0].get_size() == (151, 90)
    drawn = document[0].render(scale=2 * 96 / 72).to_pil().convert("RGB")
    check_places(np.asarray(drawn), 2)


def test_pdf_text_can_be_extracted_and_its_fonts_are_embedded(tmp_path: Path) -> None:
    lines = tuple(
        Text(10 + 7 * place, 20 + 15 * place, text, 12, "#000000", bold=place % 2 == 1)
        for place, text in enumerate(["␣tea −1.73", "token > 0.3", "layer 0 +4.30", "dest ␣green"])
    )
    paint.write_figure(Figure(200, 90, "#ffffff", lines), tmp_path / "a.pdf")
    text = opened(tmp_path / "a.pdf")[0].get_textpage().get_text_range()
    assert "␣tea −1.73" in text
    assert "token > 0.3" in text
    assert "dest ␣green" in text
    content = (tmp_path / "a.pdf").read_bytes()
    assert content.count(b"/FontDescriptor\n") == content.count(b"/FontFile2") >= 2
    assert b"CircuitviewSans-Regular" in content
    assert b"CircuitviewSans-SemiBold" in content


def test_pdf_text_of_every_figure_and_sign_comes_back_as_typed(tmp_path: Path) -> None:
    """Digits came out as private characters, and − and > as control characters, where font
    features chose their glyphs."""
    typed = "0123456789 −1.73 +2.5 token > 0.3 -> ⟨F0 9F⟩ ␣↵⇥␍ × → Σ Illicit"
    figure = Figure(600, 40, None, (Text(10, 20, typed, 13, "#000000"),))
    paint.write_pdf(figure, tmp_path / "a.pdf")
    assert typed in opened(tmp_path / "a.pdf")[0].get_textpage().get_text_range()


def test_pdf_says_what_it_is_and_where_its_numbers_come_from(tmp_path: Path) -> None:
    paint.write_figure(sample(), tmp_path / "a.pdf")
    said = opened(tmp_path / "a.pdf").get_metadata_dict()
    assert said["Title"] == "Sample"
    assert said["Subject"] == ORIGIN
    assert said["Creator"] == "circuitview"


def test_pdf_without_background_is_transparent(tmp_path: Path) -> None:
    paint.write_figure(sample(), tmp_path / "a.pdf", transparent=True)
    page = opened(tmp_path / "a.pdf")[0]
    drawn = np.asarray(page.render(scale=1, fill_color=(255, 0, 255, 255)).to_pil().convert("RGB"))
    assert drawn[3, 3].tolist() == [255, 0, 255]


def test_pdf_of_another_kind_is_refused_not_broken() -> None:
    with pytest.raises(CircuitviewError, match="export SVG instead"):
        with_info(b"%PDF-1.7\nsomething", "t", "s", "c")


def test_png_has_size_density_and_origin(tmp_path: Path) -> None:
    paint.write_figure(sample(), tmp_path / "a.png", scale=3)
    read = Reader.open(tmp_path / "a.png")
    assert read.size == (602, 360)
    assert read.text["Description"] == ORIGIN
    assert read.text["Title"] == "Sample"
    assert read.info["dpi"] == pytest.approx((288, 288), abs=0.1)
    assert np.asarray(read.convert("RGBA"))[:, :, 3].min() == 255


def test_png_without_background_is_transparent(tmp_path: Path) -> None:
    paint.write_figure(sample(), tmp_path / "a.png", transparent=True)
    pixels = np.asarray(Reader.open(tmp_path / "a.png").convert("RGBA"))
    assert pixels[5, 5, 3] == 0
    assert pixels[30, 30, 3] == pytest.approx(128, abs=2)
    assert pixels[34, 160, 3] == 255


def test_png_too_large_is_refused_before_it_is_painted() -> None:
    with pytest.raises(CircuitviewError, match="choose another scale"):
        paint.image(Figure(9000, 10, None, ()), scale=4)


def test_write_figure_of_an_unknown_ending_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(CircuitviewError, match=r"end it in \.svg, \.pdf or \.png"):
        paint.write_figure(sample(), tmp_path / "a.jpg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all names are Unicode")
@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_name_that_is_no_utf_8_is_written_and_nothing_beside_it(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9." + ending.encode())
    paint.write_figure(sample(), path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size > 500


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_failed_export_leaves_the_old_file_and_nothing_else(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"old")
    broken = Figure(50, 50, "#ffffff", (Rect(1, 0, 1, 1, fill="#000000"), object()))
    with pytest.raises(TypeError, match="can't hold a object"):
        paint.write_figure(broken, path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_no_pen_is_cosmetic_or_of_width_0() -> None:
    for item in (
        Rect(0, 0, 1, 1, stroke="#000000", stroke_width=0.5, dash=(3, 2, 1)),
        Curve(segment(0, 0, 1, 1), stroke="#000000", cap="round"),
    ):
        made = paint.pen(item)
        assert not made.isCosmetic()
        assert made.widthF() == item.stroke_width
    assert paint.pen(Rect(0, 0, 1, 1, stroke="#000000", stroke_width=0)).style().name == "NoPen"
    dashed = paint.pen(Rect(0, 0, 1, 1, stroke="#000000", stroke_width=2, dash=(4, 2)))
    assert dashed.dashPattern() == [2, 1]


def test_qpath_follows_the_commands() -> None:
    curve = Curve((("M", 1, 2), ("C", 1, 5, 4, 5, 4, 2), ("L", 9, 2), ("Z",)))
    path = paint.qpath(curve)
    assert path.elementCount() == 6
    assert path.boundingRect().right() == 9
    assert path.currentPosition().toTuple() == (1, 2)


@pytest.mark.parametrize("anchor", ["start", "middle", "end"])
@pytest.mark.parametrize("size", [12, 12.5, 30])
def test_text_is_as_wide_as_measured_and_stands_where_anchored(anchor: str, size: float) -> None:
    text = "BOS ␣green 0.37 −1.73"
    figure = Figure(800, 60, "#ffffff", (Text(400, 40, text, size, "#000000", anchor=anchor),))
    dark = np.argwhere(pixels_of(paint.image(figure, 2))[:, :, 0].min(axis=0) < 128)
    left, right = dark.min() / 2, (dark.max() + 1) / 2
    measured = width(text, size)
    start = {"start": 400, "middle": 400 - measured / 2, "end": 400 - measured}[anchor]
    assert left == pytest.approx(start, abs=0.15 * size)
    assert right == pytest.approx(start + measured, abs=0.15 * size)


def test_upper_i_and_lower_l_and_one_look_different() -> None:
    drawn = [
        pixels_of(paint.image(Figure(20, 30, "#ffffff", (Text(5, 22, sign, 20, "#000000"),)), 2))
        for sign in "Il1|"
    ]
    for place, one in enumerate(drawn):
        for other in drawn[place + 1 :]:
            assert np.count_nonzero(np.abs(one.astype(int) - other).max(axis=2) > 100) > 20


def test_halo_surrounds_the_text() -> None:
    figure = Figure(60, 30, "#000000", (Text(10, 22, "H", 20, "#000000", halo="#ffee00"),))
    pixels = pixels_of(paint.image(figure, 1))
    assert (pixels[:, :, 0] > 200).any()
    bare = Figure(60, 30, "#000000", (Text(10, 22, "H", 20, "#000000"),))
    assert not (pixels_of(paint.image(bare, 1))[:, :, 0] > 200).any()


def test_smooth_image_is_averaged_where_it_is_too_fine() -> None:
    """One column in eight is bright, eight make a pixel: picking or blending two would miss it."""
    stripes = np.zeros((400, 400, 4), np.uint8)
    stripes[:, :, 3] = 255
    stripes[:, ::8, :3] = 255
    figure = Figure(50, 50, None, (Image(0, 0, 50, 50, stripes, smooth=True),))
    seen = pixels_of(paint.image(figure, 1))[10:40, 10:40, 0]
    assert seen.min() > 20
    assert seen.max() < 45


def test_image_that_is_not_contiguous_is_painted_right() -> None:
    cells = np.zeros((4, 3, 4), np.uint8)
    cells[:, :, 3] = 255
    cells[3, 0, 0] = 255
    turned = cells.transpose(1, 0, 2)
    seen = pixels_of(paint.image(Figure(4, 3, None, (Image(0, 0, 4, 3, turned),)), 10))
    assert seen[5, 35, 0] == 255
    assert seen[25, 5, 0] == 0


def test_fonts_that_are_missing_are_loud(monkeypatch) -> None:
    monkeypatch.setattr(fonts, "FAMILY", "No Such Sans")
    monkeypatch.setattr(fonts, "_FILES", ("NoSuch.otf",))
    with pytest.raises(CircuitviewError, match=r"NoSuch\.otf is missing.*install circuitview"):
        fonts.load_fonts()


def test_font_in_use_is_the_bundled_one() -> None:
    from PySide6.QtGui import QFontInfo

    for bold in (False, True):
        used = QFontInfo(fonts.font(14, bold))
        assert used.family() == fonts.FAMILY
        assert used.weight() == (600 if bold else 400)


def test_ensure_gui_application_works_without_a_screen_or_an_application(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    code = (
        "from pathlib import Path\n"
        "from circuitview.figures.figure import Figure, Text\n"
        "from circuitview.gui.paint import write_figure\n"
        "figure = Figure(50, 20, None, (Text(1, 12, 'tea', 12, '#000000'),))\n"
        f"[write_figure(figure, Path({str(tmp_path)!r}) / name) for name in ('a.png', 'a.pdf')]\n"
    )
    bare = {
        key: value for key, value in os.environ.items() if key not in ("DISPLAY", "QT_QPA_PLATFORM")
    }
    subprocess.run([sys.executable, "-c", code], env=bare, check=True, capture_output=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.pdf", "a.png"]


def test_painting_loses_no_reference_to_none() -> None:
    """PySide6 6.12.0 drops one at every call that returns nothing, and on Python 3.11 that ends in
    "deallocating None"."""
    import sys

    figure = sample()
    paint.image(figure)
    before = sys.getrefcount(None)
    for _ in range(20):
        paint.image(figure)
    assert sys.getrefcount(None) - before > -50


def test_program_icon_shows_blue_and_orange_at_every_size() -> None:
    for size in (16, 32, 256):
        seen = pixels_of(program_icon().pixmap(size, size).toImage())[:, :, :3].astype(int)
        blue = (seen[:, :, 2] - seen[:, :, 0] > 90).mean()
        orange = (seen[:, :, 0] - seen[:, :, 2] > 90).mean()
        assert blue > 0.05, size
        assert orange > 0.05, size
