"""Frozen, the logits are linear in the token embeddings, and a swap is what its paths foretell."""

import os
from dataclasses import replace
from pathlib import Path as FilePath

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core import freezing
from circuitview.core.checkpoint import open_model
from circuitview.core.freezing import swap as swap_module
from circuitview.core.freezing.linearity import linearity
from circuitview.core.freezing.row import row_under_two_prompts
from circuitview.core.freezing.swap import swap
from circuitview.core.model import NativeModel
from circuitview.core.names import TOKEN, CircuitviewError, Head, ImbalanceError
from circuitview.core.orders import order_sums
from circuitview.core.path import Path
from circuitview.core.progress import finished
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target, resolve_target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.core.test_toy_by_hand import A, B, C, weights  # noqa: F401 - a fixture
from tests.hf_families import TOKENS, save_family
from tests.tiny_models import KINDS, MLP_KINDS, Tiny, record, tiny_model

ALL_KINDS = [*KINDS, *MLP_KINDS]
PROMPT = "I like green tea , so I drink green"


def swapped(model, recording, target, position, token):
    return finished(swap(model, recording, target, position, model.tokenizer.label(token)))


# --- linearity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tiny", ALL_KINDS, ids=str)
def test_frozen_every_kind_of_model_is_linear_and_recomputed_it_is_not(tiny):
    model = tiny_model(tiny)
    found = finished(linearity(model, record(model, [1, 2, 3, 4, 5])))
    # float64, a few sums of some tens of products.
    assert found.frozen.error <= 1e-12
    assert found.free.error > 1e-3
    assert found.frozen.largest > 0


@pytest.mark.parametrize("name", ["attn-only-1l", "attn-only-2l"])
def test_a_trained_model_is_linear_to_rounding_when_frozen_and_off_by_whole_logits_free(name):
    model = open_model(name)
    recording = model.run(model.prompt("I like green tea, so I drink green"))
    found = finished(linearity(model, recording, seed=3))
    assert found.frozen.error < 1e-4  # float32
    assert min(found.free.added, found.free.doubled) > 1.0
    assert found.size == float(recording.logits.abs().max())


def test_another_prompt_gives_b_and_has_to_be_of_the_same_length():
    model = tiny_model(KINDS[0])
    recording = record(model, [1, 2, 3])
    other = record(model, [4, 4, 5]).prompt
    found = finished(linearity(model, recording, other))
    assert not found.shuffled
    assert found.other == other.labels
    with pytest.raises(CircuitviewError, match="2 tokens, the frozen run 3"):
        finished(linearity(model, recording, record(model, [4, 5]).prompt))


def test_the_other_order_is_drawn_by_the_seed_and_is_never_the_prompts_own():
    model = tiny_model(KINDS[0])
    recording = record(model, [1, 2, 3, 4])
    orders = [finished(linearity(model, recording, seed=seed)).other for seed in range(20)]
    assert finished(linearity(model, recording, seed=0)).other == orders[0]
    assert len(set(orders)) > 1
    assert all(order != recording.prompt.labels for order in orders)
    assert all(sorted(order) == sorted(recording.prompt.labels) for order in orders)


def test_linearity_reports_every_run_and_leaves_nothing_behind_when_stopped():
    model = tiny_model(KINDS[0])
    recording = record(model, [1, 2, 3])
    before = recording.logits.clone()
    steps = linearity(model, recording)
    assert [next(steps).done for _ in range(3)] == [1, 2, 3]
    steps.close()
    assert torch.equal(record(model, [1, 2, 3]).logits, before)


# --- token swap ----------------------------------------------------------------------------------


def test_on_the_toy_c_for_a_adds_half_an_a_at_the_second_position(weights):  # noqa: F811
    tokenizer = tiny_model(Tiny(d_vocab=3)).tokenizer
    model = NativeModel(
        name="toy",
        folder=FilePath("toy"),
        config=weights.config,
        tokenizer=tokenizer,
        folded=lambda _dtype: weights,
    )
    recording = model.run(Prompt("toy", (A, B), ("a", "b")))
    label = tokenizer.label(C)
    changes = [
        finished(swap(model, recording, Target(1, token, "abc"[token]), 0, label))
        for token in (A, B, C)
    ]
    assert [found.frozen for found in changes] == [0.5, 0.0, 0.0]
    assert [found.predicted for found in changes] == [0.5, 0.0, 0.0]
    head = changes[0].paths[0]
    assert (str(head.path), head.weight, head.before, head.after) == ("token > 0.0", 0.5, 0.0, 1.0)


