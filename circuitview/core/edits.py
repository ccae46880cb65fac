"""What a run changes: one value that every runner obeys."""

from dataclasses import dataclass, field

from circuitview.core.names import Head
from circuitview.core.recording import Recording


@dataclass(frozen=True, eq=False)
class Edits:
    """Changes to a forward pass.

    Attributes:
        zeroed: heads whose output z is set to zero, value bias included.
        frozen: a recording whose patterns and norm scales are imposed; None recomputes them.
    """

    zeroed: frozenset[Head] = field(default_factory=frozenset)
    frozen: Recording | None = None
