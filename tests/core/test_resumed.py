"""Logits after changes, with what a change can't reach left alone, are those of a whole run."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.config import ModelConfig
from circuitview.core.edits import Edits
from circuitview.core.frozen import run_frozen
from circuitview.core.names import Head
from circuitview.core.resumed import batches
from tests.core.strategies import steady, tinies_and_tokens
from tests.tiny_models import KINDS, MLP_KINDS, record, tiny_model

# Relative to the largest logit, float64: the same sums in another order, through a few layers.
CLOSE = 1e-11


def random_edits(model, n, draw):
    """Any combination of changes, of random values."""
    config = model.config
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))

    def values(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    heads = [Head(la, he) for la in range(config.n_layers) for he in range(config.n_heads)]
    some = st.lists(st.sampled_from(heads), max_size=3, unique=True)
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    layers = st.integers(0, config.n_layers - 1)
    mlps = [] if config.attn_only else draw(st.lists(layers, max_size=2, unique=True))
    stream = (n, config.d_model)
    return Edits(
        zeroed=frozenset(draw(some)),
        z={head: values(n, config.d_head) for head in draw(some)},
        patterns={
            head: values(n, n).masked_fill(future, -torch.inf).softmax(-1) for head in draw(some)
        },
        mlp_out={layer: values(*stream) for layer in mlps},
        embedding=values(*stream) if draw(st.integers(0, 3)) == 0 else None,
        added=values(*stream) if draw(st.integers(0, 2)) == 0 else None,
    )


def assert_as_whole_runs(tiny, tokens, data):
    model = tiny_model(tiny)
    recording = record(model, tokens)
    n = len(tokens)
    edits = [random_edits(model, n, data.draw) for _ in range(data.draw(st.integers(1, 5)))]
    dests = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True)))
    for frozen in (False, True):
        seen = []
        for places, logits in model.logits_after(recording, edits, dests, frozen):
            seen += places
            for place, found in zip(places, logits, strict=True):
                if frozen:
                    whole = run_frozen(recording, edits[place]).logits[dests]
                else:
                    whole = model.run(recording.prompt, "float64", edits[place]).logits[dests]
                scale = max(1.0, float(whole.abs().max()), float(recording.logits.abs().max()))
                assert (found - whole).abs().max() <= CLOSE * scale
        assert sorted(seen) == list(range(len(edits)))


@steady
@given(data=st.data())
def test_any_changes_of_an_attention_only_model(data):
    tiny, tokens = data.draw(tinies_and_tokens())
    assert_as_whole_runs(tiny, tokens, data)


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
@steady
@given(data=st.data())
def test_any_changes_of_every_kind_of_model(tiny, data):
    tiny = replace(tiny, n_layers=data.draw(st.integers(1, 3)))
    tokens = st.lists(st.integers(0, tiny.d_vocab - 1), min_size=1, max_size=tiny.n_ctx)
    assert_as_whole_runs(tiny, data.draw(tokens), data)


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
@pytest.mark.parametrize("frozen", [False, True])
def test_own_values_change_nothing(tiny, frozen):
    model = tiny_model(tiny)
    recording = record(model, [1, 2, 3, 4, 4, 1], "float32")
    heads = [Head(layer, head) for layer in range(tiny.n_layers) for head in range(2)]
    z = {head: recording.z[head.layer, head.head] for head in heads}
    patterns = {head: recording.pattern[head.layer, head.head] for head in heads}
    edits = [Edits(z={head: z[head]}) for head in heads]
    edits += [Edits(patterns={head: patterns[head]}) for head in heads]
    edits += [Edits(z=z), Edits(patterns=patterns), Edits(embedding=recording.embedding)]
    if recording.mlp_out is not None:
        edits += [Edits(mlp_out={layer: recording.mlp_out[layer]}) for layer in range(2)]
    edits.append(Edits(added=torch.zeros_like(recording.stream[-1])))
    # Logits of order 10 must stay within 1e-5; without a norm they come to 200.
    close = 1e-6 * max(10.0, float(recording.logits.abs().max()))
    for _, logits in model.logits_after(recording, edits, torch.arange(6), frozen):
        assert (logits - recording.logits).abs().max() < close


@given(
    starts=st.lists(st.integers(0, 12), min_size=1, max_size=60),
    n=st.integers(1, 600),
    n_dests=st.integers(0, 600),
    d_vocab=st.integers(2, 200_000),
)
def test_a_batch_is_one_forward_pass_at_most_and_none_is_left_out(starts, n, n_dests, d_vocab):
    config = ModelConfig(
        n_layers=12, n_heads=4, d_model=64, d_head=16, n_ctx=600, d_vocab=d_vocab, attn_only=True
    )
    edits = [
        Edits() if start == 12 else Edits(zeroed=frozenset({Head(start, 0)})) for start in starts
    ]
    found = list(batches(edits, config, n, n_dests))
    assert sorted(place for places in found for place in places) == list(range(len(edits)))
    for places in found:
        assert len({starts[place] for place in places}) == 1
        # q, k, v and o; scores and what they mix; and the unembedding, of all positions or some.
        layer, logits = n * (4 * 64 * 64 + 2 * n * 64), 64 * d_vocab
        one = (12 - starts[places[0]]) * layer + n_dests * logits
        assert len(places) == 1 or len(places) * one <= 12 * layer + n * logits
        assert len(places) == 1 or len(places) * n_dests * d_vocab <= 16_000_000
    # Full but for the last of each start.
    for before, after in pairwise(found):
        if starts[before[0]] == starts[after[0]]:
            assert len(before) >= len(after)
