"""A run as text: what the table shows is what JSON and CSV hold in full."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from circuitview.session.lab import Question
from circuitview.session.run_text import as_csv, as_json, as_table
from tests.session.lab_runs import MODEL, found, prompts

HEADS = Question(model=MODEL, prompts=prompts(MODEL))
ORDERS = Question(model=MODEL, what="orders", metric="loss", prompts=prompts(MODEL, 3))


@pytest.fixture(scope="module")
def heads():
    return found(HEADS)


@pytest.fixture(scope="module")
def orders():
    return found(ORDERS)


def test_json_has_the_promised_keys(heads):
    written = as_json(heads)
    promised = ["model", "metric", "with", "frozen", "seed", "clean"]
    assert list(written)[:6] == promised
    assert {"model_hash", "data_hash", "version", "target", "n", "parameters"} <= set(written)
    assert list(written["rows"][0])[:5] == ["what", "contribution", "effect", "value", "stderr"]
    for entry, row in zip(written["rows"], heads.table.rows, strict=True):
        assert entry["what"] == str(row.site)
        assert entry["effect"] == row.effect
        assert entry["contribution"] == row.contribution


def test_json_of_orders_has_their_margins(orders):
    first, *others = as_json(orders)["rows"]
    assert first["what"] == "order 0"
    assert first["marginal"] is None
    assert [row["marginal_stderr"] > 0 for row in others] == [True, True]


def test_json_of_one_prompt_has_no_error(heads):
    run = found(replace(HEADS, prompts=HEADS.prompts[:1]))
    assert [row["stderr"] for row in as_json(run)["rows"]] == [None] * 4


def test_what_is_no_number_is_null(heads):
    rows = tuple(replace(row, effect=np.nan, value=np.inf) for row in heads.table.rows)
    odd = replace(heads, table=replace(heads.table, rows=rows, clean=-np.inf))
    written = json.loads(json.dumps(as_json(odd), allow_nan=False))
    assert written["clean"] is None
    assert written["rows"][0]["effect"] is None
    assert next(iter(csv.DictReader(io.StringIO(as_csv(odd)))))["value"] == ""
    assert "undefined" in as_table(odd)


@pytest.mark.parametrize("name", ["heads", "orders"])
def test_csv_reads_back_as_the_json(name, request):
    run = request.getfixturevalue(name)
    rows = list(csv.DictReader(io.StringIO(as_csv(run))))
    for row, entry in zip(rows, as_json(run)["rows"], strict=True):
        assert list(row) == list(entry)
        for key, value in entry.items():
            text = row[key]
            assert (text or None) == (None if value is None else str(value)), key


def test_table_has_aligned_columns(heads):
    *_, empty, title, first, second, _, _ = as_table(heads).splitlines()
    assert empty == ""
    assert title.split() == ["removed", "contribution", "effect", "±", "ablated"]
    assert first.startswith("0.0 ")
    assert len(title) == len(first) == len(second)
    row = heads.table.rows[0]
    shown = [abs(float(cell.replace("−", "-"))) for cell in first.split()[1:]]
    expected = [row.contribution, row.effect, row.stderr, row.value]
    # Four digits are shown.
    assert shown == pytest.approx(np.abs(expected), abs=5.1e-5)


def test_table_leaves_out_what_nothing_is_known_of(heads):
    rows = tuple(replace(row, contribution=None, stderr=None) for row in heads.table.rows)
    table = as_table(replace(heads, table=replace(heads.table, rows=rows)))
    assert table.splitlines()[-5].split() == ["removed", "effect", "ablated"]


def test_table_of_orders_shows_margins_and_errors(orders):
    title = as_table(orders).splitlines()[-4]
    assert title.split() == [
        "paths", "up", "to", "loss", "effect", "±", "marginal", "±", "contribution",
    ]  # fmt: skip


def test_heading_says_what_was_done(heads, orders):
    shown = as_table(heads)
    assert shown.startswith(f"{MODEL}: '{HEADS.prompts[0]}', '{HEADS.prompts[1]}'\n")
    assert "each head, zero; free: what comes after it is computed anew; float32" in shown
    assert "the mean over 2 prompts" in shown
    assert "frozen: patterns, norm scales and MLP outputs held" in as_table(orders)
    drawn = replace(heads, question=replace(HEADS, kind="resample", seed=7))
    assert "each head, resample (from what is run, seed = 7)" in as_table(drawn)
    over = replace(HEADS, kind="mean", parameters=(("text", ""), ("length", 9)))
    shown_over = as_table(replace(heads, question=over))
    assert "each head, mean (over what is run); free" in shown_over  # no text is read
    read = replace(HEADS, kind="mean", parameters=(("text", "b.txt"), ("windows", 3)))
    said = "each head, mean (text = b.txt, windows = 3, length = 64); free"
    assert said in as_table(replace(heads, question=read))
    many = replace(heads, question=replace(HEADS, prompts=("x" * 200, *"abcd"), dest=1))
    assert f"'{'x' * 79}…', 'a', 'b' and 2 more" in as_table(many)
    assert "at dest 1" in as_table(many)
    text = replace(heads, question=replace(HEADS, text="some/a.txt"))
    assert f"{MODEL}: a.txt, 2 windows of 7 tokens" in as_table(text)
    assert "next-token logit: clean" in as_table(text)
    assert "contribution (logits): to the logits of the next tokens, their mean\n" in as_table(text)
    assert "contribution (logits)" not in shown


def test_orders_say_that_the_constant_is_in_the_value_alone(orders):
    note = "contribution (logits): that of order 0 leaves out b_U, which its value holds\n"
    assert note in as_table(orders)
    rows = tuple(replace(row, contribution=None) for row in orders.table.rows)
    assert "b_U" not in as_table(replace(orders, table=replace(orders.table, rows=rows)))


@pytest.mark.parametrize(
    ("parameters", "drawn"), [((), True), ((("text", "a.txt"),), True), ((("prompt", "a"),), False)]
)
def test_the_seed_is_told_only_where_something_is_drawn(heads, parameters, drawn):
    """resample prompt=… printed "seed = 0", though nothing was drawn."""
    asked = replace(HEADS, kind="resample", parameters=parameters)
    run = replace(heads, question=asked)
    assert ("seed = 0" in as_table(run)) == drawn
    assert as_json(run)["seed"] == 0
    assert "seed" not in as_table(replace(heads, question=HEADS))
