"""A diagram coloured by measured effects: widths stay, what is not measured is grey."""

from itertools import pairwise

import pytest

from circuitview.core.ablation.sites import Site
from circuitview.core.ablation.table import Row
from circuitview.core.analysis import analyse
from circuitview.core.expansion import expand
from circuitview.core.names import Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.core.target import Target
from circuitview.figures.diagram import Diagram, MeasuredEffects, diagram_figure
from circuitview.figures.figure import (
    Box,
    Curve,
    Group,
    Image,
    Rect,
    Text,
    bounds,
    dump,
    groups,
    texts,
)
from circuitview.figures.svg import svg
from circuitview.figures.theme import DARK, LIGHT
from circuitview.session.state import Selection
from tests.tiny_models import Tiny, record, tiny_model

UP, DOWN = Path.parse("token > 0.0"), Path.parse("token > 0.1 > 1.0")


@pytest.fixture(scope="module")
def induction():
    return analyse("induction-by-hand", "we like green tea so we like")


@pytest.fixture(scope="module")
def strongest(induction):
    return [term.path for term in induction.terms[:2]]


def drawn(expansion, effects, size=(1280, 720), theme=LIGHT, **more):
    width, height = size
    return diagram_figure(
        expansion, theme=theme, width=width, height=height, effects=effects, **more
    )


def band(figure, path):
    return next(group for group in groups(figure) if group.data == path)


def curves(figure):
    return {
        group.data: next(item for item in group.items if isinstance(item, Curve))
        for group in groups(figure)
        if isinstance(group.data, Path)
    }


def test_colours_follow_the_effect_and_widths_the_contribution(induction, strongest):
    up, down = strongest
    effects = MeasuredEffects({up: 2.0, down: -0.5})
    plain, coloured = curves(drawn(induction, None)), curves(drawn(induction, effects))
    assert plain.keys() == coloured.keys()
    for path, curve in plain.items():
        assert bounds(coloured[path]) == bounds(curve)
        ink = coloured[path].stroke or coloured[path].fill
        expected = effects.shade({up: 2.0, down: -0.5}.get(path, 0.0), LIGHT)
        assert ink == (expected if path in (up, down) else LIGHT.remainder)
    assert effects.shade(2.0, LIGHT) == LIGHT.positive


def test_the_larger_the_effect_the_stronger_its_colour():
    effects = MeasuredEffects({UP: 4.0, DOWN: -1.0})
    assert effects.shade(4.0, LIGHT) == LIGHT.positive
    assert effects.shade(-4.0, DARK) == DARK.negative
    assert len({effects.shade(value, LIGHT) for value in (0.0, 0.5, 1.0, 2.0, 4.0)}) == 5
    assert MeasuredEffects({UP: 0.0}).shade(0.0, LIGHT) != LIGHT.remainder


def test_only_what_lowers_is_cut(induction, strongest):
    up, down = strongest
    lowered = curves(drawn(induction, MeasuredEffects({up: -2.0, down: -0.5})))
    raised = curves(drawn(induction, MeasuredEffects({up: 2.0, down: 0.5})))
    assert all(len(lowered[path].commands) > len(raised[path].commands) or lowered[path].dash
               for path in strongest)  # fmt: skip
    assert not any(raised[path].dash for path in raised)


def test_titles_say_what_was_measured_and_what_was_not(induction, strongest):
    up, down = strongest
    figure = drawn(induction, MeasuredEffects({up: -1.25}, "loss"))
    assert band(figure, up).title.endswith(", effect −1.2500 nats")
    assert band(figure, down).title.endswith(", effect not measured")
    assert "effect" not in band(drawn(induction, None), up).title


def test_the_legend_says_what_colour_and_width_are(induction, strongest):
    effects = MeasuredEffects({strongest[0]: -1.25}, "logit")
    written = texts(drawn(induction, effects))
    assert "colour: effect of removing the path, later layers free" in written
    assert any(text.startswith("width: contribution") for text in written)
    assert {"−1.25", "+1.25", "not measured"} <= set(written)
    frozen = MeasuredEffects(effects.values, "logit", frozen=True)
    assert "colour: effect of removing the path, all else frozen" in texts(drawn(induction, frozen))
    assert not any("colour:" in text for text in texts(drawn(induction, None)))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("size", [(640, 360), (960, 540), (1280, 720), (1920, 1080)])
@pytest.mark.parametrize("value", [0.0, 1e6, -1e-9, 2.5])
def test_coloured_diagram_stays_on_its_paper(induction, strongest, value, size, theme):
    effects = MeasuredEffects(dict.fromkeys(strongest, value))
    figure = drawn(induction, effects, size, theme, captioned=True)
    legend = next(group for group in groups(figure) if group.id == "scale")
    assert Box(0, 0, *size).contains(bounds(legend), slack=1)
    words = [bounds(item) for item in legend.items if isinstance(item, Text)]
    marks = [bounds(item) for item in legend.items if isinstance(item, Image)]
    boxes = sorted(words + marks)
    assert all(one.right <= other.left + 0.5 for one, other in pairwise(boxes))
    assert "</svg>" in svg(figure)


@pytest.mark.parametrize("width", [640, 760, 800, 960, 1280])
def test_grey_is_explained_however_narrow_the_legend(induction, strongest, width):
    effects = MeasuredEffects(dict.fromkeys(strongest, 2.5))
    written = texts(drawn(induction, effects, (width, 450)))
    assert "not measured" in written
    assert any(text.startswith("colour: effect") for text in written)


