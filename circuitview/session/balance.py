"""The sum that proves the picture, in one line; the window, the diagram and the command line say it
in the same words.

    direct 3.07 + layer 0 0.38 + layer 1 15.29 + virtual 1.06 + positions and biases 2.96 = 22.76;
    model 22.76; error 2e-6

The groups and the total are the core's own: nothing is added up here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitview.session import numbers
from circuitview.session.expansions import B_MINUS_A, before_soft_cap

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

HELD_FIXED = "patterns and norm scales held"


@dataclass(frozen=True, slots=True)
class Balance:
    """The parts of the line.

    Attributes:
        groups: name and sum of each group (logits), in the order in which they are shown.
        total: what they add up to; `model` is the model's own logit, or difference of logits.
        error: model minus total.
        balanced: whether rounding explains the error.
        dtype: "float32" or "float64".
        capped: " before the soft cap of 30" where the model has one, else "".
        of: whose logit the sum must equal: "model", or "model's B − A".
    """

    groups: tuple[tuple[str, float], ...]
    total: float
    model: float
    error: float
    balanced: bool
    dtype: str
    capped: str = ""
    of: str = "model"

    @property
    def text(self) -> str:
        """The whole line."""
        words = " + ".join(f"{name} {numbers.logits(value)}" for name, value in self.groups)
        end = "" if self.balanced else " passes the tolerance"
        total, model = self._two_sides()
        model += self.capped
        return f"{words} = {total}; {self.of} {model}; error {numbers.error(self.error)}{end}"

    def _two_sides(self) -> tuple[str, str]:
        """Total and model with the fewest digits that do not mislead.

        3.95499 and 3.95501 are the same but for rounding and must read alike; two that differ by
        more than rounding must not.
        """
        pairs = [
            (numbers.logits(self.total, digits=digits), numbers.logits(self.model, digits=digits))
            for digits in (2, 3, 4, 5, 6)
        ]
        fitting = (pair for pair in pairs if (pair[0] == pair[1]) == self.balanced)
        return next(fitting, pairs[0])


def balance(expansion: "Expansion") -> Balance:
    """The balance of `expansion`."""
    names = expansion.grouping.names
    return Balance(
        groups=tuple((short_name(name), expansion.groups[name]) for name in names),
        total=expansion.total,
        model=expansion.logit,
        error=expansion.error,
        balanced=expansion.balanced,
        dtype=expansion.dtype,
        capped=before_soft_cap(expansion.recording.weights.config),
        of="model" if expansion.between is None else f"model's {B_MINUS_A}",
    )


def balance_text(expansion: "Expansion") -> str:
    """The balance of `expansion` as one line."""
    return balance(expansion).text


def short_name(group: str) -> str:
    """A group's name where there is little room: "layer 0" for "layer-0 heads"."""
    if group.startswith("layer-"):
        return "layer " + group.removeprefix("layer-").removesuffix(" heads")
    return "virtual" if group == "virtual heads" else group
