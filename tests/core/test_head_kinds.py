"""Head kinds on a model whose heads were written by hand to be of those kinds."""

import pytest
import torch

from circuitview.core.checkpoint import open_model
from circuitview.core.head_kinds import head_kinds, heads_above
from circuitview.core.names import Head
from tests.tiny_models import Tiny, tiny_model


def test_heads_written_by_hand_are_recognised():
    """induction-by-hand: 0.0 looks one back, 1.0 after the earlier copy, 1.1 at its own word."""
    kinds = head_kinds(open_model("induction-by-hand").weights())
    # Random words repeat by chance among 24, so that a copy may have several places to look at.
    assert heads_above(kinds.previous_token, 0.9) == [(Head(0, 0), pytest.approx(1.0, abs=1e-3))]
    assert heads_above(kinds.induction, 0.4)[0][0] == Head(1, 0)
    assert float(kinds.duplicate_token[1, 1]) < 0.5


def test_heads_of_even_attention_score_their_share():
    model = tiny_model(Tiny(n_ctx=21))
    flat = model.weights("float64")
    zero = torch.zeros_like(flat.W_Q)
    from dataclasses import replace

    even = replace(flat, W_Q=zero, b_Q=torch.zeros_like(flat.b_Q))
    kinds = head_kinds(even)
    # 21 tokens, BOS and 10 twice: dest stands among dest + 1 tokens.
    share = sum(1 / (dest + 1) for dest in range(1, 21)) / 20
    assert torch.allclose(kinds.previous_token, torch.full((2, 2), share, dtype=torch.float64))
    later = sum(1 / (dest + 1) for dest in range(11, 21)) / 10
    assert torch.allclose(kinds.induction, torch.full((2, 2), later, dtype=torch.float64))


def test_heads_are_listed_highest_first():
    scores = torch.tensor([[0.1, 0.6], [0.9, 0.5]])
    assert [head for head, _ in heads_above(scores, 0.5)] == [Head(1, 0), Head(0, 1), Head(1, 1)]
