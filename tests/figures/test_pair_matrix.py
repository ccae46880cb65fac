"""Pairs of heads: one cell a pair, symmetric levels, interactions from three effects."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.figures.figure import Image, Rect, Text, bounds, groups, texts, walk
from circuitview.figures.pair_axes import Place, pair_axes
from circuitview.figures.pair_grid import pair_grid
from circuitview.figures.pair_matrix import pair_figure
from circuitview.figures.theme import DARK, LIGHT, contrast, diverging, hex_colour
from tests.figures.lab_rows import EXTREMES, SIZES, pair_rows, require_sound


def drawn(rows, size=(1280, 720), theme=LIGHT, metric="logit", show="effect", **more):
    return pair_figure(
        rows,
        metric=metric,
        clean=6.14,
        frozen=False,
        theme=theme,
        width=size[0],
        height=size[1],
        show=show,
        title="Pairs of heads removed",
        note="a model, a prompt",
        **more,
    )


def cell(figure, site):
    return next(group for group in groups(figure) if group.data == Site.parse(site))


def by_site(rows):
    return {str(row.site): row for row in rows}


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("show", ["effect", "interaction"])
@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("size", SIZES)
def test_pair_figure_is_sound_at_every_size_for_all_values(size, kind, show, theme):
    for n_heads in (1, 4, 8):
        figure = drawn(pair_rows(2, n_heads, kind=kind), size, theme, show=show)
        require_sound(figure, size)


@pytest.mark.parametrize("size", SIZES)
def test_key_and_lists_stand_clear_of_the_cells(size):
    for n_heads in (2, 4, 8):
        figure = drawn(pair_rows(2, n_heads), size)
        squares = [group for group in groups(figure) if group.data is not None]
        corners = [
            next(item for item in group.items if isinstance(item, Rect)) for group in squares
        ]
        for group in groups(figure):
            if group.id not in ("colour-bar", "largest"):
                continue
            for item in group.items:
                if not isinstance(item, Image | Text):
                    continue
                top = item.y - (0.8 * item.size if isinstance(item, Text) else 0)
                bottom = item.y if isinstance(item, Text) else item.y + item.height
                left = item.x - (200 if isinstance(item, Text) and item.anchor == "end" else 0)
                met = [
                    square
                    for square in corners
                    if square.x + square.width > left
                    and square.y < bottom
                    and square.y + square.height > top
                ]
                assert not met or left < item.x, (item, met)


@pytest.mark.parametrize("size", [(345, 215), (260, 215), (345, 400)])
def test_in_little_room_the_key_gives_up_words_before_the_cells_vanish(size):
    """Cells of half a pixel stood under three lines of words."""
    figure = drawn(pair_rows(2, 4), size)
    square = cell(figure, "0.1 + 1.2").items[0]
    assert square.width * 8 > 0.3 * min(size)  # half of what a picture of cells alone has
    assert any(group.id == "colour-bar" for group in groups(figure))
    require_sound(figure, size)


@pytest.mark.parametrize("count", [24, 48])
@pytest.mark.parametrize("size", [(960, 540), (345, 215), (420, 260)], ids=str)
def test_all_heads_are_named_or_whole_layers_and_never_every_fifth(count, size):
    figure = drawn(pair_rows(2, count // 2), size)
    layers = 0
    for name in ("heads-down", "heads-across"):
        axis = next(group for group in groups(figure) if group.id == name)
        if len(shown := texts(axis.items)) < count:
            assert shown in (("layer 0", "layer 1"), ("L0", "L1"))
            layers += 1
        labels = [bounds(item) for item in axis.items if isinstance(item, Text)]
        met = [pair for pair in itertools.combinations(labels, 2) if pair[0].overlaps(pair[1])]
        # Lines of text may touch: letters are lower than their line.
        assert len(shown) == count or not met
    assert layers == (0 if count == 24 and size == (960, 540) else 2)
    require_sound(figure, size)


def test_of_many_layers_the_names_stand_clear_of_one_another():
    heads = [Head(layer, head) for layer in range(30) for head in range(3)]
    place = Place(60.0, 10.0, 1.5, 1.5, (0.0, 0.0, 0.0))
    down, across = pair_axes(heads, place, LIGHT)
    for axis in (down, across):
        labels = [bounds(item) for item in axis.items if isinstance(item, Text)]
        assert 4 < len(labels) < 30
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(labels))


def test_cells_use_the_width_beside_them_and_have_their_numbers():
    figure = drawn(pair_rows(2, 8), (1280, 720))
    square = cell(figure, "0.1 + 1.2")
    assert square.items[0].width > 1.3 * square.items[0].height
    assert isinstance(square.items[-1], Text)
    right = max(box.right for item in walk(figure) if (box := bounds(item)) is not None)
    assert right > 0.85 * 1280


def test_each_pair_has_one_cell_below_the_diagonal_and_each_head_one_on_it():
    figure = drawn(pair_rows())
    sites = [group.data for group in groups(figure) if group.data is not None]
    assert len(sites) == len(set(sites)) == 8 * 9 / 2
    pair, alone = cell(figure, "0.1 + 1.2").items[0], cell(figure, "0.1").items[0]
    other = cell(figure, "1.2").items[0]
    assert pair.x == pytest.approx(alone.x)
    assert pair.y == pytest.approx(other.y)
    assert pair.y > alone.y


def test_interaction_is_both_minus_one_minus_the_other():
    rows = pair_rows()
    known = by_site(rows)
    grid = pair_grid(rows, "logit", "interaction")
    assert len(grid.heads) == 8
    cells = [grid.cell(i, j) for i in range(8) for j in range(i + 1)]
    assert None not in cells
    for found in cells:
        if len(found.site.heads) == 2:
            one, other = found.site.heads
            expected = known[str(found.site)].effect
            expected -= known[str(one)].effect + known[str(other)].effect
            assert found.value == pytest.approx(expected)
        else:
            assert found.value == known[str(found.site)].effect


def test_levels_are_symmetric_and_an_interaction_has_its_own():
    rows = pair_rows()
    figure = drawn(rows)
    largest = max(abs(row.effect) for row in rows)
    row = by_site(rows)["0.1 + 1.2"]
    expected = hex_colour(diverging(row.effect, LIGHT, largest))
    assert cell(figure, "0.1 + 1.2").items[0].fill == expected
    bar = next(group for group in groups(figure) if group.id == "colour-bar")
    assert {f"+{largest:.2f}", "0", f"−{largest:.2f}"} <= set(texts(bar.items))
    grid = pair_grid(rows, "logit", "interaction")
    between = max(abs(grid.cell(i, j).value) for i in range(8) for j in range(i))
    assert f"+{between:.2f}" in texts(drawn(rows, show="interaction"))


def test_the_colour_bar_runs_from_what_raises_to_what_lowers():
    image = next(item for item in walk(drawn(pair_rows())) if isinstance(item, Image))
    assert hex_colour(image.rgba[0, 0]) == LIGHT.signed[-1]
    assert hex_colour(image.rgba[-1, 0]) == LIGHT.signed[0]


def test_an_interaction_without_both_singles_is_left_uncoloured():
    rows = [row for row in pair_rows() if str(row.site) != "0.1"]
    figure = drawn(rows, show="interaction")
    assert cell(figure, "0.1 + 1.2").items[0].fill == LIGHT.panel
    assert "interaction" not in cell(figure, "0.1 + 1.2").title
    assert cell(figure, "0.2 + 1.2").items[0].fill != LIGHT.panel


def test_what_is_not_measured_yet_is_empty_and_cannot_be_pointed_at():
    rows = pair_rows()[:10]  # eight heads alone, then two pairs
    figure = drawn(rows)
    assert sum(group.data is not None for group in groups(figure)) == 10
    require_sound(figure, (1280, 720))
    assert "nothing measured yet" in texts(drawn([]))


def test_cells_say_their_numbers_and_the_marked_one_is_outlined():
    rows = pair_rows()
    row = by_site(rows)["0.1 + 1.2"]
    title = cell(drawn(rows), "0.1 + 1.2").title
    assert title.startswith("0.1 + 1.2: effect ")
    assert f"± {row.stderr:.2f}, interaction " in title
    outlined = drawn(rows, marked=row.site)
    frames = [
        item for item in walk(outlined) if isinstance(item, Rect) and item.stroke == LIGHT.accent
    ]
    assert len(frames) == 1
    square = cell(outlined, "0.1 + 1.2").items[0]
    assert frames[0].x + frames[0].width / 2 == pytest.approx(square.x + square.width / 2)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_numbers_can_be_read_on_their_cells(theme):
    figure = drawn(pair_rows(1, 6), theme=theme)
    checked = 0
    for group in groups(figure):
        if group.data is not None:
            fill, text = group.items[0].fill, group.items[-1]
            assert isinstance(text, Text)
            # The middle of a colour's way leaves either ink 3 to 1; large cells need no more.
            assert contrast(fill, text.color) >= 3
            checked += 1
    assert checked == 21


def test_the_largest_pairs_are_named_beside_the_cells():
    rows = pair_rows()
    pairs = sorted((r for r in rows if len(r.site.heads) == 2), key=lambda r: -abs(r.effect))
    largest = next(group for group in groups(drawn(rows)) if group.id == "largest")
    assert texts(largest.items)[1::2][:3] == tuple(str(row.site) for row in pairs[:3])


def test_sites_that_are_no_heads_are_left_out():
    rows = [*pair_rows(), replace(pair_rows()[0], site=Site.parse("token > 0.3"))]
    grid = pair_grid(rows, "logit", "effect")
    assert (len(grid.heads), len(grid.rows)) == (8, 36)
    assert np.isfinite(grid.effects[np.tril_indices(8)]).all()


def test_many_heads_are_one_image_that_knows_its_cells():
    rows = pair_rows(2, 20)
    for show in ("effect", "interaction"):
        figure = drawn(rows, show=show, marked=Site.parse("0.3 + 1.2"))
        (pairs,) = (group for group in groups(figure) if group.id == "pairs")
        (image,) = pairs.items
        assert image.rgba.shape == (40, 40, 4)
        assert not image.rgba[3, 22].any()  # above the diagonal there is nothing
        grid, few = pairs.data, pair_grid(rows, "logit", show)
        cell = grid.at(3.5 / 40, 22.5 / 40)
        assert cell.site == Site.parse("0.3 + 1.2")
        assert cell == few.cell(22, 3)
        assert grid.at(22.5 / 40, 3.5 / 40) is None
        expected = hex_colour(diverging(cell.value, LIGHT, grid.limit))
        assert hex_colour(image.rgba[22, 3]) == expected
        outlined = [item for item in walk(figure) if isinstance(item, Rect) and item.stroke]
        assert any(item.stroke == LIGHT.accent for item in outlined)
        require_sound(figure, (1280, 720))


def test_what_is_not_measured_of_many_heads_has_the_colour_of_nothing():
    figure = drawn(pair_rows(2, 20)[:41])  # forty alone, one pair
    (pairs,) = (group for group in groups(figure) if group.id == "pairs")
    rgba = pairs.items[0].rgba
    assert hex_colour(rgba[30, 2]) == LIGHT.panel
    assert pairs.data.cell(30, 2) is None
    assert pairs.data.cell(1, 0).site == Site.parse("0.0 + 0.1")
