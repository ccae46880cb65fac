"""What must hold in every model, on every prompt, for every target."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.edits import Edits
from circuitview.core.expansion import FEW, LISTED, Expansion, expand
from circuitview.core.names import TOKEN, Head, ImbalanceError
from circuitview.core.orders import order_sums
from circuitview.core.path import count_chains
from circuitview.core.path_vectors import path_vectors
from circuitview.core.target import Target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import Tiny, record, tiny_model

# Two sums of the same numbers in another order, relative to the largest term.
ROUNDING = {"float32": 1e-4, "float64": 1e-11}


def expansion_of(
    data, dtype: str = "float64", listed: int = LISTED, few: int = FEW, **depths
) -> Expansion:
    tiny, tokens = data.draw(tinies_and_tokens(**depths))
    target = data.draw(targets(tiny, len(tokens)))
    return expand(record(tiny_model(tiny), tokens, dtype), target, listed=listed, few=few)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@steady
@given(data=st.data())
def test_terms_constant_and_remainder_equal_the_logit(dtype, data):
    few = data.draw(st.sampled_from([0, FEW]))  # the largest of all paths, and all of them
    found = expansion_of(data, dtype, listed=50, few=few, most_layers=5)
    logits = found.recording.logits[found.target.dest].double()
    logit = float(logits[found.target.token])
    if found.target.versus is not None:
        logit -= float(logits[found.target.versus])
    summed = found.contributions.sum() + found.constant + found.remainder
    assert abs(logit - summed) <= ROUNDING[dtype] * found.scale
    assert found.logit == logit
    assert found.balanced
    found.require_balance()


@steady
@given(data=st.data())
def test_scale_is_at_least_every_term_and_both_logits(data):
    found = expansion_of(data)
    logits = found.recording.logits[found.target.dest].double().numpy()
    chosen = [found.target.token, found.target.versus]
    parts = [abs(float(logits[token])) for token in chosen if token is not None]
    assert found.scale == max(*np.abs(found.contributions), *parts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@steady
@given(data=st.data())
def test_by_source_sums_to_its_term_and_stops_at_dest(dtype, data):
    found = expansion_of(data, dtype)
    assert found.by_source.shape == (len(found.paths), len(found.recording.tokens))
    # The contribution is that very sum; the order of adding leaves a few float64 roundings.
    for term in found.terms:
        assert abs(term.by_source.sum() - term.contribution) <= 1e-13 * found.scale
    assert not found.by_source[:, found.target.dest + 1 :].any()


@steady
@given(data=st.data())
def test_orders_sum_to_the_logit_and_match_the_listed_terms(data):
    found = expansion_of(data, most_layers=5)
    close = 1e-11 * max(found.scale, np.abs(found.orders.sums).max())
    assert abs(found.orders.by_order().sum() + found.constant - found.logit) <= close
    most = found.recording.weights.config.n_layers
    for source in found.recording.weights.sources:
        for order in range(most + 1):
            listed = sum(
                term.contribution
                for term in found.terms
                if term.path.source == source and len(term.path.heads) == order
            )
            assert abs(found.orders.of(source, order) - listed) <= close


@steady
@given(data=st.data())
def test_full_depth_leaves_no_remainder(data):
    found = expansion_of(data, most_layers=3)  # few enough paths that all are listed
    assert found.remainder == 0.0
    assert found.n_unlisted == 0
    assert len(set(found.paths)) == len(found.paths) == found.n_paths


@steady
@given(data=st.data())
def test_remainder_equals_the_paths_that_are_not_listed(data):
    listed = data.draw(st.integers(1, 60))
    found = expansion_of(data, most_layers=5, listed=listed, few=0)
    every = path_vectors(found.recording)
    contributions = every.contributions(found.target).numpy()
    listed = set(found.paths)
    rest = [
        value for path, value in zip(every.paths, contributions, strict=True) if path not in listed
    ]
    assert found.n_unlisted == len(rest)
    close = 1e-11 * max(found.scale, np.abs(contributions).max())
    assert abs(found.remainder - sum(rest)) <= close
    short = [path for path in every.paths if len(path.heads) <= 2 and path not in listed]
    assert found.n_smaller == len(short)


@steady
@given(data=st.data())
def test_listing_all_leaves_the_other_terms_and_empties_the_remainder(data):
    tiny, tokens = data.draw(tinies_and_tokens(least_layers=4, most_layers=4))
    recording = record(tiny_model(tiny), tokens)
    target = data.draw(targets(tiny, len(tokens)))
    short = expand(recording, target, listed=30, few=0)
    whole = expand(recording, target, few=10**6)
    assert whole.remainder == 0.0
    assert whole.n_paths == short.n_paths == len(whole.paths)
    for term in short.terms:
        assert abs(whole.term(term.path).contribution - term.contribution) <= 1e-12 * whole.scale
    difference = whole.contributions.sum() - short.contributions.sum()
    assert abs(difference - short.remainder) <= 1e-11 * whole.scale


@steady
@given(data=st.data())
def test_two_targets_differ_by_the_target_of_their_difference(data):
    tiny, tokens = data.draw(tinies_and_tokens())
    recording = record(tiny_model(tiny), tokens)
    both = data.draw(targets(tiny, len(tokens), versus=True))
    first, second, difference = (
        expand(recording, target)
        for target in (
            Target(both.dest, both.token, "a"),
            Target(both.dest, both.versus, "b"),
            both,
        )
    )
    close = 1e-12 * max(first.scale, second.scale)
    gap = first.by_source - second.by_source - difference.by_source
    assert np.abs(gap).max() <= close
    assert abs(first.constant - second.constant - difference.constant) <= close
    assert abs(first.logit - second.logit - difference.logit) <= close
    assert first.probability - second.probability == pytest.approx(difference.probability)


@steady
@given(data=st.data())
def test_groups_sum_to_the_total(data):
    found = expansion_of(data, most_layers=5)
    close = 1e-11 * max(found.scale, np.abs(found.orders.sums).max())
    assert abs(sum(found.groups.values()) - found.total) <= close
    assert abs(found.groups["direct"] - found.orders.of(TOKEN, 0)) <= close
    virtual = sum(
        found.orders.of(TOKEN, order)
        for order in range(2, found.recording.weights.config.n_layers + 1)
    )
    assert abs(found.groups["virtual heads"] - virtual) <= close


@steady
@given(data=st.data())
def test_zero_W_O_removes_that_heads_paths_and_its_value_bias_and_nothing_else(data):
    tiny, tokens = data.draw(tinies_and_tokens(most_layers=3))
    model = tiny_model(tiny)
    clean = record(model, tokens)
    target = data.draw(targets(tiny, len(tokens)))
    head = Head(
        data.draw(st.integers(0, tiny.n_layers - 1)), data.draw(st.integers(0, tiny.n_heads - 1))
    )
    W_O = model.exact.W_O.clone()
    W_O[head.layer, head.head] = 0.0
    without = replace(model, folded=replace(model.exact, W_O=W_O).to)
    cut = record(without, tokens, edits=Edits(frozen=clean))
    before, after = expand(clean, target), expand(cut, target)

    lost_bias = model.exact.bias[head.layer] - without.exact.bias[head.layer]
    assert torch.allclose(lost_bias, model.exact.head_bias()[head.layer, head.head])
    close = 1e-11 * before.scale
    for term in before.terms:
        path = term.path
        if head in path.heads:
            expected = 0.0
        elif path.source.kind == "bias" and path.source.layer == head.layer:
            continue  # its own share of this source goes with it: checked as a whole below
        else:
            expected = term.contribution
        left = after.term(path).contribution if path in after.place else 0.0
        assert abs(left - expected) <= close
    assert abs(before.logit - after.logit - before.orders.head(head)) <= close


@steady
@given(data=st.data())
def test_permuted_heads_permute_the_terms(data):
    tiny, tokens = data.draw(tinies_and_tokens(most_layers=3))
    model = tiny_model(tiny)
    weights = model.exact
    orders = [data.draw(st.permutations(range(tiny.n_heads))) for _ in range(tiny.n_layers)]

    def shuffled(array: torch.Tensor | None) -> torch.Tensor | None:
        if array is None:
            return None
        return torch.stack([layer[order] for layer, order in zip(array, orders, strict=True)])

    names = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "pos_Q", "pos_K")
    permuted = replace(weights, **{name: shuffled(getattr(weights, name)) for name in names})
    target = data.draw(targets(tiny, len(tokens)))
    first = expand(record(model, tokens), target)
    second = expand(record(replace(model, folded=permuted.to), tokens), target)
    for term in second.terms:
        heads = tuple(Head(head.layer, orders[head.layer][head.head]) for head in term.path.heads)
        same = first.term(replace(term.path, steps=heads))
        assert np.abs(same.by_source - term.by_source).max() <= 1e-11 * first.scale


@steady
@given(data=st.data())
def test_rotating_the_folded_stream_changes_nothing(data):
    tiny, tokens = data.draw(tinies_and_tokens(most_layers=4))
    model = tiny_model(tiny)
    weights = model.exact
    generator = torch.Generator().manual_seed(tiny.seed)
    square = torch.randn(tiny.d_model, tiny.d_model, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(square).Q
    rotated = replace(
        weights,
        W_E=weights.W_E @ turn,
        W_pos=None if weights.W_pos is None else weights.W_pos @ turn,
        W_Q=turn.T @ weights.W_Q,
        W_K=turn.T @ weights.W_K,
        W_V=turn.T @ weights.W_V,
        W_O=weights.W_O @ turn,
        b_O=weights.b_O @ turn,
        W_U=turn.T @ weights.W_U,
    )
    target = data.draw(targets(tiny, len(tokens)))
    first = expand(record(model, tokens), target)
    second = expand(record(replace(model, folded=rotated.to), tokens), target)
    assert first.paths == second.paths
    # A rotation of the stream rounds every dot product anew; scores pass that on to the patterns.
    assert np.abs(first.by_source - second.by_source).max() <= 1e-10 * first.scale
    assert abs(first.logit - second.logit) <= 1e-10 * first.scale


@steady
@given(data=st.data())
def test_number_of_paths_equals_the_count_of_chains_for_each_source(data):
    found = expansion_of(data, most_layers=5)
    config = found.recording.weights.config
    expected = sum(
        count_chains(config.n_layers, config.n_heads, above=source.layer)
        for source in found.recording.weights.sources
    )
    assert found.n_paths == expected == len(path_vectors(found.recording).paths)


@steady
@given(data=st.data())
def test_order_sums_hold_what_runs_through_each_head(data):
    tiny, tokens = data.draw(tinies_and_tokens(most_layers=3))
    model = tiny_model(tiny)
    recording = record(model, tokens)
    target = data.draw(targets(tiny, len(tokens)))
    found, sums = expand(recording, target), order_sums(recording, target)
    direction = target.direction(model.exact) / recording.final_scale[target.dest]
    for layer in range(tiny.n_layers):
        for place in range(tiny.n_heads):
            head = Head(layer, place)
            through = sum(term.contribution for term in found.through(head))
            through += float(_bias_paths(recording, head)[target.dest] @ direction)
            assert abs(sums.head(head) - through) <= 1e-11 * found.scale


def _bias_paths(recording, head: Head) -> torch.Tensor:
    """A head's value bias and all that later heads make of it [pos, d_model]."""
    weights = recording.weights
    share = weights.head_bias()[head.layer, head.head].expand(len(recording.tokens), -1)
    for layer in range(head.layer + 1, weights.config.n_layers):
        read = share / recording.ln_scale[layer].unsqueeze(-1)
        mixed = recording.pattern[layer] @ (read @ weights.W_V[layer])
        share = share + (mixed @ weights.W_O[layer]).sum(0)
    return share


