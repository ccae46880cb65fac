"""The freezing figures show the numbers that were found, at every size, within their frame."""

import math
from dataclasses import replace

import pytest

from circuitview.core.checkpoint import open_model
from circuitview.core.names import Head
from circuitview.core.progress import finished
from circuitview.figures.figure import Box, Rect, Text, bounds, groups, texts, walk
from circuitview.figures.freezing.finding import finding_figure, height_for
from circuitview.figures.freezing.linearity import DEFINED
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
    words = "Of another question: attn-only-2l, float32"
    assert not any("another question" in text for text in texts(drawn(findings, name)))
    assert any(text.startswith(words) for text in texts(drawn(findings, name, former=True)))
    assert "␣green(" in drawn(findings, name).description
    assert "float32" in drawn(findings, name).description


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_of_a_former_question_is_pale_but_its_heading(findings, name):
    head, *rest = drawn(findings, name, former=True, pale=True).items
    assert {item.opacity for item in walk((head,)) if isinstance(item, Text)} == {1.0}
    seen = {item.opacity for item in walk(rest) if isinstance(item, Text | Rect)}
    assert max(seen) < 0.5
    assert texts(drawn(findings, name, former=True)) == texts((head, *rest))


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("width", [381.0, 1280.0])
def test_every_experiment_names_its_prompts_whole_where_they_fit(findings, name, width):
    shown = texts(drawn(findings, name, (width, 500.0)))
    assert any("“I like green tea, so I drink green”" in text for text in shown)
    if name == "row":
        assert "B: “I like black tea, so I drink green”" in shown
    if name == "swap":
        assert any("target ␣tea at dest 9 (␣green)" in text for text in shown)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("width", [381.0, 700.0, 1280.0])
def test_words_stay_in_the_frame_in_a_font_that_is_an_eighth_wider(findings, name, width):
    """In exported files; the program's font is not installed everywhere. DejaVu Sans is up to about
    12 % wider."""
    for item in walk(drawn(findings, name, (width, 600.0))):
        box = bounds(item)
        if not isinstance(item, Text):
            continue
        more = 0.12 * (box.right - box.left)
        left = {"start": 0.0, "middle": more / 2, "end": more}[item.anchor]
        assert box.left - left >= 0, item
        assert box.right + more - left <= width, item


def test_linearity_says_what_g_a_and_b_are_and_that_its_axis_is_logarithmic(findings):
    height = height_for(QUESTIONS["linearity"], findings["linearity"], 381.0)
    shown = texts(drawn(findings, "linearity", (381.0, height)))
    assert {DEFINED, "a: “I like green tea, so I drink green”"} <= set(shown)
    assert "b: the same tokens in another order, seed 0" in shown
    assert any("logits, logarithmic" in text for text in shown)
    assert not any("recomputed" in text for text in shown)


def test_linearity_uses_the_height_it_has(findings):
    bars = [
        item
        for item in walk(drawn(findings, "linearity", (950.0, 535.0)))
        if isinstance(item, Rect)
    ]
    assert max(bar.y + bar.height for bar in bars) > 0.7 * 535


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


@pytest.mark.parametrize("width", [381.0, 950.0])
def test_whole_logits_of_a_swap_stand_beside_their_changes(findings, width):
    found = findings["swap"]
    rows = [
        group
        for group in groups(drawn(findings, "swap", (width, 535.0)))
        if group.title and "clean" in group.title
    ]
    mover = found.own[0]
    assert texts(rows[0].items) == (
        mover.label,
        numbers.logits(mover.clean),
        numbers.logits(mover.clean + mover.frozen),
        numbers.logits(mover.frozen, signed=True),
        numbers.logits(mover.clean + mover.free),
        numbers.logits(mover.free, signed=True),
    )


def test_without_room_for_changes_all_columns_are_whole_logits(findings):
    rows = [
        group
        for group in groups(drawn(findings, "swap", (640.0, 400.0)))
        if group.title and "clean" in group.title
    ]
    mover = findings["swap"].own[0]
    wanted = (mover.clean, mover.clean + mover.frozen, mover.clean + mover.free)
    assert texts(rows[0].items)[1:] == tuple(numbers.logits(value) for value in wanted)


@pytest.mark.parametrize("width", [381.0, 950.0])
def test_a_path_reads_as_weight_times_after_minus_before(findings, width):
    table = next(
        group for group in groups(drawn(findings, "swap", (width, 535.0))) if group.id == "paths"
    )
    names = texts(next(group for group in groups(table.items) if group.id == "columns").items)
    assert [name.split()[0] for name in names] == ["path", "weight", "×", "−", "="]
    row = next(group for group in groups(table.items) if group.data is not None)
    path = next(path for path in findings["swap"].paths if path.path == row.data)
    assert texts(row.items) == (
        path.path.label,
        numbers.weight(path.weight),
        *(numbers.logits(v, signed=True) for v in (path.after, path.before, path.change)),
    )


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


def test_in_a_narrow_dock_both_numbers_stand_behind_their_bars(findings):
    found = findings["row"]
    width = 381.0
    figure = drawn(findings, "row", (width, height_for(QUESTIONS["row"], found, width)))
    row = next(group for group in groups(figure) if group.data == 4)
    amounts = [item for item in walk(row.items) if isinstance(item, Text)][1:]
    pairs = ((found.weights_a, 3), (found.weights_b, 3), (found.scores_a, 2), (found.scores_b, 2))
    wanted = [numbers.logits(float(values[4]), digits=digits) for values, digits in pairs]
    assert [item.text for item in amounts] == wanted
    boxes = [bounds(item) for item in amounts]
    bars = [bounds(item) for item in walk(row.items) if isinstance(item, Rect)]
    assert not any(box.overlaps(bar) for box in boxes for bar in bars)


def test_where_numbers_do_not_fit_the_bars_have_a_scale(findings):
    found = findings["row"]
    shown = texts(drawn(findings, "row", (340.0, 400.0)))
    most = numbers.logits(float(max(found.weights_a.max(), found.weights_b.max())))
    assert f"weight, 0 to {most}" in shown
    assert not any(numbers.logits(float(found.weights_a[4]), digits=3) == text for text in shown)


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
