"""An enlarged figure is the same picture: every box grows by the factor, nothing else changes."""

import numpy as np
import pytest

from circuitview.figures.enlarge import enlarged, enlargement
from circuitview.figures.figure import Curve, Figure, Group, Image, Rect, Text, bounds, texts, walk

SMALL = Figure(
    200,
    100,
    "#ffffff",
    (
        Rect(10, 10, 50, 20, stroke="#000000", stroke_width=2, radius=4, dash=(3, 1)),
        Group(
            (
                Curve((("M", 0, 0), ("C", 5, 0, 10, 8, 20, 30), ("Z",)), stroke="#ff0000"),
                Text(30, 60, "␣tea", 12, "#000000"),
                Image(70, 20, 40, 40, np.zeros((2, 2, 4), np.uint8)),
            ),
            id="group",
            clip=Rect(0, 0, 150, 90),
        ),
    ),
    title="a picture",
)


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
def test_every_box_grows_by_the_factor(factor):
    large = enlarged(SMALL, factor)
    assert (large.width, large.height) == (200 * factor, 100 * factor)
    assert texts(large) == texts(SMALL)
    before, after = list(walk(SMALL)), list(walk(large))
    assert len(before) == len(after) == 5
    for one, other in zip(before, after, strict=True):
        assert bounds(other) == pytest.approx([side * factor for side in bounds(one)])


def test_strokes_dashes_and_clips_grow_too():
    rect, group, curve, *_ = walk(enlarged(SMALL, 2.0))
    assert (rect.stroke_width, rect.radius, rect.dash) == (4, 8, (6, 2))
    assert (group.clip.width, group.clip.height) == (300, 180)
    assert curve.stroke_width == 2


def test_small_pictures_are_never_shrunk():
    assert enlargement(400, 300) == 1.0
    assert enlargement(1900, 1070) == pytest.approx(2.0)
