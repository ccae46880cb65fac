"""The residual-stream diagram: it shows every path once, on one scale, and nothing that leaks."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.difference import difference
from circuitview.core.expansion import Expansion, expand
from circuitview.core.names import TOKEN, Head, ImbalanceError
from circuitview.core.path import Path
from circuitview.core.target import Target
from circuitview.figures.diagram import diagram_figure
from circuitview.figures.diagram.geometry import Frame, Layout, SourceToken
from circuitview.figures.diagram.layout import lay_out
from circuitview.figures.diagram.shown import MOST_BANDS
from circuitview.figures.figure import Curve, Figure, Text, bounds, groups, walk
from circuitview.figures.svg import svg
from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.floor_bar import hidden_text
from circuitview.session.state import Results, Selection, Snapshot, State
from tests.figures.diagram_words import require_apart, word_boxes
from tests.tiny_models import Tiny, record, tiny_model

FRAME = Frame(left=80, top=40, right=1100, bottom=640, gap=16)
# Pixels: sums of a few hundred float64 thicknesses.
CLOSE = 1e-6


def expansion(tiny: Tiny | None = None, n: int = 9, versus: int | None = None) -> Expansion:
    tiny = tiny or Tiny(n_heads=4, d_model=16, d_head=4, n_ctx=40, d_vocab=12)
    model = tiny_model(tiny)
    tokens = np.random.default_rng(3).integers(0, tiny.d_vocab, n).tolist()
    recording = record(model, tokens)
    labels = model.tokenizer.labels
    other = None if versus is None else labels[versus]
    return expand(recording, Target(n - 1, 5, labels[5], versus, other))


@pytest.fixture(scope="module")
def two_layers() -> Expansion:
    return expansion()


def edges(figure: Figure) -> dict[object, Curve]:
    found = {}
    for group in groups(figure):
        if isinstance(group.data, Path) or group.data in ("remainder", "b_U"):
            curve = group.items[0]
            if isinstance(curve, Curve):
                assert group.data not in found, f"{group.data} is drawn twice"
                found[group.data] = curve
    return found


def test_floor_zero_draws_every_path_and_the_constant_once(two_layers):
    drawn = edges(diagram_figure(two_layers, theme=LIGHT, width=1280, height=720))
    assert {what for what in drawn if isinstance(what, Path)} == set(two_layers.paths)
    assert "b_U" in drawn
    assert "remainder" not in drawn


def test_paths_that_are_zero_have_no_band():
    silent = expansion(Tiny(n_heads=2))
    nothing = replace(silent, contributions=np.where(silent.by_source.sum(-1) > 0, 0.5, 0.0))
    nothing = replace(nothing, logit=nothing.total)
    drawn = edges(diagram_figure(nothing, theme=LIGHT, width=1280, height=720))
    assert len(drawn) == (nothing.contributions > 0).sum() + 1
    assert "remainder" not in drawn


def terms(expansion: Expansion) -> list[tuple[Path, float]]:
    return list(zip(expansion.paths, expansion.contributions.tolist(), strict=True))


@pytest.mark.parametrize("floor", [0.0, 0.05, 0.4, 1e9])
def test_bands_add_up_to_the_total_at_every_floor(two_layers, floor):
    layout = lay_out(two_layers, FRAME, floor)
    assert sum(band.value for band in layout.bands) == pytest.approx(two_layers.total, abs=1e-9)
    shown = [band for band in layout.bands if isinstance(band.what, Path)]
    assert all(abs(band.value) >= floor for band in shown)
    assert layout.hidden == two_layers.n_paths - len(shown)


def test_every_band_is_as_thick_as_its_contribution(two_layers):
    layout = lay_out(two_layers, FRAME)
    for band in layout.bands:
        assert band.thickness == pytest.approx(abs(band.value) * layout.scale)


def test_a_path_is_drawn_through_its_heads_and_rides_the_lane_past_other_layers(two_layers):
    layout = lay_out(two_layers, FRAME)
    nodes = {node.what: node for node in layout.nodes}
    _, lane_top, _, lane_height = layout.lane
    for band in layout.bands:
        if not isinstance(band.what, Path) or band.what.source.layer >= 0:
            continue
        heads = {head.layer: head for head in band.what.heads}
        for layer, (_, arrive, _, leave) in enumerate(band.stops[1:-1]):
            if layer in heads:
                node = nodes[heads[layer]]
                assert node.y - CLOSE <= arrive <= node.y + node.height + CLOSE
                assert node.y - CLOSE <= leave <= node.y + node.height + CLOSE
            else:
                assert lane_top < arrive < lane_top + lane_height
                assert arrive == leave


def test_bands_at_a_node_fill_it_without_overlap(two_layers):
    layout = lay_out(two_layers, FRAME)
    for head in (Head(0, 1), Head(1, 2)):
        node = next(node for node in layout.nodes if node.what == head)
        through = [
            band for band in layout.bands if isinstance(band.what, Path) and head in band.what.heads
        ]
        for side in (1, 3):
            spans = sorted(
                (stop[side] - band.thickness / 2, stop[side] + band.thickness / 2)
                for band in through
                for stop in band.stops[1:-1]
                if math.isclose(stop[0], node.x)
            )
            assert spans[0][0] == pytest.approx(node.y, abs=CLOSE)
            assert spans[-1][1] == pytest.approx(node.y + node.height, abs=CLOSE)
            for upper, lower in itertools.pairwise(spans):
                assert lower[0] == pytest.approx(upper[1], abs=CLOSE)


def test_source_strands_add_up_to_the_token_paths(two_layers):
    layout = lay_out(two_layers, FRAME)
    token = sum(value for path, value in terms(two_layers) if path.source == TOKEN)
    assert sum(net for _, net, _ in layout.strands) == pytest.approx(token)


def test_a_long_prompt_shows_few_tokens_and_the_exact_rest():
    long = expansion(n=40)
    layout = lay_out(long, FRAME)
    tokens = [node for node in layout.nodes if isinstance(node.what, SourceToken)]
    assert len(tokens) < 40
    assert layout.others == 40 - (len(tokens) - 1)
    token = sum(value for path, value in terms(long) if path.source == TOKEN)
    assert sum(node.net for node in tokens) == pytest.approx(token)
    assert SourceToken(39) in {node.what for node in tokens}, "the dest token is always shown"


def nodes_in_columns(layout: Layout) -> dict[float, list[tuple[float, float]]]:
    columns: dict[float, list[tuple[float, float]]] = {}
    for node in layout.nodes:
        columns.setdefault(round(node.x, 3), []).append((node.y, node.y + node.height))
    return columns


@pytest.mark.parametrize(
    "tiny",
    [
        Tiny(n_layers=1, n_heads=1),
        Tiny(n_layers=2, n_heads=8, d_model=16, positional_embedding_type="none", biases=False),
        Tiny(n_layers=3, n_heads=4),
        Tiny(n_layers=5, n_heads=3),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [(1280, 720), (700, 420)])
def test_any_model_fits_its_frame_and_no_nodes_overlap(tiny, size):
    found = expansion(tiny, n=7)
    frame = Frame(left=70, top=40, right=size[0] - 120, bottom=size[1] - 40, gap=10)
    layout = lay_out(found, frame)
    for spans in nodes_in_columns(layout).values():
        spans.sort()
        assert spans[0][0] >= frame.top - CLOSE
        assert spans[-1][1] <= frame.bottom + 1
        for upper, lower in itertools.pairwise(spans):
            assert lower[0] >= upper[1] - CLOSE
    figure = diagram_figure(found, theme=DARK, width=size[0], height=size[1], captioned=True)
    box = bounds(figure.items)
    assert box is not None
    assert box.left >= 0
    assert box.top >= 0
    assert box.right <= size[0]
    assert box.bottom <= size[1]


def test_labels_do_not_lie_on_one_another(two_layers):
    for size in ((1280, 720), (900, 560), (760, 430), (1920, 1080)):
        require_apart(diagram_figure(two_layers, theme=LIGHT, width=size[0], height=size[1]))


def test_large_numbers_beside_the_tokens_do_not_reach_their_names(two_layers):
    sums = two_layers.orders.sums * 400
    large = replace(two_layers, orders=replace(two_layers.orders, sums=sums))
    for size in ((1280, 720), (760, 430)):
        figure = diagram_figure(large, theme=LIGHT, width=size[0], height=size[1])
        bar = next(g for g in groups(figure) if isinstance(g.data, SourceToken) and g.id)
        words = [one for one in word_boxes(figure) if one[1].right < bounds(bar.items[0]).left]
        assert any(len(text) >= len("+100.00") for text, _ in words)
        for (one, a), (other, b) in itertools.combinations(words, 2):
            assert not a.overlaps(b), f"{one!r} lies on {other!r}"
        assert min(box.left for _, box in words) >= 0


def deep_diagram(width: float, height: float) -> Figure:
    deep = Tiny(n_layers=12, n_heads=12, d_model=24, d_head=3, n_ctx=20, d_vocab=12)
    return diagram_figure(expansion(deep), theme=LIGHT, width=width, height=height, captioned=True)


@pytest.mark.parametrize("size", [(900, 560), (1280, 720), (1600, 1000)])
def test_columns_of_a_deep_model_do_not_write_over_one_another(size):
    require_apart(deep_diagram(*size))


@pytest.mark.parametrize(("wide", "cut"), [(420, True), (1280, False)])
def test_the_caption_of_a_deep_model_keeps_the_sum_and_the_error(wide, cut):
    words = [item.text for item in walk(deep_diagram(wide, 480)) if isinstance(item, Text)]
    sums = [text for text in words if " = " in text and "; error " in text]
    assert len(sums) == 1
    assert ("… = " in sums[0]) == cut


def test_what_takes_away_is_dashed_and_what_adds_is_not(two_layers):
    for what, curve in edges(
        diagram_figure(two_layers, theme=LIGHT, width=1280, height=720)
    ).items():
        if isinstance(what, Path) and curve.stroke:
            value = float(two_layers.contributions[two_layers.place[what]])
            assert bool(curve.dash) == (value < 0)
            assert curve.stroke == (LIGHT.negative if value < 0 else LIGHT.positive)


def test_the_title_of_a_band_tells_path_value_and_share(two_layers):
    path = two_layers.terms[0].path
    figure = diagram_figure(two_layers, theme=LIGHT, width=1280, height=720)
    title = next(group.title for group in groups(figure) if group.data == path)
    share = abs(two_layers.terms[0].contribution) / np.abs(two_layers.contributions).sum()
    assert title is not None
    assert title.startswith(f"{path}: ")
    assert f"{100 * share:.1f}" in title or f"{100 * share:.0f}%" in title


def test_a_selected_head_stands_out_with_all_its_paths(two_layers):
    head = Head(1, 2)
    figure = diagram_figure(
        two_layers, theme=LIGHT, width=1280, height=720, selection=Selection(head=head)
    )
    for what, curve in edges(figure).items():
        picked = isinstance(what, Path) and head in what.heads
        assert (curve.opacity > 0.9) == picked


def test_an_expansion_that_does_not_balance_is_never_drawn(two_layers):
    broken = replace(two_layers, logit=two_layers.logit + 0.01 * two_layers.scale)
    with pytest.raises(ImbalanceError, match="don't add up"):
        diagram_figure(broken, theme=LIGHT, width=1280, height=720)
    undefined = replace(two_layers, logit=math.nan)
    with pytest.raises(ImbalanceError):
        diagram_figure(undefined, theme=LIGHT, width=1280, height=720)


def test_a_model_with_thousands_of_paths_draws_the_largest_and_the_exact_rest():
    many = expansion(Tiny(n_layers=3, n_heads=8, d_model=16), n=6)
    layout = lay_out(many, FRAME)
    shown = [band for band in layout.bands if isinstance(band.what, Path)]
    assert len(shown) == MOST_BANDS < many.n_paths
    smallest = min(abs(band.value) for band in shown)
    left_out = sorted(np.abs(many.contributions).tolist())[: many.n_paths - MOST_BANDS]
    assert left_out[-1] <= smallest
    assert sum(band.value for band in layout.bands) == pytest.approx(many.total, abs=1e-9)


def test_a_difference_of_tokens_names_both(two_layers):
    difference = expansion(versus=3)
    figure = diagram_figure(difference, theme=LIGHT, width=1280, height=720)
    assert str(difference.target) in figure.title
    assert svg(figure).count("<title>") > 50


def words_of(found: Expansion, floor: float) -> str:
    return hidden_text(Snapshot(State(floor=floor), Results(expansion=found)))


def test_the_floor_bar_counts_what_the_diagram_draws():
    """It said that 1,241 paths were drawn one by one where the diagram drew its 600 largest."""
    many = expansion(Tiny(n_layers=3, n_heads=8, d_model=16), n=6)
    for floor in (0.0, 0.02):
        layout = lay_out(many, FRAME, floor)
        drawn = sum(isinstance(band.what, Path) for band in layout.bands)
        hidden = f"{many.n_paths - drawn:,} of {many.n_paths:,} paths hidden in the remainder"
        assert words_of(many, floor).startswith(hidden)
    two = expansion(Tiny(n_heads=2))
    assert words_of(two, 0.0) == f"{two.n_paths} paths drawn one by one"
    half = replace(two, contributions=np.where(two.contributions > 0, 0.5, 0.0))
    half = replace(half, logit=half.total)
    drawn = int((half.contributions > 0).sum())
    expected = f"{drawn} paths drawn one by one, {two.n_paths - drawn} are zero"
    assert words_of(half, 0.0) == expected


@pytest.mark.parametrize("n_layers", [2, 8])
@pytest.mark.parametrize("size", [(1280.0, 720.0), (420.0, 300.0)])
def test_where_two_prompts_do_not_differ_nothing_is_drawn_thick(n_layers, size):
    """The scale had no end: its three samples stood over the whole picture as bars."""
    recording = record(tiny_model(Tiny(n_layers=n_layers, n_heads=3)), [0, 1, 2, 3])
    one = expand(recording, Target(3, 2, "w2"))
    figure = diagram_figure(difference(one, one), theme=LIGHT, width=size[0], height=size[1])
    curves = [item for item in walk(figure) if isinstance(item, Curve)]
    assert max(curve.stroke_width for curve in curves) < 20
