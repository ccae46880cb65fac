"""The diagram of a deep model in a small room: the grid comes first, other things give way."""

import itertools
from dataclasses import replace

import pytest

from circuitview.core.names import TOKEN, Head
from circuitview.core.path import Path
from circuitview.figures.diagram import Diagram
from circuitview.figures.diagram.geometry import SourceToken
from circuitview.figures.figure import groups, texts
from circuitview.figures.theme import LIGHT
from circuitview.session.numbers import logits
from circuitview.session.state import Selection
from circuitview.session.tokens import token_contributions
from tests.figures.diagram_words import require_apart, word_boxes
from tests.figures.test_diagram_grid import CLOSE, WITH_MLPS, shaped
from tests.tiny_models import Tiny

SMALL = [(452, 380), (640, 460), (780, 540), (1440, 810)]


@pytest.fixture(scope="module", params=[(12, 12), (30, 9)], ids=["12x12", "30x9"])
def shape(request) -> Tiny:
    layers, heads = request.param
    return replace(WITH_MLPS, n_layers=layers, n_heads=heads, d_model=8, d_head=1, d_mlp=2)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("through_mlps", [False, True])
@pytest.mark.parametrize("n", [6, 18])
def test_the_grid_keeps_its_share_of_the_width_and_words_stay_apart(shape, size, through_mlps, n):
    """The tokens and the remainder's words left a grid a quarter of the width, or nothing."""
    diagram = Diagram(
        shaped(shape, through_mlps, n), theme=LIGHT, width=size[0], height=size[1], floor=0.02
    )
    xs = [column.x for column in diagram.layout.columns]
    assert (xs[-1] - xs[1]) / size[0] >= (0.6 if size[0] >= 560 else 0.55)
    assert xs == sorted(xs)
    figure = diagram.picture(Selection()).figure
    assert sum("paths" in text for text in texts(figure) if "10" in text or text[0].isdigit()) == 1
    require_apart(figure)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("through_mlps", [False, True])
def test_no_band_passes_the_names_of_the_rows(shape, size, through_mlps):
    diagram = Diagram(shaped(shape, through_mlps), theme=LIGHT, width=size[0], height=size[1])
    figure = diagram.picture(Selection()).figure
    names = [box for text, box in word_boxes(figure) if text in ("head 0", "1", "2", "3", "mlp")]
    first = diagram.layout.columns[1].x
    rows = [box for box in names if box.right < first and box.top > diagram.layout.lane[1] + 20]
    assert len(rows) >= 2
    right = max(box.right for box in rows)
    _, top, _, high = diagram.layout.lane
    for band in diagram.layout.bands:
        for (x, arrives, end, leaves), (_, arrives_next, _, _) in itertools.pairwise(band.stops):
            # A curve stays between the heights of its ends: past the names, both in the lane.
            heights = [arrives] if x < right else []
            heights += [leaves, arrives_next] if end < right else []
            for y in heights:
                assert y + band.thickness / 2 <= top + high + CLOSE, band.what


def test_where_tokens_have_no_room_one_node_holds_their_exact_sum(shape):
    found = shaped(shape)
    small = Diagram(found, theme=LIGHT, width=452, height=380)
    assert small.layout.tokens == "one"
    assert not [node for node in small.layout.nodes if isinstance(node.what, SourceToken)]
    node = next(node for node in small.layout.nodes if node.what == TOKEN)
    assert node.net == pytest.approx(token_contributions(found).sum(), abs=1e-9)
    words = texts(small.picture(Selection()).figure)
    assert "tokens" in words
    assert logits(node.net, signed=True) in words
    roomy = Diagram(found, theme=LIGHT, width=1440, height=810)
    assert roomy.layout.tokens == "roomy"
    shown = [node for node in roomy.layout.nodes if isinstance(node.what, SourceToken)]
    assert sum(one.net for one in shown) == pytest.approx(node.net, abs=1e-9)


def test_strands_and_bands_stay_within_the_bar_of_the_embedding(shape):
    deep = shaped(shape, True)
    layout = Diagram(deep, theme=LIGHT, width=640, height=460).layout
    _, top, _, high = layout.lane
    nodes = {node.what: node for node in layout.nodes}
    bar = nodes[TOKEN]
    for what in (TOKEN, "remainder"):
        if what in nodes:
            assert nodes[what].y + nodes[what].height <= top + high
    ends = [(abs(net) * layout.scale, y) for _, net, y in layout.strands]
    ends += [
        (band.thickness, band.stops[0][3])
        for band in layout.bands
        if isinstance(band.what, Path) and band.what.source == TOKEN
    ]
    assert ends
    for thickness, y in ends:
        if thickness <= bar.height:
            assert bar.y - CLOSE <= y - thickness / 2
            assert y + thickness / 2 <= bar.y + bar.height + CLOSE


def test_small_cells_have_no_outline_and_large_ones_do(shape):
    for size, outlined in (((452, 380), False), ((2560, 1440), True)):
        picture = Diagram(shaped(shape), theme=LIGHT, width=size[0], height=size[1])
        cells = [g for g in groups(picture.picture(Selection()).over) if isinstance(g.data, Head)]
        paper = [any(i.fill == LIGHT.background and i.radius == 3 for i in g.items) for g in cells]
        assert all(paper) if outlined else not any(paper)
