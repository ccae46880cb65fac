"""A run and its repetition: each column compared for what it is, and of what they are."""

from dataclasses import replace

import numpy as np
import pytest

import circuitview
from circuitview.session.lab import Question
from circuitview.session.run_difference import difference, lacks_contributions
from tests.session.lab_runs import MODEL, found, prompts

ASKED = Question(model=MODEL, prompts=prompts(MODEL, 1))
PAIR = replace(ASKED, prompts=prompts(MODEL, 2))
ORDERS = replace(PAIR, what="orders", metric="loss")


def with_table(run, **changed):
    return replace(run, table=replace(run.table, **changed))


def with_row(run, place=1, **changed):
    """`run` with another of its rows."""
    rows = list(run.table.rows)
    rows[place] = replace(rows[place], **changed)
    return with_table(run, rows=tuple(rows))


def moved(run, **by):
    """`run` with some numbers of a row moved."""
    row = run.table.rows[1]
    return with_row(run, **{key: getattr(row, key) + step for key, step in by.items()})


def test_the_same_run_is_equal():
    assert difference(found(PAIR), found(PAIR)) is None


def test_difference_is_measured_and_has_a_reason():
    first = found(ASKED)
    values = first.table.values.copy()
    values[1, 0] += 0.25
    said = difference(first, with_table(first, values=values))
    assert (
        said
        == "the numbers differ: ablated by up to 2e-01; the program or the machine may have changed"
    )
    other = replace(with_table(first, values=values), model_hash="0" * 64, version="0.0.9")
    said = difference(other, first)
    assert "the model's weight file changed" in said
    assert f"version changed (0.0.9, {circuitview.__version__} now)" in said
    assert "4 rows of 1 cases, 4 of 2 now" in difference(first, found(PAIR))
    fewer = replace(first, threads=first.threads + 1)
    assert "the number of threads changed" in difference(fewer, moved(first, effect=1.0))


@pytest.mark.parametrize(
    ("question", "key", "name"),
    [
        (PAIR, "contribution", "contribution"),
        (PAIR, "effect", "effect"),
        (PAIR, "value", "ablated"),
        (PAIR, "stderr", "±"),
        (ORDERS, "marginal", "marginal"),
        (ORDERS, "marginal_stderr", "± of marginal"),
    ],
)
def test_the_column_that_differs_is_named(question, key, name):
    """A difference in contribution alone was told as a largest difference of 0e+00."""
    first = found(question)
    said = difference(first, moved(first, **{key: 0.5}))
    assert (
        said
        == f"the numbers differ: {name} by up to 5e-01; the program or the machine may have changed"
    )


def test_every_column_that_differs_is_named():
    first = found(PAIR)
    said = difference(first, moved(first, effect=0.5, contribution=-0.25))
    assert "contribution by up to 2e-01, effect by up to 5e-01" in said


def test_clean_values_count():
    first = found(PAIR)
    clean = first.table.clean_values + np.array([0.0, 0.125])
    assert "clean by up to 1e-01" in difference(first, with_table(first, clean_values=clean))
    assert "clean by up to 5e-01" in difference(
        first, with_table(first, clean=first.table.clean + 0.5)
    )


def test_last_bit_is_a_difference():
    first = found(ASKED)
    values = first.table.values.copy()
    values[0, 0] = np.nextafter(values[0, 0], 1e9)
    assert "ablated by up to" in difference(first, with_table(first, values=values))
    zero, minus = with_row(first, contribution=0.0), with_row(first, contribution=-0.0)
    assert "contribution by the sign of a zero" in difference(zero, minus)


def test_no_number_is_equal_to_none_and_to_nothing_else():
    first = found(ASKED)
    none = with_row(first, contribution=float("nan"))
    assert difference(none, with_row(first, contribution=float("nan"))) is None
    assert "contribution is a number in one alone" in difference(first, none)
    assert "contribution is a number in one alone" in difference(
        first, with_row(first, contribution=None)
    )


def test_another_site_is_named():
    """Of other rows the numbers can't be compared."""
    first = found(ASKED)
    site = first.table.rows[2].site
    said = difference(first, with_row(first, site=site))
    assert said == "row 2 is 0.1, 1.0 now; the program or the machine may have changed"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model_hash": "0" * 64}, "the model's weight file changed"),
        ({"data_hash": "0" * 64}, "what is run changed"),
        ({"donor_hash": "0" * 64}, "the text that zero reads changed"),
        ({"target": "other"}, "the target changed (other, "),
    ],
)
def test_equal_numbers_of_something_else_are_not_called_equal(changed, words):
    first = found(ASKED)
    said = difference(replace(first, **changed), first)
    assert said.startswith(f"every number is equal, bit by bit, but {words}")


def test_equal_numbers_by_another_version_are_equal():
    first = found(ASKED)
    assert difference(replace(first, version="0.0.9", threads=99), first) is None


def test_a_run_without_contributions_is_compared_in_the_rest():
    """Once a text had none."""
    again = found(PAIR)
    rows = tuple(replace(row, contribution=None) for row in again.table.rows)
    first = with_table(again, rows=rows)
    assert difference(first, again) is None
    assert lacks_contributions(first, again)
    assert not lacks_contributions(again, again)
    assert not lacks_contributions(first, first)
    assert "effect by up to 5e-01" in difference(first, moved(again, effect=0.5))
    # Where some are known, one that is missing is a difference.
    assert "contribution is a number in one alone" in difference(
        with_row(again, contribution=None), again
    )
    assert "contribution is a number in one alone" in difference(again, first)
