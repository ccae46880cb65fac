"""What is measured of a run's logits: one number a case."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from circuitview.core.ablation.cases import Case
from circuitview.core.ablation.metric import MetricName
from circuitview.core.config import ModelConfig

Logits = Float[Tensor, "run dest d_vocab"]


def measure(
    metric: MetricName,
    case: Case,
    config: ModelConfig,
    logits: Logits,
    clean: Float[Tensor, "dest d_vocab"],
) -> Float[Tensor, " run"]:
    """The metric of each run, its mean over the case's dests; float64.

    Args:
        logits: at the case's dests, before a soft cap; logits and differences are measured there,
            all else behind it.
        clean: those of the clean run.
    """
    return _MEASURES[metric](case, config, logits, clean)


def _token_logits(case: Case, logits: Logits) -> Float[Tensor, "run dest"]:
    places = case.tokens.expand(len(logits), -1).unsqueeze(-1)
    return logits.gather(-1, places).squeeze(-1).double()  # [run, dest]


def _logit(case: Case, _config: ModelConfig, logits: Logits, _clean: Tensor) -> Tensor:
    return _token_logits(case, logits).mean(-1)


def _difference(case: Case, _config: ModelConfig, logits: Logits, _clean: Tensor) -> Tensor:
    assert case.versus is not None, "a difference is of two tokens"
    places = case.versus.expand(len(logits), -1).unsqueeze(-1)
    other = logits.gather(-1, places).squeeze(-1).double()  # [run, dest]
    return (_token_logits(case, logits) - other).mean(-1)


def _losses(case: Case, config: ModelConfig, logits: Logits) -> Float[Tensor, "run dest"]:
    shown = _capped(config, logits).flatten(0, 1)  # [run x dest, d_vocab]
    tokens = case.tokens.repeat(len(logits))
    # One pass over the vocabulary, which takes half as long as the logarithm of a sum.
    found = cross_entropy(shown, tokens, reduction="none")  # [run x dest]
    return found.view(len(logits), -1).double()


def _probability(case: Case, config: ModelConfig, logits: Logits, _clean: Tensor) -> Tensor:
    return (-_losses(case, config, logits)).exp().mean(-1)


def _loss(case: Case, config: ModelConfig, logits: Logits, _clean: Tensor) -> Tensor:
    return _losses(case, config, logits).mean(-1)


def _kl(_case: Case, config: ModelConfig, logits: Logits, clean: Tensor) -> Tensor:
    before = _capped(config, clean).double().log_softmax(-1)  # [dest, d_vocab]
    after = _capped(config, logits)
    # Σ p (log p − log q); the sum over the vocabulary in float64, run by run to save memory.
    chances = before.exp()
    found = [(chances * (before - run.double().log_softmax(-1))).sum(-1).mean(-1) for run in after]
    return torch.stack(found)  # [run]


def _capped(config: ModelConfig, logits: Tensor) -> Tensor:
    cap = config.output_logits_soft_cap
    return cap * torch.tanh(logits / cap) if cap is not None and cap > 0 else logits


_MEASURES: dict[MetricName, Callable[[Case, ModelConfig, Logits, Tensor], Tensor]] = {
    "logit": _logit,
    "difference": _difference,
    "probability": _probability,
    "loss": _loss,
    "kl": _kl,
}
