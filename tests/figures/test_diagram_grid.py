"""The diagram of deep models: a grid that draws every shown path once and the rest exactly."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.expansion import Expansion, expand
from circuitview.core.names import Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.core.target import Target
from circuitview.figures.diagram import Diagram, count, diagram_figure, shown_paths
from circuitview.figures.diagram.geometry import Frame, LayerHeading, SourceToken
from circuitview.figures.diagram.grid import lay_out_grid
from circuitview.figures.diagram.lane import stack
from circuitview.figures.diagram.overview import layer_bars, order_bars
from circuitview.figures.diagram.picture import Bands
from circuitview.figures.diagram.words import brief_count, expansion_name
from circuitview.figures.figure import Group, bounds, groups, texts
from circuitview.figures.svg import svg
from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.floor_bar import hidden_text
from circuitview.session.state import Results, Selection, Snapshot, State
from tests.figures.diagram_words import require_apart
from tests.tiny_models import Tiny, record, tiny_model

FRAME = Frame(left=140, top=40, right=1100, bottom=540, gap=16)
# Pixels: sums of two thousand float64 thicknesses.
CLOSE = 1e-6
DEEP = Tiny(n_layers=6, n_heads=3, d_model=16, d_head=4, n_ctx=20, d_vocab=12)
WITH_MLPS = replace(DEEP, act_fn="gelu", d_mlp=9)
PARALLEL = replace(WITH_MLPS, parallel_attn_mlp=True)


def expansion(tiny: Tiny, through_mlps: bool = False, n: int = 9, listed: int = 2000) -> Expansion:
    model = tiny_model(tiny)
    tokens = np.random.default_rng(3).integers(0, tiny.d_vocab, n).tolist()
    target = Target(n - 1, 5, model.tokenizer.labels[5])
    return expand(record(model, tokens), target, through_mlps, listed)


@pytest.fixture(scope="module", params=["attention", "mlps", "through", "parallel"])
def deep(request) -> Expansion:
    match request.param:
        case "attention":
            return expansion(DEEP, listed=300)
        case "mlps":
            return expansion(WITH_MLPS, listed=300)
        case "through":
            return expansion(WITH_MLPS, through_mlps=True, listed=300)
    return expansion(PARALLEL, through_mlps=True, listed=300)


def test_the_grid_draws_every_shown_path_once_and_adds_up(deep):
    for floor in (0.0, 0.02, 1e9):
        shown = shown_paths(deep, floor)
        layout = lay_out_grid(deep, FRAME, floor)
        drawn = [band.what for band in layout.bands if isinstance(band.what, Path)]
        assert sorted(map(str, drawn)) == sorted(str(deep.paths[i]) for i in shown.places)
        assert layout.hidden == shown.hidden == deep.n_paths - len(drawn)
        assert sum(band.value for band in layout.bands) == pytest.approx(deep.total, abs=1e-9)


def test_the_remainder_is_one_grey_edge_with_its_value_and_count(deep):
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720, floor=0.05)
    shown = shown_paths(deep, 0.05)
    edges = [group for group in groups(figure) if group.data == "remainder" and group.id]
    bands = [group for group in edges if not group.id.startswith("node")]
    assert len(bands) == 1
    curve = bands[0].items[0]
    assert (curve.stroke or curve.fill) == LIGHT.remainder
    assert f"{count(shown.hidden)} paths" in texts(figure)
    assert f"{shown.hidden:,} paths" in bands[0].title


def test_bands_pass_the_cells_of_their_steps_and_one_scale_holds(deep):
    layout = lay_out_grid(deep, FRAME)
    wide, _ = layout.cell
    cells = {node.what: node for node in layout.nodes}
    for band in layout.bands:
        assert band.thickness == pytest.approx(abs(band.value) * layout.scale)
        if isinstance(band.what, Path):
            places = {(round(x, 6), y) for x, y, _, _ in band.stops}
            for step in band.what.steps:
                cell = cells[step]
                middle, top, low = round(cell.x + wide / 2, 6), cell.y, cell.y + cell.height
                assert any(x == middle and top - CLOSE <= y <= low + CLOSE for x, y in places)
            xs = [x for stop in band.stops for x in (stop[0], stop[2])]
            assert xs == sorted(xs), "a band never goes back"


def test_every_head_mlp_and_bias_has_a_cell_with_its_exact_net(deep):
    layout = lay_out_grid(deep, FRAME, floor=1e9)
    nets = {node.what: node.net for node in layout.nodes}
    for what, net in deep.nets.items():
        assert nets[what] == pytest.approx(net), what
    assert not layout.used & {Head(0, 0), Head(3, 1)}, "nothing is drawn, so no cell is used"


@pytest.mark.parametrize("shape", [(12, 12), (30, 9), (48, 25), (32, 32)])
@pytest.mark.parametrize("size", [(640, 360), (1280, 720), (2560, 1440)])
def test_any_shape_fits_and_its_words_do_not_collide(shape, size):
    layers, heads = shape
    # Its contributions are of no matter here, only its shape: a list of a few paths will do.
    tiny = replace(WITH_MLPS, n_layers=layers, n_heads=heads, d_model=8, d_head=1, d_mlp=2)
    found = shaped(tiny)
    figure = diagram_figure(found, theme=DARK, width=size[0], height=size[1], captioned=True)
    box = bounds(figure.items)
    assert box.left >= 0
    assert box.top >= 0
    assert box.right <= size[0]
    assert box.bottom <= size[1]
    require_apart(figure)


_SHAPED: dict[tuple[Tiny, bool, int], Expansion] = {}


def shaped(tiny: Tiny, through_mlps: bool = False, n: int = 6) -> Expansion:
    key = tiny, through_mlps, n
    if key not in _SHAPED:
        _SHAPED[key] = expansion(tiny, through_mlps, n=n, listed=40)
    return _SHAPED[key]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (9_504, "9,504"),
        (23_298_085_122_481, "2 × 10¹³"),
        (1_100_000, "10⁶"),
        (9_960_000, "10⁷"),
        (13**48, "3 × 10⁵³"),
    ],
)
def test_a_count_in_little_room_has_one_digit(number, words):
    assert brief_count(number) == words


def test_cells_do_not_overlap_and_stand_under_the_lane(deep):
    layout = lay_out_grid(deep, FRAME)
    wide, _ = layout.cell
    _, top, _, lane = layout.lane
    spots = [
        (node.x, node.y, node.height)
        for node in layout.nodes
        if not isinstance(node.what, SourceToken | str) and getattr(node.what, "layer", -1) >= 0
    ]
    assert len(spots) == len(set(spots))
    for (x, y, high), (other_x, other_y, other) in itertools.combinations(spots, 2):
        beside = abs(x - other_x) >= wide - CLOSE
        assert beside or y + high <= other_y + CLOSE or other_y + other <= y + CLOSE
    assert min(y for _, y, _ in spots) >= top + lane
    assert max(y + high for _, y, high in spots) <= FRAME.bottom + 1


def test_weak_bands_lie_under_strong_ones_and_unused_cells_are_faint():
    found = expansion(DEEP, listed=300)
    picture = Diagram(found, theme=LIGHT, width=1280, height=720, floor=0.3).picture(Selection())
    sizes = [
        abs(found.contributions[found.place[group.data]])
        for group in picture.bands
        if isinstance(group.data, Path)
    ]
    assert sizes == sorted(sizes)
    paths = [group.data for group in picture.bands if isinstance(group.data, Path)]
    used = {step for path in paths for step in path.steps}
    faint = strong = 0
    for group in groups(picture.over):
        if isinstance(group.data, Head):
            filled = max(item.opacity for item in group.items if item.fill)
            assert (filled == 1.0) == (group.data in used)
            faint, strong = faint + (filled < 1), strong + (filled == 1)
    assert faint
    assert strong


def test_a_selection_keeps_the_bands_and_draws_each_picked_one_once():
    found = expansion(DEEP, listed=300)
    diagram = Diagram(found, theme=LIGHT, width=1280, height=720)
    plain = diagram.picture(Selection())
    head = found.terms[0].path.heads[-1] if found.terms[0].path.heads else Head(5, 0)
    picked = diagram.picture(Selection(head=head))
    assert picked.bands is plain.bands
    through = {path for path in found.paths if head in path.heads}
    assert {group.data for group in picked.picked} == through
    drawn = [group.data for group in groups(picked.figure) if isinstance(group.data, Path)]
    assert len(drawn) == len(set(drawn)) == len(found.paths)


def test_bands_are_made_when_asked_for_and_once():
    made = []

    def make(place: int) -> Group:
        made.append(place)
        return Group((), id=str(place))

    bands = Bands(5, make)
    assert (len(bands), made) == (5, [])
    assert bands[-1] is bands[4]
    assert [band.id for band in bands[1:3]] == ["1", "2"]
    assert [band.id for band in bands] == ["0", "1", "2", "3", "4"]
    assert made == [4, 1, 2, 0, 3]


def test_another_theme_keeps_the_layout():
    found = expansion(DEEP, listed=100)
    light = Diagram(found, theme=LIGHT, width=1280, height=720)
    dark = light.in_theme(DARK)
    assert dark.layout is light.layout
    fresh = Diagram(found, theme=DARK, width=1280, height=720)
    assert svg(dark.picture(Selection()).figure) == svg(fresh.picture(Selection()).figure)
    assert light.picture(Selection()).background == LIGHT.background


def test_each_path_of_an_exported_grid_is_a_named_group_with_its_title(deep):
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720, captioned=True)
    named = {group.data: group for group in groups(figure) if isinstance(group.data, Path)}
    assert set(named) == {deep.paths[i] for i in shown_paths(deep, 0.0).places}
    for path, group in named.items():
        assert group.id == str(path)
        assert group.title.startswith(f"{path}: ")
    document = svg(figure)
    assert document.count("<title>") > len(named)


def test_the_expansion_that_is_shown_is_named_where_there_are_mlps():
    plain = expansion(DEEP, listed=50)
    sources, through = expansion(WITH_MLPS, listed=50), expansion(WITH_MLPS, True, listed=50)
    assert expansion_name(plain) == ""
    for found, words in (
        (sources, "MLP outputs as sources"),
        (through, "paths through MLPs, activation ratios held"),
    ):
        for captioned in (False, True):
            for size in ((640, 360), (1280, 720)):
                figure = diagram_figure(
                    found, theme=LIGHT, width=size[0], height=size[1], captioned=captioned
                )
                assert words in texts(figure)
    assert not any(
        "MLP" in text for text in texts(diagram_figure(plain, theme=LIGHT, width=1280, height=720))
    )


def test_the_bars_by_number_of_steps_add_up_to_the_logit(deep):
    bars = order_bars(deep)
    assert sum(bar.value for bar in bars) + deep.constant == pytest.approx(deep.total, abs=1e-8)
    assert bars[-1].name == "5+"
    # Those that stand alone are the paths of just so many steps.
    alone = sum(v for p, v in zip(deep.paths, deep.contributions, strict=True) if not p.steps)
    everything = sum(1 for source in deep.orders.sources)
    if sum(1 for path in deep.paths if not path.steps) == everything:
        assert bars[0].value == pytest.approx(alone, abs=1e-8)


def test_the_bars_by_layer_are_the_exact_nets_on_the_scale_of_the_others(deep):
    for layer, (heads, mlp) in enumerate(layer_bars(deep)):
        assert heads.value == pytest.approx(deep.orders.through[layer].sum())
        has = bool(len(deep.orders.mlps)) or Source("mlp", layer) in deep.orders.sources
        assert (mlp is not None) == has
        if mlp is not None:
            step = Mlp(layer) if deep.through_mlps else Source("mlp", layer)
            assert mlp.value == pytest.approx(deep.nets[step])
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720)
    bars = [*order_bars(deep), *(bar for both in layer_bars(deep) for bar in both if bar)]
    sums = [group for group in groups(figure) if (group.title or "").startswith("all paths")]
    drawn = {group.title: group.items[0] for group in sums}
    scales = {
        round(drawn[bar.title].height / abs(bar.value), 3) for bar in bars if abs(bar.value) > 1e-3
    }
    assert max(scales) - min(scales) <= 0.002, "the bars are not on one scale"


def test_layer_headings_can_be_pointed_at(deep):
    figure = diagram_figure(deep, theme=LIGHT, width=1280, height=720)
    found = {group.data for group in groups(figure) if isinstance(group.data, LayerHeading)}
    assert found == {LayerHeading(layer) for layer in range(6)}


def test_rides_in_the_lane_do_not_lie_on_one_another():
    rng = np.random.default_rng(0)
    start, size = rng.uniform(0, 900, 200), rng.exponential(0.2, 200)
    end = start + rng.uniform(20, 600, 200)
    middle, depth = stack(start, end, size)
    for one, other in itertools.combinations(range(200), 2):
        if start[one] < end[other] and start[other] < end[one]:
            apart = abs(middle[one] - middle[other])
            assert apart >= (size[one] + size[other]) / 2 - 1e-9
    assert (middle + size / 2).max() == pytest.approx(depth)
    assert stack(start[:0], end[:0], size[:0])[1] == 0.0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (9_504, "9,504"),
        (999_999, "999,999"),
        (1_200_000, "1.2 million"),
        (23_298_085_122_481, "23 trillion"),
        (202_309_388_122_766_213, "202 quadrillion"),
        (13**48, "2.9 × 10⁵³"),
        (9_960_000_000_000_000_000, "1.0 × 10¹⁹"),
        (10**400, "1.0 × 10⁴⁰⁰"),
    ],
)
def test_very_many_paths_are_counted_in_words(number, words):
    assert count(number) == words


def test_the_floor_bar_counts_what_the_grid_draws_whole_and_by_layer(deep):
    for layer in (None, 3):
        diagram = Diagram(deep, theme=LIGHT, width=1280, height=720, floor=0.05, layer=layer)
        drawn = sum(isinstance(band.what, Path) for band in diagram.layout.bands)
        hidden = deep.n_paths - drawn
        assert diagram.layout.hidden == hidden
        snapshot = Snapshot(State(floor=0.05), Results(expansion=deep))
        words = hidden_text(snapshot, layer)
        assert words.startswith(f"{count(hidden)} of {count(deep.n_paths)} paths hidden")
        rest = sum(b.value for b in diagram.layout.bands if b.what == "remainder")
        assert math.isclose(shown_paths(deep, 0.05, layer).rest, rest, abs_tol=1e-12)
