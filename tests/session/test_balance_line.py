"""The balance in words."""

import re
from dataclasses import replace

import pytest

from circuitview.session.balance import Balance, balance, balance_text, short_name
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import State


@pytest.fixture(scope="module")
def expansion():
    state = State(model="induction-by-hand", prompt="I like green tea , so I drink green")
    return Pipeline().advance(state).expansion


def test_line_names_every_group_sum_model_and_error(expansion):
    pattern = (
        r"direct \S+ \+ layer 0 \S+ \+ layer 1 \S+ \+ virtual \S+ \+ positions and biases \S+"
        r" = \S+; model \S+; error \S+"
    )
    assert re.fullmatch(pattern, balance_text(expansion))


def test_line_of_one_layer_names_no_virtual_heads():
    state = State(model="cat-on-the-mat", prompt="the cat sat on the mat . the")
    line = balance_text(Pipeline().advance(state).expansion)
    pattern = r"direct \S+ \+ layer 0 \S+ \+ positions and biases \S+ = \S+; model \S+; error \S+"
    assert re.fullmatch(pattern, line)


def test_groups_of_the_line_add_up_to_its_sum(expansion):
    summed = balance(expansion)
    assert sum(value for _, value in summed.groups) == pytest.approx(summed.total, abs=1e-5)
    assert summed.model == expansion.logit
    assert summed.dtype == "float32"
    assert summed.balanced


def test_imbalance_is_said(expansion):
    broken = balance(replace(expansion, constant=expansion.constant + 1))
    assert not broken.balanced
    assert broken.text.endswith("error 1e0 passes the tolerance")


def test_minus_is_a_true_minus_and_zero_has_none(expansion):
    summed = replace(balance(expansion), groups=(("direct", -1.5), ("virtual", -1e-9)))
    assert summed.text.startswith("direct −1.50 + virtual 0.00 = ")


def test_short_names():
    assert short_name("layer-11 heads") == "layer 11"
    assert short_name("virtual heads") == "virtual"
    assert short_name("positions and biases") == "positions and biases"


def two_sided(total: float, model: float, balanced: bool) -> str:
    groups = (("direct", total),)
    return Balance(groups, total, model, model - total, balanced, "float32").text


def test_a_sum_that_rounding_splits_between_two_digits_reads_alike_on_both_sides():
    """3.96 = 3.95 stood under a diagram that balanced."""
    line = two_sided(3.955001, 3.954999, balanced=True)
    assert "= 3.955; model 3.955; error 2e-6" in line


def test_an_imbalance_below_the_second_digit_shows():
    line = two_sided(3.9501, 3.9502, balanced=False)
    assert "= 3.9501; model 3.9502; error 1e-4 passes the tolerance" in line