def test_on_the_hand_built_model_the_looked_up_word_is_replaced_by_its_own_paths():
    model = open_model("induction-by-hand")
    recording = model.run(model.prompt(PROMPT))
    target = resolve_target(recording, model.tokenizer, "tea")
    found = finished(swap(model, recording, target, 4, "apples"))
    rows = {str(row.path): row for row in found.paths}
    # The card's terms: looked up 6, its brake −0.6 and −0.2; what leaks past a match is below 5e-6.
    assert rows["token > 1.0"].change == pytest.approx(-6.0, abs=5e-6)
    assert rows["token > 1.0"].weight == pytest.approx(1.0, abs=5e-6)
    assert rows["token > 0.1 > 1.0"].change == pytest.approx(0.6, abs=5e-6)
    assert rows["token > 0.1"].change == pytest.approx(0.2, abs=5e-6)
    assert found.frozen == pytest.approx(-5.2, abs=5e-6)
    apples = next(mover for mover in found.own if mover.label == "apples")
    assert apples.frozen == pytest.approx(5.2, abs=5e-6)
    assert found.raised[0].label == "apples"
    assert found.lowered[0].label == "tea"


@steady
@given(data=st.data(), drawn=tinies_and_tokens())
def test_a_frozen_swap_is_what_the_token_paths_foretell(data, drawn):
    tiny, tokens = drawn
    model = tiny_model(tiny)
    recording = record(model, tokens)
    target = data.draw(targets(tiny, len(tokens)))
    position = data.draw(st.integers(0, target.dest))
    new = data.draw(st.integers(0, tiny.d_vocab - 1).filter(lambda new: new != tokens[position]))
    found = swapped(model, recording, target, position, new)
    assert abs(found.error) <= 1e-11 * max(1.0, found.scale)
    assert found.n_paths == len(found.paths)
    assert found.remainder == 0.0


@pytest.mark.parametrize("tiny", MLP_KINDS, ids=str)
def test_a_frozen_swap_is_foretold_with_mlps_rotary_positions_and_grouped_heads(tiny):
    model = tiny_model(tiny)
    recording = record(model, [1, 2, 3, 4, 5])
    for position, versus in ((0, None), (3, 1), (4, None)):
        found = swapped(model, recording, Target(4, 2, "w2", versus, "w1"), position, 7)
        assert abs(found.error) <= 1e-11 * max(1.0, found.scale)
        assert abs(found.free - found.frozen) > 1e-6  # the free run is another experiment


@pytest.mark.parametrize("name", ["attn-only-1l", "attn-only-2l"])
def test_twenty_random_swaps_of_a_trained_model_are_foretold(name):
    model = open_model(name)
    rng = np.random.default_rng(5)
    recording = model.run(model.prompt("I like green tea, so I drink green"))
    n, d_vocab = len(recording.prompt), model.config.d_vocab
    for _ in range(20):
        dest = int(rng.integers(1, n))
        target = Target(dest, int(rng.integers(d_vocab)), "target")
        position = int(rng.integers(dest + 1))
        found = swapped(model, recording, target, position, int(rng.integers(d_vocab)))
        # 1e-4 of the largest term or logit, float32; swap itself refuses what passes it.
        assert abs(found.error) <= 1e-4 * found.scale
        assert found.n_paths == len(found.paths)


def test_change_of_a_single_head_is_weight_times_the_difference_of_two_ov_rows():
    """A reckoning of its own, on one layer: pattern, both scales, W_V, W_O and W_U, no path."""
    model = open_model("attn-only-1l")
    recording = model.run(model.prompt("I like green tea, so I drink green"), "float64")
    target = resolve_target(recording, model.tokenizer)
    found = swapped(model, recording, target, 3, model.tokenizer.token_id(" black"))
    W = recording.weights
    new = model.run(
        Prompt(
            "", (*recording.prompt.token_ids[:3], model.tokenizer.token_id(" black")), ("",) * 4
        ),
        "float64",
    ).embedding[3]
    step = (new - recording.embedding[3]) / recording.ln_scale[0, 3]
    for head in range(model.config.n_heads):
        moved = step @ W.W_V_of(Head(0, head)) @ W.W_O_of(Head(0, head))
        column = moved @ W.direction(target.token) / recording.final_scale[target.dest]
        weight = float(recording.pattern[0, head, target.dest, 3])
        row = next(row for row in found.paths if row.path == Path(TOKEN, (Head(0, head),)))
        assert row.weight == pytest.approx(weight, abs=1e-12)
        assert row.change == pytest.approx(weight * float(column), abs=1e-11)


