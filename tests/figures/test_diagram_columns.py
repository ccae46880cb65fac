"""The columns of a diagram of stacks where there are MLPs, and one layer of a deep model alone."""

from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.expansion import Expansion, expand
from circuitview.core.names import TOKEN, Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.core.target import Target
from circuitview.figures.diagram import Diagram, diagram_figure
from circuitview.figures.diagram.geometry import AllLayers, Elsewhere, Frame
from circuitview.figures.diagram.layout import lay_out
from circuitview.figures.diagram.shown import touches
from circuitview.figures.figure import Text, bounds, groups, texts, walk
from circuitview.figures.theme import LIGHT
from circuitview.session.state import Selection
from tests.figures.diagram_words import require_apart
from tests.tiny_models import Tiny, record, tiny_model

FRAME = Frame(left=80, top=40, right=1100, bottom=640, gap=16)
CLOSE = 1e-6  # pixels: sums of a few hundred float64 thicknesses
TWO = Tiny(n_heads=3, act_fn="gelu", d_mlp=9)
DEEP = Tiny(n_layers=6, n_heads=3, act_fn="gelu", d_mlp=9)


def expansion(tiny: Tiny, through_mlps: bool = False, listed: int = 400) -> Expansion:
    model = tiny_model(tiny)
    tokens = np.random.default_rng(5).integers(0, tiny.d_vocab, 7).tolist()
    return expand(
        record(model, tokens), Target(6, 4, model.tokenizer.labels[4]), through_mlps, listed
    )


def column_of(layout, what) -> int:
    node = next(node for node in layout.nodes if node.what == what)
    middle = node.x + layout.node_width / 2
    return min(range(len(layout.columns)), key=lambda i: abs(layout.columns[i].x - middle))


def test_an_mlp_that_is_a_source_stands_in_its_layers_column():
    found = expansion(TWO)
    layout = lay_out(found, FRAME)
    assert [column.name for column in layout.columns] == ["embed", "layer 0", "layer 1", "logit"]
    for layer in (0, 1):
        assert column_of(layout, Source("mlp", layer)) == column_of(layout, Head(layer, 0))
        node = next(node for node in layout.nodes if node.what == Source("mlp", layer))
        assert node.net == pytest.approx(found.nets[Source("mlp", layer)])
    starts = [
        band
        for band in layout.bands
        if isinstance(band.what, Path) and band.what.source == Source("mlp", 0)
    ]
    assert starts
    assert all(band.stops[0][0] > layout.columns[0].x for band in starts)


def test_an_mlp_that_paths_run_through_stands_behind_its_layers_heads():
    found = expansion(TWO, through_mlps=True)
    layout = lay_out(found, FRAME)
    names = [column.name for column in layout.columns]
    assert names == ["embed", "layer 0", "mlp 0", "layer 1", "mlp 1", "logit"]
    for layer in (0, 1):
        assert column_of(layout, Mlp(layer)) == column_of(layout, Head(layer, 0)) + 1
        assert column_of(layout, Source("mlp bias", layer)) == column_of(layout, Mlp(layer))
    both = Path.parse("token > 0.1 > mlp 0 > mlp 1")
    band = next(band for band in layout.bands if band.what == both)
    nodes = {node.what: node for node in layout.nodes}
    for step in both.steps:
        node = nodes[step]
        assert any(
            x == pytest.approx(node.x) and node.y - CLOSE <= y <= node.y + node.height + CLOSE
            for x, y, _, _ in band.stops
        )


