"""The lab's pictures in no room at all: a dock can be pulled to a few pixels while Qt paints."""

import math

import pytest

from circuitview.figures.ablation import lab_figure
from circuitview.figures.effect_bars import effect_bars_figure
from circuitview.figures.figure import bounds, walk
from circuitview.figures.order_bars import order_figure
from circuitview.figures.pair_matrix import pair_figure
from circuitview.figures.svg import svg
from circuitview.figures.theme import LIGHT
from tests.figures.lab_rows import head_rows, order_rows, pair_rows

SIDES = (1, 2, 5, 12, 30, 60, 61, 90, 119, 140, 200, 300)
WORDS = ("", "Each head · zero · free")


def orders(size, title):
    rows = order_rows([8.0, 3.5, -3.25])
    return order_figure(
        rows, metric="loss", clean=3.2, theme=LIGHT, title=title, note=title, **size
    )


def orders_of_one(size, title):
    rows = order_rows([0.0], errors=False)
    return order_figure(rows, metric="logit", clean=0.0, theme=LIGHT, title=title, **size)


def pairs(size, title):
    return _pairs(pair_rows(), size, title)


def many_pairs(size, title):
    return _pairs(pair_rows(2, 20), size, title)


def _pairs(rows, size, title):
    asked = {"metric": "logit", "clean": 1.0, "frozen": False, "theme": LIGHT}
    return pair_figure(rows, show="interaction", title=title, note=title, **asked, **size)


def bars(size, title):
    rows = head_rows(contributions=False)
    asked = {"metric": "loss", "frozen": True, "theme": LIGHT}
    return effect_bars_figure(rows, title=title, note=title, **asked, **size)


def lab(size, title):
    asked = {"metric": "logit", "clean": 1.0, "frozen": False, "theme": LIGHT}
    return lab_figure(head_rows(), title=title, note=title, **asked, **size)


@pytest.mark.parametrize("title", WORDS)
@pytest.mark.parametrize("draw", [orders, orders_of_one, pairs, many_pairs, bars, lab])
def test_a_picture_of_the_lab_is_made_in_any_room(draw, title):
    """A bar chart without height raised "math domain error"."""
    for width in SIDES:
        for height in SIDES:
            figure = draw({"width": float(width), "height": float(height)}, title)
            assert (figure.width, figure.height) == pytest.approx((width, height))
            for item in walk(figure):
                box = bounds(item)
                assert box is None or all(map(math.isfinite, box)), (width, height, item)
                sides = [getattr(item, side, 0.0) for side in ("width", "height", "size")]
                assert min(sides) >= 0, (width, height, item)
            assert "</svg>" in svg(figure)