def test_paths_too_many_to_work_out_are_summed_exactly(monkeypatch):
    """The direct path and single heads are listed; the order sums bring the rest."""
    tiny = Tiny(n_layers=3, n_heads=3)
    model = tiny_model(tiny)
    recording = record(model, [1, 2, 3, 4])
    target = Target(3, 2, "w2")
    whole = swapped(model, recording, target, 1, 5)
    assert len(whole.paths) == 64
    monkeypatch.setattr(swap_module, "_MOST_NUMBERS", 10 * tiny.d_model)
    monkeypatch.setattr(swap_module, "_LISTED", 4)
    found = swapped(model, recording, target, 1, 5)
    assert len(found.paths) == 4
    assert found.n_paths == 64
    assert all(len(row.path.heads) <= 1 for row in found.paths)
    assert found.predicted == pytest.approx(whole.predicted, abs=1e-11)
    assert abs(found.error) <= 1e-11 * found.scale
    assert abs(found.remainder) > 1e-6


def test_the_whole_embedding_swapped_in_is_the_sum_of_all_token_paths():
    """Replacing every token one by one in the frozen run moves the logit by what the order sums of
    the two embeddings differ in."""
    model = tiny_model(KINDS[0])
    recording = record(model, [1, 2, 3])
    target = Target(2, 4, "w4")
    other = record(model, [5, 6, 7])
    changes = [swapped(model, recording, target, at, 5 + at).frozen for at in range(3)]
    own = order_sums(recording, target).sums[0].sum()
    swapped_in = replace(recording, embedding=other.embedding)
    theirs = order_sums(swapped_in, target).sums[0].sum()
    assert sum(changes) == pytest.approx(theirs - own, abs=1e-11)


def test_a_swap_that_its_paths_do_not_foretell_is_refused(monkeypatch):
    model = tiny_model(KINDS[0])
    recording = record(model, [1, 2, 3])
    rows = swap_module._path_rows

    def one_short(*asked):
        found, most = rows(*asked)
        return found[1:], most

    monkeypatch.setattr(swap_module, "_path_rows", one_short)
    with pytest.raises(ImbalanceError, match="does not add up"):
        swapped(model, recording, Target(2, 1, "w1"), 2, 5)


@pytest.mark.parametrize(
    ("position", "token", "says"),
    [
        (3, "w5", "positions 0 to 2"),
        (-1, "w5", "positions 0 to 2"),
        (2, "w5", "never looks at it: choose 0 to 1"),
        (0, "w1", "already; choose another"),
        (0, "w5 w6", "new token 'w5 w6' is 2 tokens"),
        (0, "", "new token is empty"),
    ],
)
def test_a_swap_that_can_not_be_made_says_why_in_one_line(position, token, says):
    model = tiny_model(KINDS[0])
    recording = record(model, [1, 2, 3])
    with pytest.raises(CircuitviewError, match=says) as caught:
        finished(swap(model, recording, Target(1, 1, "w1"), position, token))
    assert "\n" not in str(caught.value)


# --- one row, two prompts ------------------------------------------------------------------------


@pytest.mark.parametrize("tiny", ALL_KINDS, ids=str)
def test_in_layer_zero_scores_between_unchanged_tokens_stay_and_weights_move(tiny):
    model = tiny_model(tiny)
    a, b = record(model, [1, 2, 3, 4]), record(model, [1, 6, 3, 4])
    rows = row_under_two_prompts(model, Head(0, 1), 3, a, b)
    assert rows.same.tolist() == [True, False, True, True]
    assert rows.drift <= 1e-12  # float64, the same products
    assert abs(rows.score_changes[1]) > 1e-3
    assert (rows.weight_changes[rows.same] != 0).all()
    assert rows.weights_a.sum() == pytest.approx(1.0, abs=1e-12)
    assert rows.weight_changes.sum() == pytest.approx(0.0, abs=1e-12)


def test_in_layer_zero_unchanged_weights_keep_their_proportion():
    model = open_model("attn-only-1l")
    a, b = (
        model.run(model.prompt(f"I like {kind} tea, so I drink green"))
        for kind in ("green", "black")
    )
    n = len(a.prompt)
    rows = row_under_two_prompts(model, Head(0, 3), n - 1, a, b)
    assert rows.same.sum() == n - 1
    assert rows.drift < 1e-5  # float32
    shares = rows.weights_b[rows.same] / rows.weights_a[rows.same]
    assert shares == pytest.approx(np.full(n - 1, shares[0]), rel=1e-4)


