"""Heatmaps: orientation, mask, levels, labels, and long prompts."""

import numpy as np
import pytest

from circuitview.core.names import CircuitviewError
from circuitview.figures.figure import (
    Box,
    Figure,
    Group,
    Image,
    Rect,
    Text,
    bounds,
    groups,
    texts,
    walk,
)
from circuitview.figures.heatmap import Cells, heatmap_figure
from circuitview.figures.theme import DARK, LIGHT, diverging, hex_colour, sequential

WORDS = ["BOS", "I", "␣like", "␣green", "␣tea", ",", "␣so", "␣I", "␣drink", "␣green"]


def drawn(values, labels=None, mode="pattern", size=(460, 500), **more) -> Figure:
    values = np.asarray(values, dtype=np.float32)
    labels = labels or [WORDS[place % 10] for place in range(len(values))]
    return heatmap_figure(
        values,
        labels,
        title="Head 1.4",
        subtitle="attention pattern",
        mode=mode,
        theme=more.pop("theme", LIGHT),
        width=size[0],
        height=size[1],
        **more,
    )


def named(figure: Figure, name: str) -> Group:
    return next(group for group in groups(figure) if group.id == name)


def raster(figure: Figure) -> Image:
    return next(item for item in named(figure, "cells").items if isinstance(item, Image))


def pattern(count: int) -> np.ndarray:
    weights = np.tril(np.random.default_rng(count).random((count, count)) ** 6 + 1e-6)
    return weights / weights.sum(1, keepdims=True)


def test_dest_runs_downwards_and_src_to_the_right() -> None:
    values = np.zeros((4, 4))
    values[3, 1] = 1.0  # dest 3 looks at src 1
    rgba = raster(drawn(values)).rgba
    assert hex_colour(rgba[3, 1]) == LIGHT.attention[-1]
    assert hex_colour(rgba[2, 1]) == LIGHT.attention[0]


def test_the_future_is_transparent_and_the_rest_is_not() -> None:
    values = pattern(12)
    values[0, 5] = np.nan
    alpha = raster(drawn(values)).rgba[:, :, 3]
    assert np.array_equal(alpha == 255, np.tril(np.ones((12, 12), bool)))


def test_pattern_levels_do_not_depend_on_the_values() -> None:
    rgba = raster(drawn(np.full((6, 6), 0.25))).rgba
    assert np.array_equal(rgba[5, 0], sequential(0.25, LIGHT))


def test_value_weighted_runs_from_nothing_to_its_largest_and_is_blind_to_the_future() -> None:
    values = np.zeros((6, 6))
    values[5, 0], values[4, 1], values[0, 5] = 4.0, 1.0, 1e9
    figure = drawn(values, mode="value-weighted")
    rgba = raster(figure).rgba
    assert np.array_equal(rgba[5, 0], sequential(1.0, LIGHT))
    assert np.array_equal(rgba[4, 1], sequential(0.25, LIGHT))
    assert {"4.00", "0"} <= set(texts(named(figure, "colour-bar").items))


def test_signed_levels_are_symmetric_and_blind_to_the_future() -> None:
    values = np.zeros((6, 6))
    values[5, 0], values[4, 1], values[0, 5] = -2.0, 1.0, 1e9
    figure = drawn(values, mode="scores", theme=DARK)
    rgba = raster(figure).rgba
    assert hex_colour(rgba[5, 0]) == DARK.signed[0]
    assert np.array_equal(rgba[4, 1], diverging(1.0, DARK, 2.0))
    assert {"+2.00", "0", "−2.00"} <= set(texts(named(figure, "colour-bar").items))


def test_axes_are_called_dest_and_src_and_the_bar_has_a_unit() -> None:
    figure = drawn(pattern(10))
    assert "dest" in texts(named(figure, "dest-axis").items)
    assert "src" in texts(named(figure, "src-axis").items)
    assert "weight" in texts(named(figure, "colour-bar").items)
    scored = drawn(pattern(10), mode="value-weighted")
    assert "norm" in texts(named(scored, "colour-bar").items)


def test_every_token_is_labelled_where_there_is_room() -> None:
    figure = drawn(pattern(10))
    assert list(texts(named(figure, "dest-axis").items))[:10] == WORDS
    assert list(texts(named(figure, "src-axis").items))[:10] == WORDS


@pytest.mark.parametrize("side", [360, 420, 500, 640])
def test_short_labels_are_not_cut_for_the_position_in_front_of_them(side) -> None:
    figure = drawn(np.eye(21), [f"w{place}" for place in range(21)], size=(2 * side, side))
    assert not [text for text in texts(figure) if "…" in text]


def test_numbers_stand_in_the_cells_of_their_values() -> None:
    values = np.zeros((4, 4))
    values[3, 1], values[2, 0] = 0.37, 0.81
    figure = drawn(values)
    cells = named(figure, "cells")
    where = {
        item.text: cells.data.at(item.x, item.y) for item in cells.items if isinstance(item, Text)
    }
    assert where["0.37"] == (3, 1)
    assert where["0.81"] == (2, 0)


