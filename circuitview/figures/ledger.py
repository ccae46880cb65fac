"""The paths of an expansion as a ledger: groups with their listed paths and subtotals.

Every group adds up: its listed paths, b_U where it belongs, and the rest that is not listed one by
one. The command line and the exported table write the same ledger.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitview.core.groups import BIASES
from circuitview.core.path import PathTerm

if TYPE_CHECKING:  # torch loads only where something is computed
    from circuitview.core.expansion import Expansion


@dataclass(frozen=True, eq=False, slots=True)
class LedgerGroup:
    """One group of paths (logits).

    Attributes:
        total: every path of the group, listed or not, and the constant.
        terms: the listed paths, the largest |contribution| first.
        constant: the part of b_U; None where it is not in this group.
        rest: the paths not listed, `n_rest` of them.
    """

    name: str
    total: float
    terms: tuple[PathTerm, ...]
    constant: float | None
    rest: float
    n_rest: int


@dataclass(frozen=True, eq=False, slots=True)
class Ledger:
    """All groups of one expansion (logits).

    Attributes:
        listed: the listed paths of all groups, the largest |contribution| first.
        remainder: the sum of all paths that are not listed, `n_rest` of them.
    """

    groups: tuple[LedgerGroup, ...]
    listed: tuple[PathTerm, ...]
    remainder: float
    n_rest: int


def ledger(expansion: "Expansion", top: int | None = None) -> Ledger:
    """The ledger that lists the `top` largest paths of `expansion`, or all that it lists itself."""
    terms = expansion.terms
    listed = terms if top is None else terms[:top]
    remainder = expansion.remainder + sum(term.contribution for term in terms[len(listed) :])
    grouping = expansion.grouping
    names, counts = grouping.names, grouping.counts
    members: dict[str, list[PathTerm]] = {name: [] for name in names}
    for term in listed:
        members[grouping.of(term.path)].append(term)
    groups = []
    for name in names:
        mine = tuple(members[name])
        constant = expansion.constant if name == BIASES else None
        total = expansion.groups[name]
        known = sum(term.contribution for term in mine) + (constant or 0.0)
        n_rest = counts[name] - len(mine)
        rest = total - known if n_rest else 0.0
        groups.append(LedgerGroup(name, total, mine, constant, rest, n_rest))
    return Ledger(tuple(groups), listed, remainder, expansion.n_paths - len(listed))
