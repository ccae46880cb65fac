"""Frozen, the logits are linear in the token embeddings; recomputed, they are not.

g(t) = logits(t) − logits(all token embeddings zero). With patterns, norm scales and MLP outputs
held, g(a + b) = g(a) + g(b) and g(2 a) = 2 g(a) but for rounding. Both runs are whole passes of
their own: nothing of one is used in the other.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.edits import Edits
from circuitview.core.frozen import require_length, run_frozen
from circuitview.core.model import Model
from circuitview.core.names import DtypeName
from circuitview.core.progress import Progress
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording

# Runs each way: zero, a, b, a + b, 2 a.
_RUNS = 5


@dataclass(frozen=True, slots=True)
class Misfit:
    """How far g is from linear, over all positions and tokens.

    Attributes:
        added: the largest |g(a + b) − g(a) − g(b)| [logits].
        doubled: the largest |g(2 a) − 2 g(a)| [logits].
        largest: the largest of |g(a)|, |g(b)|, |g(a + b)| and |g(2 a)| [logits].
    """

    added: float
    doubled: float
    largest: float

    @property
    def error(self) -> float:
        """The larger of the two, relative to the largest g."""
        worst = max(self.added, self.doubled)
        return worst / self.largest if self.largest > 0 else worst


@dataclass(frozen=True, eq=False, slots=True)
class Linearity:
    """The test of one prompt.

    Attributes:
        prompt, dtype: of the clean run, whose patterns, scales and MLP outputs were held.
        other: what b is, token by token.
        shuffled: whether b is the prompt's own tokens in another order.
        frozen, free: the misfit with everything held, and with everything recomputed.
        size: the largest |logit| of the clean run [logits].
    """

    prompt: Prompt
    dtype: str
    other: tuple[str, ...]
    shuffled: bool
    frozen: Misfit
    free: Misfit
    size: float


def linearity(
    model: Model, recording: Recording, other: Prompt | None = None, seed: int = 0
) -> Generator[Progress, None, Linearity]:
    """How linear the logits are in the token embeddings, frozen and recomputed.

    Yields after each run. a is what the recording's own tokens write, b what those of `other` do.
    Cost: five frozen and five free runs, and memory for five times the logits.

    Args:
        model: what was run.
        recording: a clean run of it.
        other: a prompt of as many tokens; None takes the recording's own in another order.
        seed: of that order.

    Raises:
        CircuitviewError: where `other` is of another length.
    """
    total = 2 * _RUNS + 1
    a = recording.embedding
    if other is None:
        order = _order(len(recording.tokens), seed)
        labels = tuple(recording.prompt.labels[place] for place in order)
        b = a[list(order)]  # [pos, d_model]
    else:
        require_length(recording, len(other))
        labels = other.labels
        b = model.run(other, cast("DtypeName", recording.dtype)).embedding
    yield Progress(1, total)
    edits = [Edits(embedding=t) for t in (torch.zeros_like(a), a, b, a + b, 2 * a)]
    made: list[Tensor] = []
    for done, edit in enumerate(edits, 2):
        made.append(run_frozen(recording, edit).logits)
        yield Progress(done, total)
    frozen = _misfit(made)
    # Each run takes the place of the frozen one: no more than five are held.
    done, dests = _RUNS + 1, torch.arange(len(recording.tokens))
    for places, logits in model.logits_after(recording, edits, dests):
        for place, run in zip(places, logits, strict=True):
            made[place] = run
        done += len(places)
        yield Progress(done, total)
    size = float(recording.logits.abs().max())
    return Linearity(
        recording.prompt, recording.dtype, labels, other is None, frozen, _misfit(made), size
    )


def _order(n: int, seed: int) -> tuple[int, ...]:
    """Positions in another order; of two or more never as they were."""
    generator = torch.Generator().manual_seed(seed)
    order = tuple(torch.randperm(n, generator=generator).tolist())
    return order if order != tuple(range(n)) else (*order[1:], *order[:1])


def _misfit(logits: list[Float[Tensor, "pos d_vocab"]]) -> Misfit:
    """Of the runs on zero, a, b, a + b and 2 a."""
    with torch.inference_mode():
        zero = logits[0]
        g_a, g_b, g_sum, g_double = (run - zero for run in logits[1:])  # [pos, d_vocab]
        return Misfit(
            added=float((g_sum - g_a - g_b).abs().max()),
            doubled=float((g_double - 2 * g_a).abs().max()),
            largest=max(float(g.abs().max()) for g in (g_a, g_b, g_sum, g_double)),
        )
