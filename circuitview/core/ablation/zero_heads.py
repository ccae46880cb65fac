"""Zero each head in turn and measure the target's logit.

Frozen, later patterns and all norm scales stay as recorded, and the effect is exactly minus the
head's contribution (its paths and its value bias). Free, everything after the head is computed
anew: later heads and the norms react, and effect and contribution part.
"""

from collections.abc import Generator
from dataclasses import dataclass

from circuitview.core.edits import Edits
from circuitview.core.frozen import run_frozen
from circuitview.core.names import Head
from circuitview.core.orders import order_sums
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording
from circuitview.core.target import Target


@dataclass(frozen=True, slots=True)
class AblationRow:
    """One head, taken away [logits].

    Attributes:
        head: the head whose output z is set to zero.
        contribution: all that runs through it, its value bias included.
        value: the target's logit without it.
        effect: that minus the clean logit.
    """

    head: Head
    contribution: float
    value: float
    effect: float


@dataclass(frozen=True, slots=True)
class AblationTable:
    """All heads of one prompt and target, and how they were measured."""

    target: Target
    frozen: bool
    clean: float
    rows: tuple[AblationRow, ...]


def zero_each_head(
    recording: Recording, target: Target, frozen: bool = False
) -> Generator[Progress, None, AblationTable]:
    """The effect of zeroing each head on `recording`'s prompt.

    Yields a Progress after each head, its row as the partial result. Cost: one forward pass a head.

    Args:
        recording: the clean run.
        target: what is measured.
        frozen: whether patterns and norm scales stay as recorded.
    """
    config, rerun = recording.weights.config, recording.rerun
    assert rerun is not None, "only a recording that was read from nowhere can't be run again"
    contributions = order_sums(recording, target)
    clean = target.of(recording.logits[target.dest])
    heads = [
        Head(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)
    ]
    rows: list[AblationRow] = []
    for head in heads:
        zeroed = frozenset({head})
        changed = run_frozen(recording, zeroed) if frozen else rerun(Edits(zeroed=zeroed))
        value = target.of(changed.logits[target.dest])
        row = AblationRow(head, contributions.head(head), value, value - clean)
        rows.append(row)
        yield Progress(len(rows), len(heads), row)
    return AblationTable(target, frozen, clean, tuple(rows))
