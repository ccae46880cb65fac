"""Loss by path order: bars from zero, the clean line, and what each order adds."""

import pytest

from circuitview.figures.figure import Curve, Rect, Text, groups, texts, walk
from circuitview.figures.order_bars import order_figure
from circuitview.figures.theme import DARK, LIGHT, contrast
from tests.figures.lab_rows import SIZES, order_rows, require_sound

LOSS = [5.404, 4.585, 4.22]


def drawn(rows, size=(1280, 720), theme=LIGHT, metric="loss", clean=None):
    return order_figure(
        rows,
        metric=metric,
        clean=rows[-1].value if clean is None and rows else clean or 0.0,
        theme=theme,
        width=size[0],
        height=size[1],
        title="Loss by path order",
        note="a model, 20 windows of 128 tokens",
    )


def bars(figure, name):
    return [
        next(item for item in group.items if isinstance(item, Rect))
        for group in groups(figure)
        if (group.id or "").startswith(name)
    ]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "values",
    [
        LOSS,
        [0.0, 0.0, 0.0],
        [2.0],
        [1e6, -1e6, 3e6],
        [-3.5, 3.5, 6.1],
        [-8.0, -7.0, -2.5],
        [1e-9, 2e-9],
        [11 - order**0.7 for order in range(13)],
        [11 - order**0.4 for order in range(49)],
    ],
    ids=["loss", "zero", "one", "huge", "signs", "negative", "tiny", "12 layers", "48 layers"],
)
def test_order_figure_is_sound_at_every_size_for_all_values(values, size, theme):
    for metric in ("loss", "logit"):
        require_sound(drawn(order_rows(values), size, theme, metric), size)


def test_bars_stand_on_zero_and_are_as_high_as_their_values():
    found = bars(drawn(order_rows(LOSS)), "order-")
    assert [bar.height / found[0].height for bar in found] == pytest.approx(
        [value / LOSS[0] for value in LOSS]
    )
    assert len({round(bar.y + bar.height, 6) for bar in found}) == 1


def test_the_clean_line_meets_the_last_bar():
    figure = drawn(order_rows(LOSS))
    line = next(
        item
        for group in groups(figure)
        if group.id == "clean"
        for item in group.items
        if isinstance(item, Curve) and item.dash
    )
    assert line.commands[0][2] == pytest.approx(bars(figure, "order-")[-1].y)
    assert "clean 4.220" in texts(figure)


def test_marginal_values_are_written_with_their_errors():
    written = texts(drawn(order_rows(LOSS)))
    assert "−0.819 ± 0.092" in written
    assert "−0.365 ± 0.084" in written
    assert "marginal (nats)" in written
    assert len(bars(drawn(order_rows(LOSS)), "marginal-")) == 2
    without = texts(drawn(order_rows(LOSS, errors=False)))
    assert "−0.819" in without


def test_a_low_picture_writes_the_marginal_values_under_the_orders():
    figure = drawn(order_rows(LOSS), (640, 360))
    assert not bars(figure, "marginal-")
    assert "−0.819 ± 0.092" in texts(figure)


def test_whiskers_reach_one_standard_error_to_each_side():
    rows = order_rows(LOSS)
    figure = drawn(rows, (900, 500))
    group = next(group for group in groups(figure) if group.id == "marginal-1")
    bar = next(item for item in group.items if isinstance(item, Rect))
    whisker = [item for item in group.items if isinstance(item, Curve)][-1]
    (_, _, top), (_, _, bottom) = whisker.commands[:2]
    reach = abs(rows[1].marginal_stderr / rows[1].marginal) * bar.height
    assert (bottom - top) / 2 == pytest.approx(reach)
    assert (bottom + top) / 2 == pytest.approx(bar.y + bar.height)


def test_what_an_order_takes_away_hangs_and_is_hatched():
    group = next(
        group for group in groups(drawn(order_rows([1.0, 0.2, 3.0]))) if group.id == "marginal-1"
    )
    bar, *marks = group.items
    assert bar.fill == LIGHT.negative
    assert any(isinstance(item, Curve) and item.stroke == LIGHT.background for item in marks)
    assert group.title == "order 1: marginal −0.800 ± 0.004"


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_words_of_the_order_figure_can_be_read_on_its_paper(theme):
    words = [item for item in walk(drawn(order_rows(LOSS), theme=theme)) if isinstance(item, Text)]
    assert min(contrast(text.color, theme.background) for text in words) >= 4.5


def test_a_picture_of_no_orders_says_so():
    assert "nothing measured yet" in texts(drawn([]))
