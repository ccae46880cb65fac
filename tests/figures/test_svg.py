"""The SVG writer: valid XML whatever the tokens hold, ids, titles, rasters."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.names import CircuitviewError
from circuitview.figures.drawable import drawable
from circuitview.figures.figure import Figure, Group, Image, Rect, Text
from circuitview.figures.raster import crisp, png
from circuitview.figures.svg import svg, write_svg

SVG = "{http://www.w3.org/2000/svg}"
NASTY = [
    "\x00",
    "\x1b[0m",
    "\ud83d",
    "\ufffe",
    "a<b>&\"c'",
    "]]>",
    "\u202eabc",
    "\r\n",
    "שלום",
    " x ",
]
anything = st.text(st.characters(codec=None, exclude_categories=())) | st.sampled_from(NASTY)


def parsed(figure: Figure) -> ET.Element:
    return ET.fromstring(svg(figure).encode())


def of_text(text: str, **more) -> Figure:
    return Figure(50, 20, None, (Text(1, 10, text, 12, "#000000", **more),))


@given(anything, anything, anything)
def test_any_text_anywhere_makes_valid_xml(text: str, name: str, title: str) -> None:
    item = Text(1, 10, text, 12, "#000000")
    figure = Figure(50, 20, None, (Group((item,), id=name, title=title),), title, text)
    root = parsed(figure)
    assert root.find(f"{SVG}g/{SVG}text") is not None
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", root.find(f"{SVG}g").attrib["id"])


@given(st.lists(anything, min_size=2, max_size=8))
def test_ids_are_unique_whatever_they_are_made_from(names: list[str]) -> None:
    items = tuple(Group((), id=name, clip=Rect(0, 0, 1, 1)) for name in names)
    ids = [
        node.attrib["id"]
        for node in parsed(Figure(9, 9, None, items)).iter()
        if "id" in node.attrib
    ]
    assert len(ids) == 2 * len(names)
    assert len(set(ids)) == len(ids)


def test_a_path_is_a_group_with_its_name_and_title() -> None:
    group = Group(
        (Rect(0, 0, 5, 5, fill="#2f6db5"),), id="token > 0.3 > 1.4", title="0.3 > 1.4: +1.26"
    )
    node = parsed(Figure(9, 9, "#ffffff", (group,), "Paths", "model x\nerror 2e-6")).find(f"{SVG}g")
    assert node.attrib["id"] == "token-0.3-1.4"
    assert node.find(f"{SVG}title").text == "0.3 > 1.4: +1.26"


def test_title_and_description_of_the_figure_are_in_the_file() -> None:
    root = parsed(Figure(9, 9, "#ffffff", (), "Paths", "model x\nprompt <a>"))
    assert root.find(f"{SVG}title").text == "Paths"
    assert root.find(f"{SVG}desc").text == "model x\nprompt <a>"
    assert root.attrib["viewBox"] == "0 0 9 9"
    assert root.attrib["width"] == "9"


def test_control_characters_are_shown_and_not_lost() -> None:
    root = parsed(of_text("a\x07\tb\ud83d\u202e"))
    assert root.find(f"{SVG}text").text == "a\\x07\\x09b\\ud83d\\u202e"


def test_leading_spaces_survive() -> None:
    node = parsed(of_text("  tea")).find(f"{SVG}text")
    assert node.text == "  tea"
    assert node.attrib["{http://www.w3.org/XML/1998/namespace}space"] == "preserve"


def test_right_to_left_words_are_isolated_from_the_number_beside_them() -> None:
    assert drawable("␣שלום −1.2") == "␣\u2068שלום\u2069 −1.2"
    assert drawable("token > 0.3") == "token > 0.3"


def test_text_keeps_anchor_weight_and_turn() -> None:
    node = parsed(of_text("dest", anchor="middle", bold=True, rotation=-90)).find(f"{SVG}text")
    assert node.attrib["text-anchor"] == "middle"
    assert node.attrib["font-weight"] == "600"
    assert node.attrib["transform"] == "rotate(-90 1 10)"


def test_halo_is_a_copy_under_the_text() -> None:
    nodes = parsed(of_text("x", halo="#ffffff")).findall(f"{SVG}text")
    assert [node.attrib.get("stroke") for node in nodes] == ["#ffffff", None]


def test_the_same_figure_gives_the_same_bytes_and_short_numbers() -> None:
    figure = Figure(9, 9, None, (Rect(1 / 3, -0.0001, 2.5, 1, fill="#000000"),))
    assert svg(figure) == svg(figure)
    assert '<rect x="0.33" y="0" width="2.5" height="1" fill="#000000"/>' in svg(figure)


def test_a_coordinate_that_is_no_number_is_loud() -> None:
    with pytest.raises(ValueError, match="nan"):
        svg(Figure(9, 9, None, (Rect(float("nan"), 0, 1, 1, fill="#000000"),)))


def test_png_has_the_pixels_it_was_given() -> None:
    from PIL import Image as Reader

    rgba = np.random.default_rng(0).integers(0, 256, (5, 7, 4), dtype=np.uint8)
    assert np.array_equal(np.asarray(Reader.open(io.BytesIO(png(rgba)))), rgba)


def test_cells_are_enlarged_by_whole_pixels_and_smooth_images_are_not() -> None:
    rgba = np.random.default_rng(0).integers(0, 256, (2, 4, 4), dtype=np.uint8)
    large = crisp(Image(0, 0, 40, 20, rgba))
    assert large.shape == (40, 80, 4)
    assert np.array_equal(large[10::20, 10::20], rgba)
    assert crisp(Image(0, 0, 40, 20, rgba, smooth=True)) is rgba


def test_image_lies_in_the_file_as_png() -> None:
    rgba = np.full((2, 2, 4), 255, dtype=np.uint8)
    node = parsed(Figure(9, 9, None, (Image(1, 1, 4, 4, rgba),))).find(f"{SVG}image")
    kind, content = node.attrib["{http://www.w3.org/1999/xlink}href"].split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(content).startswith(b"\x89PNG")


def test_write_svg_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(CircuitviewError, match="choose another folder"):
        write_svg(Figure(9, 9, None, ()), tmp_path / "none" / "a.svg")
