"""The largest of very many paths: what is listed is right, and nothing is lost beside it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core import hops, largest
from circuitview.core.expansion import expand
from circuitview.core.largest import enumerate_contributions
from circuitview.core.names import TOKEN, CircuitviewError, Head
from circuitview.core.path import Path, count_chains
from circuitview.core.path_vectors import path_vectors
from circuitview.core.runner import run
from circuitview.core.target import Target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import Tiny, record, tiny_model

# float64, sums of the same products in another order.
CLOSE = 1e-11


@steady
@given(data=st.data())
def test_every_listed_path_is_worth_what_it_writes_forwards(data):
    tiny, tokens = data.draw(tinies_and_tokens(most_layers=5))
    recording = record(tiny_model(tiny), tokens)
    target = data.draw(targets(tiny, len(tokens)))
    found = expand(recording, target, listed=40, few=0)
    every = path_vectors(recording)
    worth = dict(zip(every.paths, every.contributions(target).tolist(), strict=True))
    for path, contribution in zip(found.paths, found.contributions, strict=True):
        assert abs(contribution - worth[path]) <= CLOSE * found.scale, str(path)


@steady
@given(data=st.data())
def test_no_path_of_up_to_two_heads_is_larger_than_the_smallest_listed(data):
    tiny, tokens = data.draw(tinies_and_tokens(most_layers=5))
    recording = record(tiny_model(tiny), tokens)
    target = data.draw(targets(tiny, len(tokens)))
    found = expand(recording, target, listed=15, few=0)
    every = path_vectors(recording)
    listed = set(found.paths)
    assert len(listed) == len(found.paths)
    least = np.abs(found.contributions).min()
    worth = every.contributions(target).tolist()
    for path, contribution in zip(every.paths, worth, strict=True):
        if path not in listed and len(path.heads) <= 2:
            assert abs(contribution) <= least + CLOSE * found.scale, str(path)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_enumeration_reaches_every_chain_once_and_each_source_below_it(most):
    tiny = Tiny(n_layers=5, n_heads=2, d_model=12)
    recording = record(tiny_model(tiny), [1, 2, 3, 4])
    seen = []
    for step, worth, sources, tails in enumerate_contributions(recording, Target(3, 2, "w2"), most):
        heads = [()] if step is None else [(Head(step.layer, head),) for head in range(2)]
        for head_place, head in enumerate(heads):
            for tail_place, tail in enumerate(tails):
                chain = () if step is None else (*head, *tail)
                seen += [Path(source, chain) for source in sources]
                assert worth[head_place, tail_place].shape == (len(sources),)
    assert len(seen) == len(set(seen))
    expected = sum(
        count_chains(5, 2, most, above=source.layer) for source in recording.weights.sources
    )
    assert len(seen) == expected


@pytest.mark.parametrize("room", [1, 50, 8_000_000])
def test_both_ways_of_projecting_and_any_room_give_the_same_worth(room, monkeypatch):
    """In the value spaces of the heads, or in the stream; whole, or a few chains at a time."""
    monkeypatch.setattr(hops, "_ROOM", room)
    monkeypatch.setattr(largest, "_AT_ONCE", 3 if room == 1 else 1024)
    tiny = Tiny(n_layers=4, n_heads=3, d_model=12)
    recording = record(tiny_model(tiny), [1, 2, 3, 4, 5])
    worths = []
    for project in (True, False):
        ready = hops.layer_below

        def forced(recording, layer, sources, n_chains, dest, project=project, ready=ready):
            # So many chains, or none: the choice falls on the projected sources, or the stream.
            return ready(recording, layer, sources, 10**9 if project else 0, dest)

        with monkeypatch.context() as patch:
            patch.setattr("circuitview.core.largest.layer_below", forced)
            found = list(enumerate_contributions(recording, Target(4, 2, "w2"), 3))
        worths.append(torch.cat([worth.flatten() for _, worth, _, _ in found]))
    assert torch.allclose(*worths, rtol=0, atol=1e-12 * float(worths[0].abs().max()))


@pytest.mark.parametrize("n_layers", [5, 9])
def test_a_path_that_dwarfs_the_others_is_found_however_long(n_layers):
    """Of all heads those that lie on one chain, one in every layer but the last, alone write
    much."""
    tiny = Tiny(
        n_layers=n_layers, n_heads=2, d_model=12, normalization_type=None, biases=False, n_ctx=4
    )
    weights = tiny_model(tiny).exact
    chain = tuple(Head(layer, layer % 2) for layer in range(n_layers - 1))
    W_O = weights.W_O.clone() * 1e-3
    for head in chain:
        W_O[head.layer, head.head] *= 1e5
    prompt = record(tiny_model(tiny), [1, 2, 3]).prompt
    recording = run(replace(weights, W_O=W_O), prompt)
    found = expand(recording, Target(2, 1, "w1"), listed=10, few=0)
    assert found.terms[0].path.steps == chain
    assert Path(TOKEN, chain) in found.paths
    assert found.balanced


def test_the_search_stops_where_nothing_promises_more_than_what_is_kept(monkeypatch):
    tiny = Tiny(n_layers=6, n_heads=2, d_model=12)
    weights = tiny_model(tiny).exact
    prompt = record(tiny_model(tiny), [1, 2, 3]).prompt
    faint = run(replace(weights, W_O=weights.W_O * 1e-6), prompt)
    looked = []
    ready = largest._take_apart
    monkeypatch.setattr(largest, "_take_apart", lambda *given: looked.append(ready(*given)))
    assert expand(faint, Target(2, 1, "w1"), listed=5, few=0).balanced
    assert not looked
    expand(run(weights, prompt), Target(2, 1, "w1"), listed=5, few=0)
    assert looked, "with heads that write much there is something to look for"


def test_what_is_searched_does_not_depend_on_the_process():
    tiny = Tiny(n_layers=5, n_heads=3, d_model=12)
    recording = record(tiny_model(tiny), [1, 2, 3, 4])
    first, second = (expand(recording, Target(3, 2, "w2"), listed=60, few=0) for _ in range(2))
    assert first.paths == second.paths
    assert np.array_equal(first.contributions, second.contributions)


def test_counts_of_what_is_not_listed_add_up_beyond_64_bits():
    tiny = Tiny(n_layers=40, n_heads=4, d_model=6, d_head=2, n_ctx=4, biases=False)
    recording = record(tiny_model(tiny), [1, 2, 3], "float32")
    found = expand(recording, Target(2, 1, "w1"))
    assert found.n_paths == found.grouping.n_paths > 2**64
    assert len(found.paths) + found.n_smaller + found.n_beyond == found.n_paths
    assert len(found.paths) == 2_000
    assert found.balanced
    longest = max(len(path.steps) for path in found.paths)
    deep = [path for path in found.paths if len(path.steps) > 2]
    assert longest > 2, "a model with large longer paths has some in its list"
    assert len(deep) == len(set(deep))


@pytest.mark.parametrize("listed", [0, -1])
def test_listing_no_path_at_all_is_refused_in_one_line(listed):
    recording = record(tiny_model(Tiny()), [1, 2, 3])
    with pytest.raises(CircuitviewError, match="list 1 or more"):
        expand(recording, Target(2, 1, "w1"), listed=listed, few=0)
