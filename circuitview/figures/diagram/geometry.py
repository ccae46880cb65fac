"""The parts of a laid-out diagram: plain values in pixels."""

from dataclasses import dataclass
from typing import Literal

from circuitview.core.names import Head, Source
from circuitview.core.path import Path

Constant = Literal["remainder", "b_U"]
End = Literal["adds", "takes away"]


@dataclass(frozen=True, slots=True)
class SourceToken:
    """A source position, as a thing to point at; None stands for all that are not shown singly."""

    position: int | None


@dataclass(frozen=True, slots=True)
class Band:
    """One path, or what stands for several.

    Attributes:
        what: the path, "remainder" or "b_U".
        value: logits.
        thickness: pixels.
        stops: (x where it arrives, y there, x where it leaves, y there), from left to right.
    """

    what: Path | Constant
    value: float
    thickness: float
    stops: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A bar that bands pass: a head, a source, an end of the picture.

    Attributes:
        what: the thing itself.
        net: the sum of all listed paths through it (logits), drawn or not; of a source token, of
            all its token paths.
    """

    what: Head | Source | SourceToken | Constant | End
    x: float
    y: float
    height: float
    net: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The diagram's geometry in pixels.

    Attributes:
        scale: pixels a logit.
        lane: x, y, width, height of the residual stream.
        columns: the x of "embed", "layer 0", …, "logit".
        strands: from a source token's node to the embedding: (node, value, y at embed).
        hidden: how many paths the remainder stands for.
        others: how many source tokens share the last token node.
    """

    scale: float
    lane: tuple[float, float, float, float]
    columns: tuple[tuple[str, float], ...]
    bands: tuple[Band, ...]
    nodes: tuple[Node, ...]
    strands: tuple[tuple[Node, float, float], ...]
    hidden: int
    others: int
    node_width: float


@dataclass(frozen=True, slots=True)
class Frame:
    """The room that the diagram may fill, and the distances in it (pixels)."""

    left: float
    top: float
    right: float
    bottom: float
    gap: float
    lane_pad: float = 8.0
    node_width: float = 10.0
    token_room: float = 96.0

    @property
    def height(self) -> float:
        return self.bottom - self.top