def test_a_parallel_mlp_stands_beside_its_layers_heads():
    layout = lay_out(expansion(replace(TWO, parallel_attn_mlp=True), through_mlps=True), FRAME)
    assert [column.name for column in layout.columns] == ["embed", "layer 0", "layer 1", "logit"]
    assert column_of(layout, Mlp(1)) == column_of(layout, Head(1, 0))


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_bands_add_up_and_words_do_not_collide_with_mlps(through, parallel):
    found = expansion(replace(TWO, parallel_attn_mlp=parallel), through)
    layout = lay_out(found, FRAME)
    assert sum(band.value for band in layout.bands) == pytest.approx(found.total, abs=1e-9)
    assert {b.what for b in layout.bands if isinstance(b.what, Path)} == set(found.paths)
    for size in ((760, 430), (1280, 720)):
        require_apart(diagram_figure(found, theme=LIGHT, width=size[0], height=size[1]))


@pytest.fixture(scope="module", params=["sources", "through", "parallel"])
def deep(request) -> Expansion:
    tiny = replace(DEEP, parallel_attn_mlp=request.param == "parallel")
    return expansion(tiny, through_mlps=request.param != "sources")


@pytest.mark.parametrize("layer", [0, 3, 5])
def test_one_layer_alone_draws_what_touches_it_and_the_exact_rest(deep, layer):
    diagram = Diagram(deep, theme=LIGHT, width=1280, height=720, layer=layer)
    layout = diagram.layout
    drawn = {band.what for band in layout.bands if isinstance(band.what, Path)}
    touching = {path for path in deep.paths if touches(path, layer)}
    assert drawn == touching
    assert sum(band.value for band in layout.bands) == pytest.approx(deep.total, abs=1e-9)
    assert layout.hidden == deep.n_paths - len(drawn)
    heads = {node.what: node.net for node in layout.nodes if isinstance(node.what, Head)}
    assert heads == {
        Head(layer, head): pytest.approx(deep.nets[Head(layer, head)]) for head in range(3)
    }
    require_apart(diagram.picture(Selection()).figure)


def test_what_enters_and_leaves_a_layer_is_grouped_by_layer(deep):
    layout = lay_out(deep, FRAME, 0.0, 3)
    sides = {node.what: node for node in layout.nodes if isinstance(node.what, Elsewhere)}
    before = {what.what for what in sides if what.side == "before"}
    after = {what.what for what in sides if what.side == "after"}
    assert {0, 1, 2} <= before <= {0, 1, 2, "biases", "MLPs", "MLP biases"}
    assert after == {4, 5}
    lower = column_of(layout, Head(3, 0))
    assert all(column_of(layout, what) < lower for what in sides if what.side == "before")
    assert all(column_of(layout, what) > lower for what in sides if what.side == "after")
    touching = [path for path in deep.paths if touches(path, 3)]
    onwards = [p for p in touching if next((s.layer for s in p.steps if s.layer > 3), None) == 5]
    sent = sum(float(deep.contributions[deep.place[path]]) for path in onwards)
    assert sides[Elsewhere("after", 5)].net == pytest.approx(sent)
    first = [p for p in touching if p.source == TOKEN and min(s.layer for s in p.steps) == 3]
    token = next(node for node in layout.nodes if node.what == TOKEN)
    assert token.net == pytest.approx(sum(deep.contributions[deep.place[p]] for p in first))


@pytest.mark.parametrize("size", [(640, 360), (1280, 720)])
def test_many_heads_and_layers_beside_one_layer_do_not_write_over_one_another(size):
    wide = expansion(
        Tiny(n_layers=24, n_heads=32, d_model=8, d_head=1, positional_embedding_type="none")
    )
    for layer in (1, 12, 23):
        figure = diagram_figure(wide, theme=LIGHT, width=size[0], height=size[1], layer=layer)
        require_apart(figure)
        box = bounds(figure.items)
        assert box.top >= 0
        assert box.bottom <= size[1]


def test_of_many_layers_beside_one_the_small_ones_share_a_node():
    many = expansion(Tiny(n_layers=24, n_heads=2), listed=4000)
    layout = lay_out(many, FRAME, 0.0, 20)
    before = [node.what for node in layout.nodes if isinstance(node.what, Elsewhere)]
    before = [what for what in before if what.side == "before"]
    assert Elsewhere("before", "other layers") in before
    assert len([what for what in before if isinstance(what.what, int)]) == 9
    assert sum(band.value for band in layout.bands) == pytest.approx(many.total, abs=1e-9)


