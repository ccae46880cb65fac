"""One head, or one chain, by source token: both senses add up, and to the right things."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.attention import chain_pattern, value_weighted
from circuitview.core.expansion import expand
from circuitview.core.names import TOKEN, Head
from circuitview.core.ov import head_totals, ov_breakdown, strongest_head
from circuitview.core.path import Path
from circuitview.core.path_vectors import path_vector
from circuitview.core.target import Target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import Tiny, record, tiny_model

# float64 sums of the same numbers in another order, relative to the largest term.
CLOSE = 1e-11


def draw_case(data, **depths):
    tiny, tokens = data.draw(tinies_and_tokens(**depths))
    recording = record(tiny_model(tiny), tokens)
    return tiny, recording, data.draw(targets(tiny, len(tokens)))


def draw_chain(data, tiny: Tiny) -> tuple[Head, ...]:
    layers = data.draw(
        st.lists(st.integers(0, tiny.n_layers - 1), min_size=1, unique=True).map(sorted)
    )
    return tuple(Head(layer, data.draw(st.integers(0, tiny.n_heads - 1))) for layer in layers)


@steady
@given(data=st.data())
def test_token_sense_equals_the_by_source_of_its_path(data):
    tiny, recording, target = draw_case(data, most_layers=3)
    heads = draw_chain(data, tiny)
    found = expand(recording, target)
    term = found.term(Path(TOKEN, heads))
    breakdown = ov_breakdown(recording, target, heads, "token")
    assert np.abs(breakdown.contribution - term.by_source).max() <= CLOSE * found.scale
    assert abs(breakdown.total - term.contribution) <= CLOSE * found.scale


@steady
@given(data=st.data())
def test_everything_equals_all_paths_that_end_in_the_chain(data):
    tiny, recording, target = draw_case(data, most_layers=3)
    heads = draw_chain(data, tiny)
    found = expand(recording, target)
    breakdown = ov_breakdown(recording, target, heads)
    ending = sum(t.contribution for t in found.terms if t.path.heads[-len(heads) :] == heads)
    assert abs(breakdown.total - ending) <= CLOSE * found.scale
    assert np.allclose(breakdown.weight * breakdown.value, breakdown.contribution, atol=0, rtol=0)


@steady
@given(data=st.data())
def test_head_totals_equal_the_paths_whose_last_head_it_is(data):
    tiny, recording, target = draw_case(data, most_layers=3)
    found = expand(recording, target)
    totals = head_totals(recording, target)
    sizes = {}
    for layer in range(tiny.n_layers):
        for place in range(tiny.n_heads):
            head = Head(layer, place)
            last = sum(t.contribution for t in found.terms if t.path.heads[-1:] == (head,))
            assert abs(float(totals[layer, place]) - last) <= CLOSE * found.scale
            alone = ov_breakdown(recording, target, (head,)).total
            assert abs(alone - last) <= CLOSE * found.scale
            sizes[head] = abs(float(totals[layer, place]))
    assert sizes[strongest_head(recording, target)] == max(sizes.values())


@steady
@given(data=st.data())
def test_a_single_heads_weight_is_its_attention_and_columns_give_its_value(data):
    tiny, recording, target = draw_case(data, most_layers=3)
    head = draw_chain(data, tiny)[-1]
    breakdown = ov_breakdown(recording, target, (head,), n_tokens=tiny.d_vocab)
    pattern = recording.pattern[head.layer, head.head, target.dest].numpy()
    assert np.array_equal(breakdown.weight, pattern)
    for src, value in enumerate(breakdown.value):
        column = dict(breakdown.raises[src])
        assert sorted(column) == list(range(tiny.d_vocab))
        assert sorted(column.values(), reverse=True) == [
            entry for _, entry in breakdown.raises[src]
        ]
        assert [entry for _, entry in breakdown.lowers[src]] == sorted(column.values())
        expected = column[target.token]
        if target.versus is not None:
            expected -= column[target.versus]
        assert abs(expected - value) <= CLOSE * max(map(abs, column.values()))


@steady
@given(data=st.data())
def test_chain_pattern_multiplies_the_patterns_of_its_heads(data):
    tiny, recording, _ = draw_case(data, most_layers=4)
    heads = draw_chain(data, tiny)
    expected = torch.eye(len(recording.tokens), dtype=torch.float64)
    for head in heads:
        expected = recording.pattern[head.layer, head.head] @ expected
    found = chain_pattern(recording, heads)
    # Patterns lie between 0 and 1, so that rounding is absolute.
    assert torch.allclose(found, expected, atol=1e-14)
    assert torch.allclose(found.sum(-1), torch.ones(len(found), dtype=torch.float64), atol=1e-12)


@steady
@given(data=st.data())
def test_value_weighted_is_the_norm_of_what_moves_from_src_to_dest(data):
    tiny, recording, _ = draw_case(data, most_layers=3)
    heads = draw_chain(data, tiny)
    moved = value_weighted(recording, heads)
    n = len(recording.tokens)
    for src in range(n):
        stream = torch.zeros(n, tiny.d_model, dtype=torch.float64)
        stream[src] = recording.stream[heads[0].layer, src]
        for head in heads:
            read = stream / recording.ln_scale[head.layer].unsqueeze(-1)
            values = read @ recording.weights.W_V[head.layer, head.head]
            mixed = recording.pattern[head.layer, head.head] @ values
            stream = mixed @ recording.weights.W_O[head.layer, head.head]
        norms = stream.norm(dim=-1)
        assert torch.allclose(moved[:, src], norms, rtol=1e-9, atol=1e-12)


@steady
@given(data=st.data())
def test_removing_a_path_forwards_lowers_every_logit_by_its_contribution(data):
    _tiny, recording, target = draw_case(data, most_layers=3)
    found = expand(recording, target)
    path = data.draw(st.sampled_from(found.paths))
    without = recording.stream[-1] - path_vector(recording, path)
    read = without[target.dest] / recording.final_scale[target.dest]
    logits = read @ recording.weights.W_U + recording.weights.b_U
    left = float(logits[target.token])
    if target.versus is not None:
        left -= float(logits[target.versus])
    effect = left - found.logit
    assert abs(effect + found.term(path).contribution) <= CLOSE * found.scale


def test_top_tokens_are_no_more_than_asked_for():
    tiny = Tiny(d_vocab=4)
    recording = record(tiny_model(tiny), [1, 2])
    breakdown = ov_breakdown(recording, Target(1, 0, "BOS"), (Head(1, 0),), n_tokens=3)
    assert [len(row) for row in breakdown.raises] == [3, 3]
    many = ov_breakdown(recording, Target(1, 0, "BOS"), (Head(1, 0),), n_tokens=99)
    assert [len(row) for row in many.lowers] == [4, 4]