def test_cells_of_a_deep_model_have_the_effects_colour_and_the_nets_size():
    model = tiny_model(Tiny(n_layers=6, n_heads=3, d_model=16, d_head=4, n_ctx=20, d_vocab=12))
    target = Target(5, 5, model.tokenizer.labels[5])
    deep = expand(record(model, [1, 5, 3, 7, 2, 4]), target, False, 300)
    one, other = Head(2, 1), Head(3, 0)
    effects = MeasuredEffects({one: -2.0, other: 2.0})
    plain, coloured = drawn(deep, None), drawn(deep, effects)
    inked = {}
    for head in (one, other, Head(4, 2)):
        rects = [
            next(
                item
                for item in band(figure, head).items
                if item.fill not in (None, LIGHT.background)
            )
            for figure in (plain, coloured)
        ]
        assert bounds(rects[0]) == bounds(rects[1])
        inked[head] = rects[1].fill
    assert inked == {one: LIGHT.negative, other: LIGHT.positive, Head(4, 2): LIGHT.remainder}
    cut = [item for item in band(coloured, one).items if item.fill == LIGHT.background]
    whole = [item for item in band(coloured, other).items if item.fill == LIGHT.background]
    assert len(cut) == len(whole) + 1


def test_heads_have_the_colour_of_their_own_effect(induction):
    effects = MeasuredEffects({Head(0, 0): 1.0})
    figure = drawn(induction, effects)
    bar = band(figure, Head(0, 0)).items[0]
    assert isinstance(bar, Rect)
    assert bar.fill == LIGHT.positive
    others = [
        group.items[0].fill
        for group in groups(figure)
        if isinstance(group.data, Head) and group.data != Head(0, 0)
    ]
    assert others
    assert set(others) <= {LIGHT.remainder, None}
    of_paths = drawn(induction, MeasuredEffects({UP: 1.0}))
    assert band(of_paths, Head(0, 0)).items[0].fill == LIGHT.node


def test_beside_a_measured_head_stands_its_effect_and_beside_others_grey_nets(induction):
    """Nets in blue and orange stood beside squares in the colours of effects."""
    effects = MeasuredEffects({Head(0, 0): -6.4})
    plain, coloured = drawn(induction, None), drawn(induction, effects)

    def beside(figure, name):
        words = list(all_words(figure))
        place = next(n for n, word in enumerate(words) if word.text == name)
        return words[place + 1]

    number = beside(coloured, "0.0")
    assert (number.text, number.color) == ("−6.40", LIGHT.negative_text)
    net, other = beside(plain, "1.0"), beside(coloured, "1.0")
    assert net.text == other.text
    assert (net.color, other.color) == (LIGHT.positive_text, LIGHT.muted)
    assert "colour, number: effect of removing the head, later layers free" in texts(coloured)
    # Of paths only bands are measured: no number is an effect.
    of_paths = drawn(induction, MeasuredEffects({UP: 1.0}))
    assert beside(of_paths, "0.0").text == beside(plain, "0.0").text
    assert "colour: effect of removing the path, later layers free" in texts(of_paths)


def all_words(part):
    for item in part.items:
        if isinstance(item, Text):
            yield item
        elif isinstance(item, Group):
            yield from all_words(item)


def test_rows_of_one_path_or_head_become_effects_and_others_do_not():
    sites = ("1.0", "token > 0.0", "0.0 + 1.0", "order 1", "token > 0.0 + 1.0")
    rows = [Row(Site.parse(site), None, 0.0, float(n), None, 1) for n, site in enumerate(sites)]
    effects = MeasuredEffects.of_rows(rows, "kl", frozen=True)
    assert effects.values == {Head(1, 0): 0.0, Path.parse("token > 0.0"): 1.0}
    assert (effects.metric, effects.frozen, effects.limit) == ("kl", True, 1.0)


def test_colours_change_to_effects_and_back_without_a_new_layout(induction, strongest):
    plain = Diagram(induction, theme=LIGHT, width=900, height=500)
    before = dump(plain.picture(Selection()).figure)
    coloured = plain.with_effects(MeasuredEffects({strongest[0]: -1.0}))
    assert coloured.layout is plain.layout
    assert dump(coloured.picture(Selection()).figure) != before
    assert dump(coloured.with_effects(None).picture(Selection()).figure) == before
    assert dump(plain.picture(Selection()).figure) == before


def test_an_mlp_has_its_own_effect_as_a_source_and_as_a_step(induction):
    rows = [Row(Site.parse("mlp 1"), None, 0.0, -2.0, None, 1)]
    effects = MeasuredEffects.of_rows(rows, "logit", frozen=False)
    assert effects.values == {Mlp(1): -2.0}
    assert effects.of(Mlp(1)) == effects.of(Source("mlp", 1)) == -2.0
    assert effects.of(Source("mlp", 0)) is None
    assert effects.of(Source("mlp bias", 1)) is None
    assert effects.of(Path.parse("mlp 1")) is None  # its path alone is another experiment
    assert effects.asks(Source("mlp", 0))
    assert not effects.asks(Head(0, 0))
    assert not effects.asks(Source("bias", 1))
    written = texts(drawn(induction, effects))
    assert "colour, number: effect of removing the MLP, later layers free" in written


def test_nodes_say_their_effect_where_their_kind_is_measured(induction):
    figure = drawn(induction, MeasuredEffects({Head(0, 0): 1.0}))
    titles = {group.data: group.title for group in groups(figure) if isinstance(group.data, Head)}
    assert titles.pop(Head(0, 0)).endswith(", effect +1.00 logits")
    assert titles
    assert all(title.endswith(", effect not measured") for title in titles.values())
    of_paths = drawn(induction, MeasuredEffects({UP: 1.0}))
    assert "effect" not in band(of_paths, Head(0, 0)).title