def test_a_remainder_that_would_hide_the_layer_is_cut_and_says_so(deep):
    found = replace(deep, smaller=deep.smaller + 500.0, logit=deep.logit + 500.0)
    found = replace(found, scale=500.0)
    layout = lay_out(found, FRAME, 0.0, 3)
    rest = next(band for band in layout.bands if band.what == "remainder")
    others = sum(band.thickness for band in layout.bands if band.what != "remainder")
    assert layout.cut
    assert rest.value > 400
    assert rest.thickness == pytest.approx(0.25 * others)
    figure = diagram_figure(found, theme=LIGHT, width=1280, height=720, layer=3)
    assert "all other paths, not to scale" in texts(figure)
    assert not lay_out(found, FRAME).cut, "the whole is always to scale"


def test_one_layer_alone_says_so_and_offers_the_way_back(deep):
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720, layer=2)
    assert "layer 2" in texts(figure)
    assert figure.title.endswith("through layer 2")
    assert any(group.data == AllLayers() for group in groups(figure))
    whole = diagram_figure(deep, theme=LIGHT, width=1280, height=720)
    assert not any(group.data == AllLayers() for group in groups(whole))


def test_a_file_of_one_layer_has_its_heading_and_nothing_to_click(deep):
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720, layer=2, captioned=True)
    assert "layer 2" in texts(figure)
    assert not any("all layers" in text for text in texts(figure))
    assert not any(group.data == AllLayers() for group in groups(figure))


SIZES = [(640, 360), (800, 450), (1280, 720), (1920, 1080)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("captioned", [False, True])
def test_each_column_beside_a_layer_says_which_paths_its_numbers_count(deep, size, captioned):
    """Nets of all paths stood beside sums of the drawn ones, alike to look at."""
    for layer in (0, 3, 5):
        figure = diagram_figure(
            deep, theme=LIGHT, width=size[0], height=size[1], layer=layer, captioned=captioned
        )
        shown = [item for item in walk(figure) if isinstance(item, Text)]
        for heading in shown:
            name = heading.text
            if name not in ("from", "next", f"layer {layer}", f"mlp {layer}") or heading.y > 60:
                continue
            words = "all paths" if name.endswith(str(layer)) else "paths drawn"
            under = [
                item
                for item in shown
                if (item.x, item.anchor) == (heading.x, heading.anchor)
                and 0 < item.y - heading.y < 2 * heading.size
            ]
            assert [item.text.endswith(words) for item in under] == [True], name
        require_apart(figure)
    whole = texts(diagram_figure(deep, theme=LIGHT, width=size[0], height=size[1]))
    assert not any(text.endswith(("all paths", "paths drawn")) for text in whole)


def test_what_is_pointed_at_beside_a_layer_says_which_paths_it_counts(deep):
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720, layer=3)
    titles = {group.data: group.title for group in groups(figure)}
    assert titles[Head(3, 0)].endswith("through it, of all paths")
    assert titles[TOKEN].endswith("start there, of the paths drawn")
    assert titles[Elsewhere("before", 1)].endswith("in the paths drawn")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("label", ["w4", "␣tea − ␣coffee", "␣internationalisation", "W" * 60])
def test_a_long_target_keeps_off_the_headings_beside_a_layer(deep, size, label):
    found = replace(deep, target=replace(deep.target, label=label))
    for captioned in (False, True):
        figure = diagram_figure(
            found, theme=LIGHT, width=size[0], height=size[1], layer=3, captioned=captioned
        )
        require_apart(figure)


def test_a_model_of_few_layers_has_no_layer_alone():
    found = expansion(TWO)
    assert Diagram(found, theme=LIGHT, width=900, height=600, layer=1).layer is None
