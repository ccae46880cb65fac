"""A run with everything held is the run itself, and is linear in what is taken away."""

import numpy as np
import pytest
import torch

from circuitview.core.edits import Edits
from circuitview.core.frozen import run_frozen
from circuitview.core.names import Head
from circuitview.core.orders import order_sums
from circuitview.core.target import Target
from tests.tiny_models import KINDS, MLP_KINDS, record, tiny_model


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_a_frozen_run_without_changes_gives_the_models_own_logits(tiny):
    recording = record(tiny_model(tiny), [1, 2, 3, 4])
    frozen = run_frozen(recording)
    scale = float(recording.logits.abs().max())
    # float64, the same sums in another order.
    assert torch.allclose(frozen.logits, recording.logits, rtol=0, atol=1e-12 * scale)
    assert torch.allclose(frozen.stream, recording.stream, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_zeroing_heads_of_one_layer_frozen_takes_away_what_runs_through_each(tiny):
    recording = record(tiny_model(tiny), [1, 2, 3, 4])
    target = Target(3, 2, "w2")
    orders = order_sums(recording, target)
    scale = max(1.0, np.abs(orders.sums).max())
    for layer in range(tiny.n_layers):
        zeroed = frozenset(Head(layer, head) for head in range(0, tiny.n_heads, 2))
        changed = run_frozen(recording, Edits(zeroed=zeroed))
        effect = target.of(changed.logits[3]) - target.of(recording.logits[3])
        assert abs(effect + sum(map(orders.head, zeroed))) <= 1e-11 * scale
        assert all(not changed.z[head.layer, head.head].any() for head in zeroed)


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_zeroing_every_head_frozen_leaves_direct_paths_and_constants(tiny):
    recording = record(tiny_model(tiny), [1, 2, 3, 4])
    weights = recording.weights
    heads = [Head(layer, head) for layer in range(tiny.n_layers) for head in range(tiny.n_heads)]
    left = run_frozen(recording, Edits(zeroed=frozenset(heads))).logits[3, 2]
    stream = recording.embedding[3] + weights.b_O.sum(0)  # [d_model]
    if recording.positions is not None:
        stream = stream + recording.positions[3]
    if recording.mlp_out is not None:
        stream = stream + recording.mlp_out[:, 3].sum(0)
    direct = weights.direction(2) @ stream / recording.final_scale[3] + weights.constant(2)
    assert abs(float(left - direct)) <= 1e-11 * max(1.0, float(recording.logits.abs().max()))
