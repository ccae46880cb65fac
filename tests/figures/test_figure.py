"""The display list, text widths and the themes."""

import subprocess
import sys

import numpy as np
import pytest

from circuitview.core.names import CircuitviewError
from circuitview.figures.figure import (
    Box,
    Curve,
    Figure,
    Group,
    Image,
    Rect,
    Text,
    bounds,
    dump,
    groups,
    texts,
    walk,
)
from circuitview.figures.text_width import elide, has_glyph, tick_step, width
from circuitview.figures.theme import (
    DARK,
    LIGHT,
    amount_colour,
    contrast,
    diverging,
    hex_colour,
    mix,
    rgb,
    sequential,
    theme,
)


def test_importing_figures_loads_neither_qt_nor_torch() -> None:
    code = (
        "import sys, circuitview.figures.svg, circuitview.figures.heatmap, "
        "circuitview.figures.ov_bars, circuitview.figures.path_table\n"
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('PySide6', 'shiboken6', 'torch', 'transformers', 'transformer_lens', 'PIL')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bounds_of_a_bulging_curve_reach_the_bulge_and_not_the_control_point() -> None:
    curve = Curve((("M", 0, 0), ("C", 0, 40, 30, 40, 30, 0)), stroke="#000000", stroke_width=2)
    assert bounds(curve) == pytest.approx((-1, -1, 31, 31))


def test_bounds_of_a_group_are_cut_by_its_clip() -> None:
    wide = Rect(0, 0, 100, 100, fill="#000000")
    assert bounds(Group((wide,), clip=Rect(90, 90, 50, 50))) == Box(90, 90, 100, 100)
    assert bounds(Group((wide,), clip=Rect(200, 0, 50, 50))) is None
    assert bounds(()) is None


def test_bounds_of_turned_text_stand_upright() -> None:
    flat = bounds(Text(100, 100, "dest", 10, "#000000"))
    turned = bounds(Text(100, 100, "dest", 10, "#000000", rotation=-90))
    assert flat is not None
    assert turned is not None
    assert turned.bottom - turned.top == pytest.approx(flat.right - flat.left)
    assert turned.top < 100 - 10
    assert turned.bottom == pytest.approx(100)


def test_walk_gives_groups_before_what_they_hold() -> None:
    inner = Group((Text(0, 0, "b", 10, "#000000"),), id="inner")
    outer = Group((Text(0, 0, "a", 10, "#000000"), inner), id="outer")
    figure = Figure(10, 10, None, (outer,))
    assert [group.id for group in groups(figure)] == ["outer", "inner"]
    assert texts(figure) == ("a", "b")
    assert len(list(walk(figure))) == 4


def test_dump_shows_place_text_and_nesting() -> None:
    figure = Figure(
        10, 20, None, (Group((Rect(-0.01, 2, 3.25, 4, fill="#ffffff"),), id="x", title="t"),), "T"
    )
    assert dump(figure) == (
        "figure 10 x 20 'T'\n  group x 't'\n    rect 0,2 3.2 x 4 fill #ffffff\n"
    )


def test_image_refuses_a_raster_of_floats() -> None:
    with pytest.raises(ValueError, match="float64"):
        Image(0, 0, 1, 1, np.zeros((2, 2, 4)))


def test_width_of_figures_is_tabular_in_both_weights() -> None:
    for bold in (False, True):
        assert len({width(digit, 10, bold) for digit in "0123456789"}) == 1
        assert width("+", 10, bold) == width("−", 10, bold)
    assert width("mm", 20) == pytest.approx(4 * width("m", 10))
    assert width("日本", 12) == 24
    assert width("e\u0301", 12) == pytest.approx(width("e", 12))


@pytest.mark.parametrize("character", "␣↵⇥␍⟨⟩→−Σ²·×▸▾…↑↓≤±")
def test_bundled_font_has_every_character_that_is_shown(character: str) -> None:
    assert has_glyph(character)


def test_elide_fits_and_keeps_signs_whole() -> None:
    for room in range(0, 120, 3):
        shown = elide("␣internationalization", 12, room)
        assert width(shown, 12) <= room
        assert shown == "" or shown == "␣internationalization" or shown.endswith("…")
    assert elide("short", 12, 100) == "short"
    family = "👩\u200d👩\u200d👧xxxxxxxx"
    assert elide(family, 10, 30) in ("…", "👩\u200d👩\u200d👧…")


def test_tick_step_leaves_each_label_its_room() -> None:
    assert [tick_step(count, 400, 12) for count in (1, 10, 64, 120, 1024)] == [1, 1, 2, 5, 50]
    assert tick_step(3, 0.1, 12) == 5


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=lambda look: look.name)
def test_text_has_aa_contrast_on_every_ground_it_stands_on(look) -> None:
    for ground in (look.background, look.panel, look.lane):
        for colour in (look.text, look.muted, look.positive_text, look.negative_text):
            assert contrast(colour, ground) >= 4.5, (colour, ground)
    assert contrast(look.text, look.selection) >= 4.5
    for fill in (look.positive, look.negative, look.accent, look.node):
        assert contrast(fill, look.background) >= 3.0, fill


def test_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_mix_goes_from_one_colour_to_the_other() -> None:
    assert mix("#000000", "#ff8000", 0) == "#000000"
    assert mix("#000000", "#ff8000", 0.5) == "#804000"
    assert mix("#000000", "#ff8000", 7) == "#ff8000"


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=lambda look: look.name)
def test_colour_maps_obey_the_levels_they_are_given(look) -> None:
    ends = sequential(np.array([-1.0, 0.0, 1.0, 2.0, np.nan]), look)
    assert hex_colour(ends[0]) == hex_colour(ends[1]) == look.attention[0]
    assert hex_colour(ends[2]) == hex_colour(ends[3]) == look.attention[-1]
    assert ends[:, 3].tolist() == [255, 255, 255, 255, 0]
    signed = diverging(np.array([-4.0, 0.0, 4.0]), look, limit=4.0)
    assert hex_colour(signed[0]) == look.signed[0]
    assert hex_colour(signed[2]) == look.signed[-1]
    assert contrast(hex_colour(signed[1]), look.background) < 1.25
    # The same value at other levels has another colour; no value has one by itself.
    assert not np.array_equal(
        diverging(np.array([2.0]), look, 2.0), diverging(2.0, look, 8.0)[None]
    )


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=lambda look: look.name)
def test_signs_are_told_apart_by_red_green_blind_eyes(look) -> None:
    """Blue and orange differ most in the blue-yellow channel, which those eyes keep."""
    for first, second in ((look.positive, look.negative), (look.signed[1], look.signed[-2])):
        one, other = rgb(first), rgb(second)
        yellowness = [(red + green) / 2 - blue for red, green, blue in (one, other)]
        assert abs(yellowness[0] - yellowness[1]) > 120


def test_what_is_written_as_zero_has_no_sign_colour() -> None:
    assert amount_colour("0.00", LIGHT) == LIGHT.muted
    assert amount_colour("−0.01", LIGHT) == LIGHT.negative_text
    assert amount_colour("+0.01", LIGHT) == LIGHT.positive_text


def test_theme_of_another_name_is_refused() -> None:
    assert theme("dark") is DARK
    with pytest.raises(CircuitviewError, match="choose light or dark"):
        theme("blue")
