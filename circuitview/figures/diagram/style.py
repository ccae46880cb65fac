"""Sizes of the diagram's text and gaps, and the frame they leave."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["stacks", "grid", "layer"]

# Pixels a logit: of two prompts that differ by nothing, or by rounding, no thick bands are drawn.
LARGEST_SCALE = 1200.0


@dataclass(frozen=True, slots=True)
class Style:
    """Sizes that follow the room there is."""

    small: float
    label: float
    heading: float
    total: float
    gap: float

    @classmethod
    def for_size(cls, width: float, height: float, n_heads: int, kind: Kind = "stacks") -> "Style":
        large = min(1.5, max(0.88, min(width / 1100, height / 610)))
        # The nets of the heads stand between the nodes: give them a line each while there is room.
        line = 17.0 * large
        share = {"stacks": 0.42 / max(n_heads + 2, 1), "grid": 0.03, "layer": 1.0}[kind]
        gap = min(line, max(5.0, share * height))
        return cls(10.5 * large, 12 * large, 13 * large, 21 * large, gap)
