"""core against the slow oracle, which shares no code with it: forward pass and every path."""

from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.names import Head
from circuitview.core.path_vectors import path_vectors
from circuitview.core.runner import head_scores
from circuitview.core.target import Target
from tests.reference import Oracle
from tests.tiny_models import KINDS, MLP_KINDS, Tiny, build_bundle, record

# float64, two ways of computing numbers of order one to ten.
CLOSE = 1e-11

_SMALL = [replace(kind, seed=place) for place, kind in enumerate(KINDS)]
_MLPS = [replace(kind, seed=40 + place) for place, kind in enumerate(MLP_KINDS)]
_DEPTHS = [
    Tiny(n_layers=1, n_heads=3, seed=21),
    Tiny(n_layers=3, n_heads=2, seed=22),
    Tiny(n_layers=3, n_heads=1, normalization_type="RMS", seed=23),
    Tiny(n_layers=4, n_heads=1, normalization_type=None, seed=24),
    Tiny(n_layers=5, n_heads=1, positional_embedding_type="shortformer", seed=25),
    Tiny(n_layers=2, n_heads=2, use_attn_scale=False, seed=26),
]


@pytest.fixture(params=[*_SMALL, *_MLPS, *_DEPTHS], ids=str)
def case(request, tmp_path):
    tiny = request.param
    folder = build_bundle(tmp_path / "bundle", tiny)
    rng = np.random.default_rng(tiny.seed)
    tokens = rng.integers(0, tiny.d_vocab, 6).tolist()
    oracle = Oracle(folder)
    return oracle, oracle.run(tokens), tokens, record(open_model(folder, dtype="float64"), tokens)


def test_forward_pass_agrees_with_the_unfolded_oracle(case):
    oracle, run, _, recording = case
    assert np.abs(recording.logits.numpy() - run.logits).max() <= CLOSE
    assert np.abs(recording.pattern.numpy() - run.pattern).max() <= CLOSE
    for layer, of_layer in enumerate(run.scores):
        for head, expected in enumerate(of_layer):
            scores = head_scores(recording.weights, recording, Head(layer, head))
            assert np.abs(scores.numpy() - expected).max() <= CLOSE
    assert np.abs(recording.ln_scale.numpy() - run.scale).max() <= CLOSE
    assert np.abs(recording.final_scale.numpy() - run.final_scale).max() <= CLOSE
    if recording.mlp_out is not None:
        mlp_out = run.mlp_out
        if oracle.centres:  # folded weights write centred vectors
            mlp_out = mlp_out - mlp_out.mean(-1, keepdims=True)
        assert np.abs(recording.mlp_out.numpy() - mlp_out).max() <= CLOSE
        assert np.abs(recording.mlp_scale.numpy() - run.mlp_scale).max() <= CLOSE
    else:
        assert not run.mlp_out.any()


@pytest.mark.parametrize("versus", [None, 5])
def test_every_path_agrees_with_the_oracle(case, versus):
    oracle, run, tokens, recording = case
    for dest, token in ((5, 3), (2, 0)):
        direction = np.zeros(recording.logits.shape[1])
        direction[token] = 1.0
        if versus is not None:
            direction[versus] -= 1.0
        expected = oracle.paths(run, tokens, dest, direction)
        target = Target(dest, token, "a", versus, None if versus is None else "b")
        found = expand(recording, target)
        close = CLOSE * found.scale
        listed = {}
        for term in found.terms:
            chain = tuple((head.layer, head.head) for head in term.path.heads)
            by_source = expected[str(term.path.source), chain]
            assert np.abs(term.by_source - by_source).max() <= close, str(term.path)
            listed[str(term.path.source), chain] = term
        rest = {path: value.sum() for path, value in expected.items() if path not in listed}
        assert found.n_unlisted == len(rest)
        assert abs(found.remainder - sum(rest.values())) <= close
        constant = oracle.constant(token) - (0.0 if versus is None else oracle.constant(versus))
        assert abs(found.constant - constant) <= close
        assert found.n_paths == len(expected)


def test_order_sums_agree_with_the_oracle_by_source_and_position(case):
    oracle, run, tokens, recording = case
    direction = np.zeros(recording.logits.shape[1])
    direction[4] = 1.0
    expected = oracle.paths(run, tokens, 5, direction)
    orders = expand(recording, Target(5, 4, "w4")).orders
    for place, source in enumerate(orders.sources):
        for order in range(recording.weights.config.n_layers + 1):
            parts = [
                value
                for (name, chain), value in expected.items()
                if name == str(source) and len(chain) == order
            ]
            total = sum(parts, np.zeros(len(tokens)))
            scale = max([1.0, *(np.abs(part).max() for part in parts)])
            assert np.abs(orders.sums[place, order] - total).max() <= CLOSE * scale


def test_path_vectors_agree_with_the_oracle(case):
    oracle, run, tokens, recording = case
    direction = np.zeros(recording.logits.shape[1])
    direction[2] = 1.0
    expected = oracle.paths(run, tokens, 4, direction)
    vectors = path_vectors(recording)
    contributions = vectors.contributions(Target(4, 2, "w2")).numpy()
    assert len(vectors.paths) == len(expected)
    scale = max(1.0, np.abs(contributions).max())
    for path, value in zip(vectors.paths, contributions, strict=True):
        chain = tuple((head.layer, head.head) for head in path.heads)
        assert abs(value - expected[str(path.source), chain].sum()) <= CLOSE * scale
