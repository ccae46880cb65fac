"""A toy with two numbers in its stream: every value below was worked out on paper."""

import pytest
import torch

from circuitview.core.config import ModelConfig
from circuitview.core.edits import Edits
from circuitview.core.expansion import expand
from circuitview.core.names import TOKEN, Head
from circuitview.core.path import Path
from circuitview.core.prompt import Prompt
from circuitview.core.runner import run
from circuitview.core.target import Target
from circuitview.core.weights import Weights

A, B, C = 0, 1, 2
# Both numbers are swapped by one head that looks at everything evenly (no query, no key).
SWAP = [[0.0, 1.0], [1.0, 0.0]]


@pytest.fixture(scope="module")
def weights() -> Weights:
    config = ModelConfig(
        n_layers=1,
        n_heads=1,
        d_model=2,
        d_head=2,
        n_ctx=4,
        d_vocab=3,
        positional_embedding_type="none",
    )
    flat = torch.zeros(1, 1, 2)
    return Weights(
        config=config,
        W_E=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        W_pos=None,
        W_Q=torch.zeros(1, 1, 2, 2),
        W_K=torch.zeros(1, 1, 2, 2),
        W_V=torch.tensor([[SWAP]]),
        W_O=torch.eye(2).expand(1, 1, 2, 2),
        b_Q=flat,
        b_K=flat,
        b_V=flat,
        b_O=torch.zeros(1, 2),
        W_U=torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        b_U=torch.zeros(3),
        pos_Q=None,
        pos_K=None,
    )


@pytest.fixture(scope="module")
def recording(weights):
    return run(weights, Prompt("toy", (A, B), ("a", "b")))


def test_pattern_of_the_second_position_is_half_half(recording):
    assert recording.pattern[0, 0].tolist() == [[1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("dest", "direct", "head", "total"),
    [
        (0, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]),
        (1, [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.5, 1.5, 0.0]),
    ],
)
def test_terms_and_logits_are_those_worked_out(recording, dest, direct, head, total):
    for token in (A, B, C):
        found = expand(recording, Target(dest, token, "abc"[token]))
        assert found.term(Path(TOKEN)).contribution == direct[token]
        assert found.term(Path(TOKEN, (Head(0, 0),))).contribution == head[token]
        assert found.logit == total[token]
        assert found.error == 0.0


def test_the_second_positions_head_term_splits_over_both_sources(recording):
    by_source = {
        token: expand(recording, Target(1, token, "abc"[token]))
        .term(Path(TOKEN, (Head(0, 0),)))
        .by_source.tolist()
        for token in (A, B)
    }
    # a at position 0 arrives swapped as b, b at position 1 as a; each with weight one half.
    assert by_source == {A: [0.0, 0.5], B: [0.5, 0.0]}


def test_frozen_c_b_changes_the_second_position_by_half_an_a(weights, recording):
    changed = run(weights, Prompt("toy", (C, B), ("c", "b")), Edits(frozen=recording))
    difference = changed.logits - recording.logits
    assert difference[1].tolist() == [0.5, 0.0, 0.0]


def test_paths_foretell_the_frozen_change(weights, recording):
    step = weights.W_E[C] - weights.W_E[A]
    moved = recording.pattern[0, 0, 1, 0] * (step @ weights.W_V[0, 0] @ weights.W_O[0, 0])
    assert (moved @ weights.W_U).tolist() == [0.5, 0.0, 0.0]
