"""One row of a head's attention under two prompts, side by side.

Positions are compared from the start of each prompt, 0 to dest, so that the two need not be of one
length: what stands after dest is not looked at. In layer 0 the score of a pair whose two tokens are
the same in both prompts stays, since nothing but token, position and their norm goes into it; its
weight moves all the same, since the row is renormalised. In later layers scores move too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float
from torch import Tensor

from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, Head, ImbalanceError
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording

# Relative to the largest |score|: what rounding may do to a layer-0 score that has to stay.
_TOLERANCE = {"float32": 1e-4, "float64": 1e-11}


@dataclass(frozen=True, eq=False, slots=True)
class TwoRows:
    """A row of one head, under prompt A and under prompt B.

    Attributes:
        head, dest: which row.
        prompt_a, prompt_b: what was run, and in which precision (dtype).
        scores_a, scores_b: [src], before softmax; 0 to dest.
        weights_a, weights_b: [src], after softmax.
        same: [src], whether the tokens at src and at dest are those of the other prompt.
    """

    head: Head
    dest: int
    prompt_a: Prompt
    prompt_b: Prompt
    dtype: str
    scores_a: npt.NDArray[np.float64]
    scores_b: npt.NDArray[np.float64]
    weights_a: npt.NDArray[np.float64]
    weights_b: npt.NDArray[np.float64]
    same: npt.NDArray[np.bool_]

    @property
    def score_changes(self) -> npt.NDArray[np.float64]:
        """[src], B minus A."""
        changes: npt.NDArray[np.float64] = self.scores_b - self.scores_a
        return changes

    @property
    def weight_changes(self) -> npt.NDArray[np.float64]:
        """[src], B minus A; they add up to zero."""
        changes: npt.NDArray[np.float64] = self.weights_b - self.weights_a
        return changes

    @property
    def scores_stay(self) -> bool:
        """Whether the scores of unchanged pairs have to be the same under both prompts."""
        return self.head.layer == 0

    @property
    def drift(self) -> float:
        """The largest |change| of the score of an unchanged pair; 0 where there is none."""
        return float(np.abs(self.score_changes[self.same]).max(initial=0.0))


def row_under_two_prompts(
    model: Model, head: Head, dest: int, run_a: Recording, run_b: Recording
) -> TwoRows:
    """The scores and weights of `head` at `dest` under two prompts.

    Args:
        model: what was run.
        head: whose row.
        dest: a position that both prompts have, counted from 0.
        run_a, run_b: runs of `model` with nothing frozen.

    Raises:
        CircuitviewError: where the model has no such head, or a prompt no such position.
        ImbalanceError: where a layer-0 score moves that has to stay: then the runs are not what
            they seem, and nothing may be shown.
    """
    config = model.config
    if head.layer >= config.n_layers or head.head >= config.n_heads:
        raise CircuitviewError(
            f"{model.name} has no head {head}: its layers are 0 to {config.n_layers - 1}, its "
            f"heads 0 to {config.n_heads - 1}"
        )
    for name, run in (("A", run_a), ("B", run_b)):
        if not 0 <= dest < len(run.prompt):
            raise CircuitviewError(
                f"prompt {name} has {len(run.prompt)} tokens and no position {dest}: choose a dest "
                "that both have, or give it as many tokens"
            )
    pairs = [(run, model.scores(run, head)[dest, : dest + 1]) for run in (run_a, run_b)]
    scores_a, scores_b = (_values(scores) for _, scores in pairs)
    weights_a, weights_b = (
        _values(run.pattern[head.layer, head.head, dest, : dest + 1]) for run, _ in pairs
    )
    tokens_a, tokens_b = (np.array(run.prompt.token_ids[: dest + 1]) for run in (run_a, run_b))
    same = (tokens_a == tokens_b) & (tokens_a[dest] == tokens_b[dest])
    rows = TwoRows(
        head=head,
        dest=dest,
        prompt_a=run_a.prompt,
        prompt_b=run_b.prompt,
        dtype=run_a.dtype,
        scores_a=scores_a,
        scores_b=scores_b,
        weights_a=weights_a,
        weights_b=weights_b,
        same=same,
    )
    _require_staying(rows)
    return rows


def _require_staying(rows: TwoRows) -> None:
    if not rows.scores_stay:
        return
    largest = max(1.0, float(np.abs(rows.scores_a).max()), float(np.abs(rows.scores_b).max()))
    if not rows.drift <= _TOLERANCE[rows.dtype] * largest:  # False where anything is NaN
        raise ImbalanceError(
            f"head {rows.head}: a layer-0 score between unchanged tokens moves by "
            f"{rows.drift:.1e}, where it has to stay; nothing is shown. Try float64"
        )


def _values(row: Float[Tensor, " src"]) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = row.double().cpu().numpy()
    return values
