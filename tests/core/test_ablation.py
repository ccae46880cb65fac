"""Zeroing heads: frozen it is exactly minus the contribution, free it need not be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.ablation.zero_heads import zero_each_head
from circuitview.core.checkpoint import open_model
from circuitview.core.edits import Edits
from circuitview.core.expansion import expand
from circuitview.core.names import Head
from circuitview.core.target import Target, resolve_target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import Tiny, record, tiny_model


def finish(generator):
    """The progress that a generator reports, and its result."""
    steps = []
    while True:
        try:
            steps.append(next(generator))
        except StopIteration as stop:
            return steps, stop.value


@steady
@given(data=st.data())
def test_frozen_zero_ablation_takes_away_exactly_the_contribution(data):
    tiny, tokens = data.draw(tinies_and_tokens())
    recording = record(tiny_model(tiny), tokens)
    target = data.draw(targets(tiny, len(tokens)))
    found = expand(recording, target)
    steps, table = finish(zero_each_head(recording, target, frozen=True))
    close = 1e-11 * max(found.scale, np.abs(found.orders.sums).max())
    assert table.clean == found.logit
    assert table.frozen
    for row in table.rows:
        assert abs(row.effect + row.contribution) <= close
        assert row.effect == row.value - table.clean
    assert [step.partial for step in steps] == list(table.rows)
    assert [(step.done, step.total) for step in steps] == [
        (done, len(table.rows)) for done in range(1, len(table.rows) + 1)
    ]


def test_rows_name_every_head_in_order():
    recording = record(tiny_model(Tiny(n_layers=2, n_heads=3)), [1, 2, 3])
    _, table = finish(zero_each_head(recording, Target(2, 1, "w1")))
    assert [str(row.head) for row in table.rows] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]


@steady
@given(data=st.data())
def test_frozen_run_without_edits_repeats_the_clean_run(data):
    tiny, tokens = data.draw(tinies_and_tokens())
    model = tiny_model(tiny)
    clean = record(model, tokens)
    again = record(model, tokens, edits=Edits(frozen=clean))
    assert (again.logits - clean.logits).abs().max() == 0


def test_free_ablation_lets_later_layers_react():
    """In the induction model 1.0 finds its key through 0.0; contribution and effect part."""
    model = open_model("induction-by-hand")
    recording = model.run(model.prompt("I like green tea , so I drink green"), "float64")
    target = resolve_target(recording, model.tokenizer, "tea")
    _, free = finish(zero_each_head(recording, target))
    _, frozen = finish(zero_each_head(recording, target, frozen=True))
    # What leaks past a match is below 1e-6 of a few logits.
    assert free.rows[0].value == pytest.approx(2.3, abs=1e-5)
    assert free.rows[0].contribution == pytest.approx(1.0, abs=1e-5)
    assert frozen.rows[0].effect == pytest.approx(-1.0, abs=1e-5)
    assert not free.frozen


def test_zeroed_head_writes_nothing_and_its_neighbours_are_untouched():
    model = tiny_model(Tiny(n_layers=1, n_heads=3))
    clean = record(model, [1, 2, 3])
    cut = record(model, [1, 2, 3], edits=Edits(zeroed=frozenset({Head(0, 1)})))
    assert not cut.z[0, 1].any()
    assert (cut.z[0, [0, 2]] == clean.z[0, [0, 2]]).all()
    assert (cut.pattern == clean.pattern).all()
