"""Rows as the lab finds them, made up; and what must hold for every picture of them."""

import itertools
import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from circuitview.core.ablation.sites import Site, each_pair
from circuitview.core.ablation.table import OrderRow, Row
from circuitview.core.names import Head
from circuitview.figures.figure import Box, Figure, Text, bounds, walk
from circuitview.figures.svg import svg

SIZES = [(640, 360), (420, 640), (960, 540), (1280, 720), (1920, 1080)]
EXTREMES = {
    "usual": lambda draw: draw,
    "huge": lambda draw: draw * 1e6,
    "tiny": lambda draw: draw * 1e-9,
    "zero": lambda draw: draw * 0,
    "equal": lambda draw: draw * 0 + 2.5,
    "one side": lambda draw: -abs(draw) - 0.1,
}


def heads(n_layers, n_heads):
    return [Head(layer, head) for layer in range(n_layers) for head in range(n_heads)]


def some_rows(sites, kind="usual", errors=True, contributions=True, seed=0):
    draws = EXTREMES[kind](np.random.default_rng(seed).normal(size=(len(sites), 2)))
    return [
        Row(
            site,
            float(-effect + off) if contributions else None,
            float(4 + effect),
            float(effect),
            float(abs(off) / 3) if errors else None,
            20 if errors else 1,
        )
        for site, (effect, off) in zip(sites, draws, strict=True)
    ]


def head_rows(n_layers=2, n_heads=8, **more):
    return some_rows([Site(heads=(head,)) for head in heads(n_layers, n_heads)], **more)


def pair_rows(n_layers=2, n_heads=4, **more):
    return some_rows(list(each_pair(heads(n_layers, n_heads))), **more)


def order_rows(values, errors=True):
    rows = []
    for order, value in enumerate(values):
        marginal = value - values[order - 1] if order else None
        error = abs(value) / 50 if errors else None
        marginal_error = error if order else None
        rows.append(
            OrderRow(order, None, value, value - values[-1], error, marginal, marginal_error, 20)
        )
    return rows


def require_sound(figure: Figure, size) -> None:
    """Everything on the paper, no words over others, and a file that can be written."""
    assert (figure.width, figure.height) == (round(size[0]), round(size[1]))
    for item in walk(figure):
        box = bounds(item)
        assert box is None or Box(0, 0, *size).contains(box, slack=1), item
    words = [item for item in walk(figure) if isinstance(item, Text) and item.text]
    for one, other in itertools.combinations(words, 2):
        met = itertools.product(letters(one), letters(other))
        assert not any(box.overlaps(another) for box, another in met), (one, other)
    assert {text.text for text in words} <= set(ET.fromstring(svg(figure)).itertext())


def letters(text: Text) -> list[Box]:
    """About where the letters of a text are: without what accents and descenders might take; of a
    slanting one small boxes along it."""
    box, up, down = bounds(text), 0.24 * text.size, 0.2 * text.size
    if text.rotation == 45:
        assert text.anchor == "middle"
        flat, cap = bounds(replace(text, rotation=0.0)), 0.5 * text.size
        along = np.linspace(flat.left - text.x, flat.right - text.x, 40) / math.sqrt(2)
        return [
            Box(text.x + t, text.y + t - cap, text.x + t + cap, text.y + t) for t in along.tolist()
        ]
    if text.rotation:
        return [Box(box.left + up, box.top + 1, box.right - down, box.bottom - 1)]
    return [Box(box.left, box.top + up, box.right, box.bottom - down)]