def test_imbalance_is_refused_with_its_numbers():
    tiny_found = expand_broken()
    with pytest.raises(ImbalanceError, match="add up") as caught:
        tiny_found.require_balance()
    assert "\n" not in str(caught.value)
    assert "float64" in str(caught.value)


@pytest.mark.parametrize("wrong", [float("nan"), 1e9])
def test_a_wrong_or_missing_logit_never_balances(wrong):
    assert not replace(expand_broken(), logit=wrong).balanced


def expand_broken() -> Expansion:
    found = expand(record(tiny_model(Tiny()), [1, 2, 3]), Target(2, 1, "w1"))
    return replace(found, beyond=0.5)


def test_float64_stays_within_the_measured_reach():
    """On this size 1.4e-12 logits were once measured; ten times that is still rounding."""
    tiny = Tiny(
        n_heads=3, d_model=16, d_head=4, d_vocab=11, normalization_type=None, biases=False, seed=5
    )
    recording = record(tiny_model(tiny), [3, 1, 4, 1, 5, 9, 2])
    errors = [
        abs(expand(recording, Target(dest, token, str(token))).error)
        for dest in range(7)
        for token in range(11)
    ]
    print(f"largest error {max(errors):.1e} logits")  # noqa: T201
    assert max(errors) <= 1e-11
