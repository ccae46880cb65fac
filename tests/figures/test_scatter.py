"""The scatter plot: one scale on both axes, every point inside, labels that do not collide."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from circuitview.figures.figure import Box, Curve, Group, Text, bounds, groups, texts, walk
from circuitview.figures.scatter import (
    ScatterPoint,
    ScatterText,
    fitted,
    scatter_figure,
    scatter_items,
)
from circuitview.figures.theme import LIGHT
from circuitview.figures.ticks import tick_text, tick_values

WORDS = ScatterText("Title", "note", "across", "up", "y = −x")


def cloud(count, seed=0):
    values = np.random.default_rng(seed).normal(scale=3.0, size=(count, 2))
    return [ScatterPoint(f"1.{n}", float(x), float(y)) for n, (x, y) in enumerate(values)]


@pytest.mark.parametrize("size", [(300, 240), (560, 900), (1280, 720)])
@pytest.mark.parametrize("count", [1, 16, 144])
def test_everything_stays_in_bounds(count, size):
    figure = scatter_figure(cloud(count), WORDS, LIGHT, size)
    frame = Box(0, 0, *size)
    assert all(frame.contains(box, 1.0) for item in walk(figure) if (box := bounds(item)))
    assert sum(group.data is not None for group in groups(figure)) == count


def test_both_axes_have_one_scale_and_hold_zero():
    area = Box(10, 20, 410, 220)
    points = cloud(20)
    scale = fitted(points, area)
    assert scale.x(1) - scale.x(0) == pytest.approx(scale.y(0) - scale.y(1))
    assert area.contains(Box(scale.x(0), scale.y(0), scale.x(0), scale.y(0)))
    for point in points:
        assert area.left <= scale.x(point.x) <= area.right
        assert area.top <= scale.y(point.y) <= area.bottom


def test_an_area_without_room_has_a_finite_scale():
    """A plot whose panel is hidden, or not laid out yet."""
    for area in (Box(0, 0, 0, 0), Box(5, 5, 5, 90), Box(5, 5, 90, 5)):
        for alike in (True, False):
            scale = fitted(cloud(3), area, alike)
            assert all(map(math.isfinite, (scale.low_x, scale.low_y, scale.factor)))
            assert scale.factor > 0


def test_the_diagonal_is_where_y_is_minus_x():
    scale = fitted(cloud(20), Box(0, 0, 400, 300))
    items = scatter_items(cloud(20), WORDS, LIGHT, scale)
    dashed = [item for item in walk(items) if isinstance(item, Curve) and item.dash]
    (_, x1, y1), (_, x2, y2) = dashed[0].commands
    assert (y2 - y1) / (x2 - x1) == pytest.approx(1.0)
    assert (scale.y(0) - y1) / (scale.x(0) - x1) == pytest.approx(1.0)


def test_labels_do_not_cover_one_another():
    figure = scatter_figure(cloud(60), WORDS, LIGHT, (500, 400))
    labels = [
        bounds(item) for item in walk(figure) if isinstance(item, Text) and item.text[:2] == "1."
    ]
    assert 10 < len(labels) <= 60
    assert not any(a.overlaps(b) for a, b in itertools.combinations(labels, 2))


@pytest.mark.parametrize("seed", range(4))
def test_the_dot_nearest_to_a_label_is_its_own(seed):
    """Labels stood between the dots of a crowd, and could have been of either."""
    points = cloud(24, seed)
    crowded = [ScatterPoint(p.label, p.x / 4, p.y / 4) for p in points[:16]] + points[16:]
    figure = scatter_figure(crowded, WORDS, LIGHT, (330, 200))
    dots = {group.data: bounds(group) for group in groups(figure) if group.data is not None}
    named = [item for item in walk(figure) if isinstance(item, Text) and item.text in dots]
    assert named
    for label in named:
        box = bounds(label)

        def away(dot, box=box):
            x, y = (dot.left + dot.right) / 2, (dot.top + dot.bottom) / 2
            across = x - min(max(x, box.left), box.right)
            return math.hypot(across, y - min(max(y, box.top), box.bottom))

        nearest = min(dots, key=lambda name: away(dots[name]))
        assert nearest == label.text


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("diagonal", ["effect = −contribution", ""])
def test_no_line_strikes_a_label_through_and_the_diagonals_name_stands_clear(seed, diagonal):
    points = [
        replace(point, label=f"token > 0.{n} > 1.4", y=-point.x + point.y / 8)
        for n, point in enumerate(cloud(20, seed))
    ]
    area = Box(60, 10, 560, 410)
    scale = fitted(points, area, bool(diagonal))
    words = replace(WORDS, diagonal=diagonal)
    items = list(walk(scatter_items(points, words, LIGHT, scale)))
    labels = [item for item in items if isinstance(item, Text) and item.text.startswith("token")]
    assert len(labels) >= 4
    for label in labels:
        box = bounds(label)
        top = label.y - 0.7 * label.size
        assert not box.left < scale.x(0) < box.right, label
        assert not top < scale.y(0) < label.y, label
        if diagonal:
            corners = itertools.product((box.left, box.right), (top, label.y))
            sides = {x - scale.x(0) > y - scale.y(0) for x, y in corners}
            assert len(sides) == 1, label
    named = [item for item in items if isinstance(item, Text) and item.text == diagonal]
    for name in named if diagonal else ():
        # Small squares along the slanting letters, cornered at their baseline.
        half = bounds(replace(name, rotation=0.0)).right - name.x
        along = np.linspace(-half, half, 40) / math.sqrt(2)
        inked = [Box(name.x + t, name.y + t - 7, name.x + t + 7, name.y + t) for t in along]
        others = [bounds(label) for label in labels]
        others += [bounds(item) for item in items if isinstance(item, Group) and item.data]
        assert not any(one.overlaps(other) for one in inked for other in others)


def test_no_label_covers_where_the_zero_lines_cross():
    for x, y in itertools.product((-0.5, 0.0, 0.5), repeat=2):
        points = [ScatterPoint("0.0", x, y), ScatterPoint("9.9", 5.0, -5.0)]
        scale = fitted(points, Box(60, 10, 300, 160))
        items = list(scatter_items(points, WORDS, LIGHT, scale))
        crossing = Box(scale.x(0) - 1, scale.y(0) - 1, scale.x(0) + 1, scale.y(0) + 1)
        labels = [item for item in items if isinstance(item, Text) and item.text == "0.0"]
        assert not any(bounds(label).overlaps(crossing) for label in labels)


@pytest.mark.parametrize("high", [0.9, 1.9, 4.9, 30.0])
def test_an_axis_has_two_ticks_however_short(high):
    scale = fitted([ScatterPoint("0.0", high, -high)], Box(60, 10, 150, 300), alike=False)
    figure = [*scatter_items([ScatterPoint("0.0", high, -high)], WORDS, LIGHT, scale)]
    under = {item.y for item in figure if isinstance(item, Text) and item.text == "across"}
    ticks = [i for i in figure if isinstance(i, Text) and i.y == min(under) - 20]
    assert len(ticks) >= 2
    boxes = sorted(bounds(tick) for tick in ticks)
    assert all(one.right < other.left for one, other in itertools.pairwise(boxes))


def test_what_is_marked_is_named_even_in_a_crowd():
    crowd = [ScatterPoint(f"1.{n}", 1.0, 1.0, marked=n == 7) for n in range(12)]
    figure = scatter_figure(crowd, WORDS, LIGHT, (300, 260))
    assert "1.7" in texts(figure)
    rings = next(group for group in groups(figure) if group.data == "1.7").items
    assert len(rings) == 2


def test_points_that_are_all_zero_or_undefined_are_survived():
    zero = [ScatterPoint("0.0", 0.0, 0.0)]
    assert "0.0" in texts(scatter_figure(zero, WORDS, LIGHT, (400, 300)))
    undefined = [ScatterPoint("0.0", math.nan, 1.0)]
    assert "nothing measured yet" in texts(scatter_figure(undefined, WORDS, LIGHT, (400, 300)))


def test_what_is_out_of_view_is_left_out():
    scale = fitted([ScatterPoint("near", 1, 1)], Box(0, 0, 200, 200))
    points = [ScatterPoint("near", 1, 1), ScatterPoint("far", 50, 50)]
    shown = [item.data for item in scatter_items(points, WORDS, LIGHT, scale) if _is_dot(item)]
    assert shown == ["near"]


def test_ticks_are_round_and_written_alike():
    ticks = tick_values(-0.31, 0.52, 600)
    assert [tick_text(tick, ticks) for tick in ticks] == [
        "−0.3",
        "−0.2",
        "−0.1",
        "0.0",
        "0.1",
        "0.2",
        "0.3",
        "0.4",
        "0.5",
    ]
    large = tick_values(-20, 35, 400)
    assert [tick_text(tick, large) for tick in large][:3] == ["−20", "−10", "0"]


def _is_dot(item):
    return isinstance(item, Group) and item.data is not None


def test_labels_keep_off_error_bars_and_points_near_zero_of_many_have_none():
    points = [ScatterPoint(point.label, point.x, point.y, error=0.4) for point in cloud(12, seed=3)]
    figure = scatter_figure(points, WORDS, LIGHT, (700, 500))
    bars = [bounds(group) for group in groups(figure) if (group.id or "").startswith("error-")]
    assert len(bars) == 12
    narrow = [Box(box.left + 3, box.top, box.right - 3, box.bottom) for box in bars]
    labels = [
        bounds(item) for item in walk(figure) if isinstance(item, Text) and item.text[:2] == "1."
    ]
    assert not any(label.overlaps(bar) for label in labels for bar in narrow)
    many = [ScatterPoint(f"1.{n}", 0.001 * n, 0.0) for n in range(30)]
    far = ScatterPoint("1.99", 5.0, 5.0)
    named = texts(scatter_figure([*many, far], WORDS, LIGHT, (500, 400)))
    assert [text for text in named if text.startswith("1.") and text != "1.0"] == ["1.99"]


def test_error_bars_lie_inside_the_axes_and_are_cut_to_what_is_in_view():
    area = Box(0, 0, 400, 300)
    points = [ScatterPoint("a", 1.0, 1.0, error=5.0)]
    scale = fitted(points, area)
    assert area.top < scale.y(6.0) < scale.y(-4.0) < area.bottom
    near = fitted([ScatterPoint("a", 1.0, 1.0)], area)
    group = next(
        item
        for item in scatter_items(points, WORDS, LIGHT, near)
        if isinstance(item, Group) and item.id == "error-a"
    )
    assert area.contains(bounds(group), slack=1)


def test_two_units_have_a_scale_each_and_no_diagonal():
    area = Box(0, 0, 400, 300)
    points = [ScatterPoint("a", 10.0, 0.01), ScatterPoint("b", -10.0, -0.01)]
    scale = fitted(points, area, alike=False)
    assert scale.x(10) - scale.x(-10) == pytest.approx(0.84 * 400)
    assert scale.y(-0.01) - scale.y(0.01) == pytest.approx(0.84 * 300)
    words = ScatterText("", "", "x", "y", "")
    items = list(walk(scatter_items(points, words, LIGHT, scale)))
    assert not any(isinstance(item, Curve) and item.dash for item in items)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-1e6, 2e6, ["−1.0e6", "−5e5", "0"]), (0.0, 4e-9, ["0", "1e-9", "2e-9"])],
)
def test_very_large_and_very_small_ticks_are_short(low, high, expected):
    ticks = tick_values(low, high, 350)
    assert [tick_text(tick, ticks) for tick in ticks][:3] == expected
