"""OV bars and the path table: sums are exact, whatever is left out."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from circuitview.figures.figure import Box, Curve, Figure, Rect, Text, bounds, groups, texts, walk
from circuitview.figures.ov_bars import OVRow, ov_figure
from circuitview.figures.path_table import TableRow, fitting_rows, table_figure
from circuitview.figures.theme import LIGHT
from circuitview.session import numbers

amounts = st.floats(-50, 50, allow_nan=False)


def bars(contributions, size=(460, 460), notes=True) -> Figure:
    more = ((("␣tea", 1.0), ("␣coffee", 0.5)), (("␣the", -1.0),)) if notes else ((), ())
    rows = [
        OVRow(f"␣t{place}", 0.5, 2 * amount, amount, *more)
        for place, amount in enumerate(contributions)
    ]
    width, height = size
    return ov_figure(rows, title="Head 1.4", subtitle="s", theme=LIGHT, width=width, height=height)


def sources(figure: Figure) -> list[int]:
    return [group.data for group in groups(figure) if group.data is not None]


def test_bars_show_weight_times_value_is_contribution() -> None:
    figure = bars([0.78, -1.5])
    row = next(group for group in groups(figure) if group.id == "source-0")
    assert texts(row.items)[:6] == ("␣t0", "0.50", "×", "+1.56", "=", "+0.78")
    assert row.title == "␣t0: 0.50 × +1.56 = +0.78 logits"


def test_bars_start_at_the_zero_line_with_lengths_in_proportion() -> None:
    figure = bars([2.0, -1.0], notes=False)
    rows = [group for group in groups(figure) if group.data is not None]
    zero = [
        item.commands[0][1]
        for row in rows
        for item in row.items
        if isinstance(item, Curve) and item.stroke == LIGHT.muted
    ]
    positive, negative = (
        next(item for item in group.items if isinstance(item, Rect)) for group in rows
    )
    assert zero == pytest.approx([positive.x, positive.x])
    assert negative.x + negative.width == pytest.approx(positive.x)
    assert positive.width == pytest.approx(2 * negative.width)
    assert (positive.fill, negative.fill) == (LIGHT.positive, LIGHT.negative)


def test_negative_bars_are_hatched_within_themselves_and_positive_ones_are_not() -> None:
    figure = bars([2.0, -1.0], notes=False)
    first, second = (group for group in groups(figure) if group.data is not None)
    hatches = [
        [
            item
            for item in group.items
            if isinstance(item, Curve) and item.stroke == LIGHT.background
        ]
        for group in (first, second)
    ]
    assert [len(found) for found in hatches] == [0, 1]
    bar = next(item for item in second.items if isinstance(item, Rect))
    assert bounds(bar).contains(bounds(hatches[1][0]), slack=0.8)


@given(st.lists(amounts, min_size=1, max_size=90))
@example([-5e-324])  # its bar was infinitely long, and hatched for ever
def test_bars_and_others_add_up_to_the_sum(contributions: list[float]) -> None:
    figure = bars(contributions)
    shown = sources(figure)
    assert shown == sorted(shown)
    left_out = [value for place, value in enumerate(contributions) if place not in shown]
    total = next(group for group in groups(figure) if group.id == "sum")
    assert numbers.logits(math.fsum(contributions), signed=True) in texts(total.items)
    others = [group for group in groups(figure) if group.id == "others"]
    assert len(others) == bool(left_out)
    if left_out:
        assert numbers.logits(math.fsum(left_out), signed=True) in texts(others[0].items)
        kept = [abs(contributions[place]) for place in shown]
        assert min(kept) >= max(abs(value) for value in left_out)
        assert texts(others[0].items)[0] == f"{len(left_out)} others"


@pytest.mark.parametrize("size", [(460, 460), (320, 260), (900, 420), (460, 330)])
@pytest.mark.parametrize("count", [1, 10, 64])
def test_bars_stay_on_the_paper_and_rows_apart(count, size) -> None:
    figure = bars([(-1) ** place * (place + 0.5) for place in range(count)], size)
    for item in walk(figure):
        box = bounds(item)
        assert box is None or Box(0, 0, *size).contains(box, slack=1), item
    boxes = [bounds(item) for item in walk(figure) if isinstance(item, Text)]
    for place, box in enumerate(boxes):
        for other in boxes[place + 1 :]:
            smaller = Box(box.left, box.top + 2.5, box.right, box.bottom - 2)
            assert not smaller.overlaps(
                Box(other.left, other.top + 2.5, other.right, other.bottom - 2)
            )


def test_narrow_bars_keep_their_labels_contributions_and_length() -> None:
    figure = bars([2.0, -1.0], size=(260, 300), notes=False)
    row = next(group for group in groups(figure) if group.data == 0)
    assert texts(row.items) == ("␣t0", "+2.00")
    assert max(item.width for item in row.items if isinstance(item, Rect)) > 60


def test_no_rows_make_an_empty_figure() -> None:
    assert sources(bars([])) == []


def table(values_by_group: list[list[float]]) -> list[TableRow]:
    rows: list[TableRow] = []
    for place, values in enumerate(values_by_group):
        rows.append(TableRow((f"layer {place}", math.fsum(values)), "group", id=f"g{place}"))
        rows += [TableRow((f"token > {place}.{head}", value)) for head, value in enumerate(values)]
    flat = [value for values in values_by_group for value in values]
    rows.append(TableRow(("logit", math.fsum(flat)), "total"))
    return rows


@given(
    st.lists(st.lists(amounts, min_size=1, max_size=12), min_size=1, max_size=5),
    st.integers(8, 40),
)
def test_table_rows_of_each_group_add_up_to_its_subtotal(groups_of, capacity) -> None:
    rows = table(groups_of)
    shown = fitting_rows(rows, capacity, 2)
    assert len(shown) <= capacity
    subtotal, parts = None, []
    flattened = all(row.kind != "group" for row in shown)
    for row in shown:
        if flattened:
            parts += [row.cells[1]] if row.kind == "row" else []
            continue
        if row.kind == "row":
            parts.append(row.cells[1])
            continue
        if subtotal is not None:
            assert math.fsum(parts) == pytest.approx(subtotal, abs=1e-9)
        subtotal, parts = (row.cells[1], []) if row.kind == "group" else (None, [])
    if flattened:
        assert math.fsum(parts) == pytest.approx(shown[-1].cells[1], abs=1e-9)


def test_table_leaves_out_the_smallest_and_says_how_many() -> None:
    shown = fitting_rows(table([[5.0, 0.1, -4.0, 0.2, 0.3]]), 5, 2)
    assert [row.cells[0] for row in shown] == [
        "layer 0",
        "token > 0.0",
        "token > 0.2",
        "3 more",
        "logit",
    ]
    assert shown[3].cells[1] == pytest.approx(0.6)


def test_table_never_writes_one_more_in_place_of_the_row_itself() -> None:
    shown = fitting_rows(table([[1.0], [5.0, 4.0, 3.0, 2.0]]), 7, 2)
    assert "1 more" not in [row.cells[0] for row in shown]


def test_table_that_fits_is_shown_whole() -> None:
    rows = table([[1.0, 2.0]])
    assert fitting_rows(rows, 4, 2) == tuple(rows)


@pytest.mark.parametrize("size", [(460, 520), (300, 260), (460, 110), (900, 400)])
def test_table_stays_on_the_paper_with_numbers_on_one_edge(size) -> None:
    rows = table([[0.5 * place for place in range(8)], [-1.0] * 30])
    figure = table_figure(
        ["path", "logits"],
        rows,
        title="T",
        subtitle="s",
        theme=LIGHT,
        width=size[0],
        height=size[1],
    )
    for item in walk(figure):
        box = bounds(item)
        assert box is None or Box(0, 0, *size).contains(box, slack=1), item
    edges = {item.x for item in walk(figure) if isinstance(item, Text) and item.anchor == "end"}
    assert len(edges) == 1


def test_table_tells_negatives_by_minus_and_colour_and_subtotals_by_weight() -> None:
    figure = table_figure(
        ["path", "logits"],
        table([[1.25, -2.0]]),
        title="",
        subtitle="",
        theme=LIGHT,
        width=300,
        height=300,
    )
    written = {item.text: item for item in walk(figure) if isinstance(item, Text)}
    assert written["−2.00"].color == LIGHT.negative_text
    assert written["+1.25"].color == LIGHT.positive_text
    assert written["layer 0"].bold
    assert not written["token > 0.1"].bold
