"""Words that the diagrams of stacks and the grid share."""

from typing import TYPE_CHECKING

from circuitview.session.expansions import B_MINUS_A

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

_NAMES = ((1e15, "quadrillion"), (1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: int) -> str:
    """A number of paths: "9,504", "23 trillion", "2.2 × 10³⁰"."""
    if number < 1_000_000:
        return f"{number:,}"
    if number >= 10**18:
        digits = str(number)
        tenths = round(int(digits[:3]) / 10)  # of the leading digit; 9.96 gives 100
        exponent = len(digits) - 1 + (tenths == 100)
        tenths = 10 if tenths == 100 else tenths
        return f"{tenths / 10:.1f} × 10{str(exponent).translate(_RAISED)}"
    size, name = next(known for known in _NAMES if number >= known[0])
    share = number / size
    return f"{share:.1f} {name}" if share < 10 else f"{share:.0f} {name}"


def brief_count(number: int) -> str:
    """The same in the least room: "9,504", "2 × 10¹³", "10³⁰"; to one digit from a million on."""
    if number < 1_000_000:
        return f"{number:,}"
    digits = str(number)
    first = round(int(digits[:3]) / 100)
    exponent = len(digits) - 1 + (first == 10)
    power = f"10{str(exponent).translate(_RAISED)}"
    return power if first in (1, 10) else f"{first} × {power}"


def expansion_name(expansion: "Expansion") -> str:
    """Which of the two expansions is shown, "" for a model without MLPs, where both are one; before
    it "B − A" where the numbers are differences."""
    parts = [] if expansion.between is None else [B_MINUS_A]
    if not expansion.recording.weights.config.attn_only:
        parts.append(
            "paths through MLPs, activation ratios held"
            if expansion.through_mlps
            else "MLP outputs as sources"
        )
    return ", ".join(parts)