def test_dest_is_outlined_and_source_marked_in_it() -> None:
    figure = drawn(pattern(10), dest=9, source=4)
    cells = named(figure, "cells")
    row, cell = (item for item in cells.items if isinstance(item, Rect))
    assert cells.data.at(row.x + 1, row.y + 1) == (9, 0)
    assert row.width == pytest.approx(10 * cells.data.side)
    assert cells.data.at(cell.x + cell.width / 2, cell.y + cell.height / 2) == (9, 4)
    bold = [item.text for item in walk(figure) if isinstance(item, Text) and item.bold]
    assert bold == ["Head 1.4", "␣green", "dest", "␣tea", "src"]


def test_cells_know_which_one_is_pointed_at() -> None:
    cells = Cells(left=10, top=20, side=5, count=4)
    assert cells.at(11, 39) == (3, 0)
    assert cells.at(21, 39) == (3, 2)
    assert cells.at(29, 21) is None  # the future
    assert cells.at(9, 21) is None


@pytest.mark.parametrize("size", [(460, 500), (300, 300), (700, 420)])
@pytest.mark.parametrize("count", [1, 3, 10, 64, 120, 1024])
@pytest.mark.parametrize("dest", [None, -1])
def test_labels_stay_inside_and_apart(count, size, dest) -> None:
    labels = [
        WORDS[place % 10] if place % 17 else "␣internationalization" for place in range(count)
    ]
    figure = drawn(pattern(count), labels, size=size, dest=dest and count - 1, source=count // 3)
    paper = Box(0, 0, *size)
    for item in walk(figure):
        box = bounds(item)
        if box is not None:
            assert paper.contains(box, slack=3), item
    axis = [item for item in named(figure, "dest-axis").items if isinstance(item, Text)]
    baselines = [item.y for item in axis if item.anchor == "end"]
    assert np.diff(baselines).min(initial=99) >= 11
    slanted = [item.x for item in named(figure, "src-axis").items if getattr(item, "rotation", 0)]
    assert np.diff(slanted).min(initial=99) >= 15
    plot = bounds(named(figure, "cells"))
    for label in (item for item in axis if item.anchor == "end"):
        assert bounds(label).right < plot.left + 1


def test_the_colour_bar_stands_clear_of_the_cells() -> None:
    for count in (1, 3, 6, 10, 64):
        figure = drawn(pattern(count))
        cells: Cells = named(figure, "cells").data
        bar = bounds(named(figure, "colour-bar"))
        assert cells.at(bar.left, bar.bottom) is None
        assert cells.at(bar.left, bar.top) is None


def test_a_long_prompt_is_one_small_raster_that_keeps_single_strong_cells() -> None:
    values = np.zeros((1024, 1024))
    values[700, 33] = 1.0
    figure = drawn(values)
    image = raster(figure)
    assert sum(1 for _ in walk(figure)) < 200
    cells: Cells = named(figure, "cells").data
    strong = np.argwhere((image.rgba[:, :, :3] == sequential(1.0, LIGHT)[:3]).all(axis=2))
    assert len(strong) == 1
    block_high = image.height / len(image.rgba)
    y = image.y + (strong[0][0] + 0.5) * block_high
    x = image.x + (strong[0][1] + 0.5) * block_high
    dest, src = cells.at(x, y)
    assert abs(dest - 700) <= 4
    assert abs(src - 33) <= 4
    assert any("strongest of" in text for text in texts(figure))


def test_labels_that_do_not_match_the_values_are_refused() -> None:
    with pytest.raises(CircuitviewError, match=r"values are \[3, 3\], labels are 2"):
        drawn(np.zeros((3, 3)), ["a", "b"])


def test_difference_has_colours_on_both_sides_of_zero_and_says_their_ends() -> None:
    values = np.zeros((6, 6))
    values[4, 1], values[4, 2], values[1, 4] = 0.3, -0.15, 9.0  # the last is in the future
    figure = drawn(values, difference=True)
    rgba = raster(figure).rgba
    assert hex_colour(rgba[4, 1]) == LIGHT.signed[-1]
    assert rgba[4, 2].tolist() == diverging(-0.15, LIGHT, 0.3).tolist()
    assert rgba[0, 0].tolist() == diverging(0.0, LIGHT, 1.0).tolist()
    bar = texts(Figure(1, 1, None, (named(figure, "colour-bar"),)))
    assert list(bar) == ["+0.30", "0", "−0.30", "weight"]


def test_rounding_between_equal_prompts_does_not_look_like_a_change() -> None:
    values = np.tril(np.full((6, 6), 1e-7))
    rgba = raster(drawn(values, difference=True)).rgba
    assert rgba[3, 2].tolist() == diverging(0.0, LIGHT, 1.0).tolist()
