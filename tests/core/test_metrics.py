"""Each metric against numpy in float64, with and without a soft cap."""

import numpy as np
import pytest
import torch

from circuitview.core.ablation.cases import Case
from circuitview.core.ablation.metric import METRICS
from circuitview.core.ablation.metrics import measure
from circuitview.core.prompt import Prompt
from tests.tiny_models import Tiny, tiny_model

CASE = Case(
    Prompt("tiny", (1, 2, 3, 4), ("a", "b", "c", "d")),
    torch.tensor([0, 2, 3]),
    torch.tensor([4, 0, 7]),
    torch.tensor([5, 1, 3]),
)


def chances(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def by_hand(metric, logits, clean, cap):
    """[run] from [run, dest, d_vocab]."""
    shown, before = logits, clean
    if cap is not None:
        shown, before = cap * np.tanh(logits / cap), cap * np.tanh(clean / cap)
    found = []
    for own, run in zip(logits, shown, strict=True):
        values = []
        for dest, (token, other) in enumerate(zip([4, 0, 7], [5, 1, 3], strict=True)):
            p, q = chances(before[dest]), chances(run[dest])
            values.append(
                {
                    "logit": own[dest, token],
                    "difference": own[dest, token] - own[dest, other],
                    "probability": q[token],
                    "loss": -np.log(q[token]),
                    "kl": (p * np.log(p / q)).sum(),
                }[metric]
            )
        found.append(np.mean(values))
    return np.array(found)


@pytest.mark.parametrize("cap", [None, 3.0])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_metric_is_the_formula(metric, cap, dtype):
    generator = torch.Generator().manual_seed(2)
    logits = 4 * torch.randn(5, 3, 9, generator=generator, dtype=torch.float64)
    clean = 4 * torch.randn(3, 9, generator=generator, dtype=torch.float64)
    config = tiny_model(Tiny(output_logits_soft_cap=cap)).config
    found = measure(metric, CASE, config, logits.to(dtype), clean.to(dtype))
    assert found.dtype == torch.float64
    # Logits of order 10 hold 7 digits in float32.
    close = 1e-12 if dtype == torch.float64 else 1e-5
    expected = by_hand(metric, logits.numpy(), clean.numpy(), cap)
    assert np.allclose(found.numpy(), expected, rtol=0, atol=close)


def test_kl_of_the_clean_run_is_nothing_and_of_any_other_is_not_less():
    generator = torch.Generator().manual_seed(5)
    clean = 6 * torch.randn(3, 9, generator=generator)
    config = tiny_model(Tiny()).config
    runs = torch.stack([clean, clean + 2.0, clean + 0.01 * torch.randn(3, 9, generator=generator)])
    found = measure("kl", CASE, config, runs, clean)
    # A shift of all logits changes nothing; float32 shifts them by what rounding leaves.
    assert float(found[0]) == 0
    assert abs(float(found[1])) < 1e-12 + 1e-6
    assert float(found[2]) > 0


@pytest.mark.parametrize("metric", ["loss", "probability", "kl"])
def test_logits_as_large_as_a_models_do_not_overflow(metric):
    logits = torch.full((1, 3, 9), -90.0)
    logits[..., 2] = 300.0
    found = measure(metric, CASE, tiny_model(Tiny()).config, logits, logits[0])
    expected = {"loss": 390.0, "probability": np.exp(-390.0), "kl": 0.0}[metric]
    assert float(found[0]) == pytest.approx(expected, rel=1e-6, abs=1e-12)