def test_in_a_later_layer_scores_of_unchanged_tokens_move_too():
    model = tiny_model(KINDS[0])
    a, b = record(model, [1, 2, 3, 4]), record(model, [1, 6, 3, 4])
    rows = row_under_two_prompts(model, Head(1, 0), 3, a, b)
    assert not rows.scores_stay
    assert rows.drift > 1e-3


def test_prompts_of_two_lengths_are_compared_up_to_dest():
    model = tiny_model(KINDS[0])
    a, b = record(model, [1, 2, 3, 4, 5]), record(model, [1, 6, 3])
    rows = row_under_two_prompts(model, Head(0, 0), 2, a, b)
    assert len(rows.scores_a) == len(rows.weights_b) == 3
    with pytest.raises(CircuitviewError, match="prompt B has 3 tokens and no position 4"):
        row_under_two_prompts(model, Head(0, 0), 4, a, b)
    with pytest.raises(CircuitviewError, match=r"no head 2\.0"):
        row_under_two_prompts(model, Head(2, 0), 2, a, b)


def test_no_pair_is_unchanged_where_the_token_at_dest_differs():
    model = tiny_model(KINDS[0])
    rows = row_under_two_prompts(
        model, Head(0, 0), 2, record(model, [1, 2, 3]), record(model, [1, 2, 4])
    )
    assert not rows.same.any()
    assert rows.drift == 0.0


def test_runs_of_two_different_models_are_refused_where_layer_zero_scores_have_to_stay():
    model, other = tiny_model(KINDS[0]), tiny_model(Tiny(seed=9))
    a, b = record(model, [1, 2, 3]), record(other, [1, 2, 4, 3])
    with pytest.raises(ImbalanceError, match="has to stay"):
        row_under_two_prompts(model, Head(0, 0), 0, a, b)


# --- models that another program runs ------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "qwen3", "cohere", "gpt-neo"])
def test_models_behind_the_bridge_are_frozen_swapped_and_compared_alike(family, tmp_path):
    """Post-norms, query and key norms, parallel blocks, local attention, all kinds of positions."""
    model = open_model(save_family(family, tmp_path))

    def run(tokens):
        labels = tuple(model.tokenizer.label(token) for token in tokens)
        return model.run(Prompt(model.name, tuple(tokens), labels))

    changed = (*TOKENS[:2], 32, *TOKENS[3:])
    recording, other = run(TOKENS), run(changed)
    line = finished(linearity(model, recording))
    assert line.frozen.error < 1e-5  # float32, three layers
    assert line.free.error > 0.1
    last = len(TOKENS) - 1
    found = swapped(model, recording, Target(last, 6, "six"), 2, 32)
    assert abs(found.error) <= 1e-5 * found.scale
    # The free run is the model's own on the other prompt.
    free = float(other.logits[last, 6].double() - recording.logits[last, 6].double())
    assert found.free == pytest.approx(free, abs=1e-6)  # run twice in float32
    rows = row_under_two_prompts(model, Head(0, 1), last, recording, other)
    assert rows.same.sum() == last
    assert rows.drift < 1e-5


# --- the numbers of a model that a user may have -------------------------------------------------

FOLDER = os.environ.get("CIRCUITVIEW_ATTN_ONLY_1L")


@pytest.mark.skipif(FOLDER is None, reason="set CIRCUITVIEW_ATTN_ONLY_1L to the model's folder")
def test_published_one_layer_model_gives_the_numbers_of_its_write_up():
    model = open_model(FOLDER)
    recording = model.run(model.prompt("I like green tea, so I drink green"))
    target = resolve_target(recording, model.tokenizer, " tea")
    found = finished(swap(model, recording, target, 4, " coffee"))
    coffee = next(mover for mover in found.own if mover.label == "␣coffee")
    assert found.frozen == pytest.approx(-2.361, abs=6e-4)  # printed to three places
    assert coffee.frozen == pytest.approx(2.739, abs=6e-4)
    drink = model.run(model.prompt("I like green tea, so I want green"))
    rows = row_under_two_prompts(model, Head(0, 3), len(recording.prompt) - 1, recording, drink)
    assert rows.scores_a[4] == pytest.approx(2.929, abs=6e-4)
    assert rows.scores_b[4] == pytest.approx(2.929, abs=6e-4)
    assert (rows.weights_a[4], rows.weights_b[4]) == pytest.approx((0.370, 0.434), abs=6e-4)
    line = finished(linearity(model, recording))
    assert line.frozen.error < 1e-4
    assert line.free.added > 1.0


def test_the_package_says_how_it_is_used_in_a_notebook():
    assert "finished(linearity(model, recording))" in (freezing.__doc__ or "")
