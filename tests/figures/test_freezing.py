"""The freezing figures show the numbers that were found, at every size, within their frame."""

import math
from dataclasses import replace

import pytest

from circuitview.core.checkpoint import open_model
from circuitview.core.names import Head
from circuitview.core.progress import finished
from circuitview.figures.figure import Box, Rect, bounds, groups, texts, walk
from circuitview.figures.freezing.finding import finding_figure, height_for
from circuitview.figures.theme import DARK, LIGHT
from circuitview.session import numbers
from circuitview.session.freezing import FreezingQuestion, run_freezing
from circuitview.session.state import State

SIZES = ((320.0, 200.0), (320.0, 260.0), (560.0, 900.0), (700.0, 230.0), (1280.0, 720.0))
ABOUT = State(model="attn-only-2l", prompt="I like green tea, so I drink green")
QUESTIONS = {
    "linearity": FreezingQuestion(about=ABOUT, experiment="linearity"),
    "swap": FreezingQuestion(about=ABOUT, experiment="swap", position=3, new_token=" black"),
    "row": FreezingQuestion(
        about=ABOUT,
        experiment="row",
        other="I like black tea, so I drink green",
        head=Head(0, 1),
    ),
}


@pytest.fixture(scope="module")
def findings():
    model = open_model("attn-only-2l")
    return {name: finished(run_freezing(model, question)) for name, question in QUESTIONS.items()}


def drawn(findings, name, size=(900.0, 500.0), theme=LIGHT, **kwargs):
    width, height = size
    return finding_figure(
        QUESTIONS[name], findings[name], theme=theme, width=width, height=height, **kwargs
    )


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_everything_stays_within_the_frame(findings, name, size, theme):
    figure = drawn(findings, name, size, theme)
    frame = Box(0, 0, *size)
    for item in walk(figure):
        box = bounds(item)
        assert box is None or frame.contains(box, slack=1.0), (item, box)
    assert figure.background == theme.background


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_former_question_is_called_one_and_the_file_says_what_was_run(findings, name):
    assert not any("former" in text for text in texts(drawn(findings, name)))
    assert any("of a former question" in text for text in texts(drawn(findings, name, former=True)))
    assert "␣green(" in drawn(findings, name).description
    assert "float32" in drawn(findings, name).description


def test_linearity_bars_grow_with_the_logarithm(findings):
    figure = drawn(findings, "linearity")
    bars = [item for item in walk(figure) if isinstance(item, Rect)]
    found = findings["linearity"]
    values = [found.frozen.added, found.free.added, found.frozen.doubled, found.free.doubled]
    values.append(found.size)
    assert len(bars) == len(values)
    per_decade = [
        (bar.width - bars[0].width) / (math.log10(value) - math.log10(values[0]))
        for bar, value in zip(bars[1:2] + bars[3:], values[1:2] + values[3:], strict=True)
    ]
    assert per_decade == pytest.approx([per_decade[0]] * len(per_decade), rel=1e-9)
    assert numbers.logits(found.size) in texts(figure)


def test_a_perfect_fit_and_an_undefined_one_are_drawn_without_a_bar_that_lies(findings):
    found = findings["linearity"]
    odd = replace(found, frozen=replace(found.frozen, added=0.0, doubled=math.nan))
    figure = finding_figure(QUESTIONS["linearity"], odd, theme=LIGHT, width=900, height=500)
    assert {"0", "undefined"} <= set(texts(figure))
    widths = sorted(item.width for item in walk(figure) if isinstance(item, Rect))
    assert len(widths) == 4  # none for what is undefined
    assert widths[0] == 1.0


def test_the_three_bars_of_a_swap_carry_its_three_numbers(findings):
    found = findings["swap"]
    shown = texts(drawn(findings, "swap"))
    for value in (found.frozen, found.predicted, found.free):
        assert numbers.logits(value, signed=True) in shown
    assert shown.index("frozen") < shown.index("foretold by paths") < shown.index("free")


@pytest.mark.parametrize("size", [(560.0, 500.0), (900.0, 330.0), (900.0, 520.0)], ids=str)
def test_the_paths_that_are_shown_and_those_that_are_not_add_up(findings, size):
    found = findings["swap"]
    table = next(group for group in groups(drawn(findings, "swap", size)) if group.id == "paths")
    rows = [group for group in groups(table.items) if group.data is not None]
    changes = {row.path: row.change for row in found.paths}
    rest = found.predicted - sum(changes[group.data] for group in rows)
    more = next(group for group in groups(table.items) if group.id == "more")
    assert texts(more.items)[0] == f"{found.n_paths - len(rows)} more"
    assert texts(more.items)[-1] == numbers.logits(rest, signed=True)


def test_a_row_marks_the_token_that_differs_and_shows_both_numbers(findings):
    found = findings["row"]
    figure = drawn(findings, "row")
    shown = texts(figure)
    assert "3 ␣green → ␣black" in shown
    assert "4 ␣tea" in shown
    for weights in (found.weights_a, found.weights_b):
        assert numbers.logits(float(weights[4]), digits=3) in shown
    rows = [group for group in groups(figure) if isinstance(group.data, int)]
    assert [group.data for group in rows] == list(range(10))
    assert any("scores of unchanged pairs stay" in text for text in shown)


def test_in_little_room_the_rows_whose_weights_move_most_stay(findings):
    found = findings["row"]
    figure = drawn(findings, "row", (500.0, 200.0))
    kept = [group.data for group in groups(figure) if isinstance(group.data, int)]
    assert 1 <= len(kept) < 10
    assert abs(found.weight_changes).argmax() in kept
    assert any(f"{10 - len(kept)} more positions" in text for text in texts(figure))


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("width", [330.0, 500.0, 1000.0])
def test_the_height_asked_for_leaves_nothing_out(findings, name, width):
    size = width, height_for(QUESTIONS[name], findings[name], width)
    shown = texts(drawn(findings, name, size))
    wanted = {"linearity": "largest |logit|", "swap": "logit at dest", "row": "9 ␣green"}
    assert wanted[name] in shown
