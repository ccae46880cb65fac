"""The parts of a laid-out diagram: plain values in pixels."""

from dataclasses import dataclass
from typing import Literal

from circuitview.core.names import Head, Mlp, Source
from circuitview.core.path import Path

Constant = Literal["remainder", "b_U"]
End = Literal["adds", "takes away"]
Side = Literal["before", "after"]
Tokens = Literal["roomy", "numbered", "named", "one"]
Beside = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class SourceToken:
    """A source position, as a thing to point at; None stands for all that are not shown singly."""

    position: int | None


@dataclass(frozen=True, slots=True)
class LayerHeading:
    """The name of a layer over its column, as a thing to point at."""

    layer: int


@dataclass(frozen=True, slots=True)
class AllLayers:
    """The way back from one layer to the whole model, as a thing to point at."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Beside one layer: what several writers before it, or readers behind it, stand together for.

    Attributes:
        side: of the layer that is shown.
        what: a layer, or a kind of source.
    """

    side: Side
    what: int | Literal["biases", "MLPs", "MLP biases", "other layers"]

    def __str__(self) -> str:
        match self.what:
            case int(layer):
                return f"layer {layer}"
            case "other layers":
                return self.what
        return f"earlier {self.what}"


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
    """A bar that bands pass: a head, an MLP, a source, an end of the picture.

    Attributes:
        what: the thing itself.
        net: the sum of all paths through it (logits), listed or not; of a source token, of all its
            token paths; of Elsewhere, of the bands that pass it.
    """

    what: Head | Mlp | Source | SourceToken | Elsewhere | Constant | End
    x: float
    y: float
    height: float
    net: float


@dataclass(frozen=True, slots=True)
class Column:
    """A column of nodes: where it stands and what is written over it.

    Attributes:
        name: "embed", "layer 0", "logit".
        layer: the layer it is, where it is one.
    """

    name: str
    x: float
    layer: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The diagram's geometry in pixels.

    Attributes:
        scale: pixels a logit.
        lane: x, y, width, height of the residual stream.
        columns: from "embed" to "logit".
        strands: from a source token's node to the embedding: (node, value, y at embed).
        hidden: how many paths the remainder stands for.
        others: how many source tokens share the last token node.
        cell: width and height of a head's cell where heads stand in a grid; else None.
        cut: whether the remainder is drawn thinner than it is, beside one layer shown alone.
        used: what the bands of paths start at or step through; empty where not asked for.
        tokens, words: as in the frame.
        names_end: where the names of a grid's rows end.
    """

    scale: float
    lane: tuple[float, float, float, float]
    columns: tuple[Column, ...]
    bands: tuple[Band, ...]
    nodes: tuple[Node, ...]
    strands: tuple[tuple[Node, float, float], ...]
    hidden: int
    others: int
    node_width: float
    cell: tuple[float, float] | None = None
    cut: bool = False
    used: frozenset[object] = frozenset()
    tokens: Tokens = "roomy"
    words: Beside = "left"
    names_end: float = 0.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The room that the diagram may fill, and the distances in it (pixels).

    Attributes:
        line: what the name of a source token takes, from top to bottom.
        row_names: what the names of a grid's rows take, behind the embedding.
        tokens: how a grid shows the source tokens: with names and numbers, roomy or just so; with
            names alone; all as one node, which is the embedding's.
        words: on which side of the embedding's nodes a grid says what they are.
    """

    left: float
    top: float
    right: float
    bottom: float
    gap: float
    lane_pad: float = 8.0
    node_width: float = 10.0
    token_room: float = 96.0
    line: float = 15.0
    row_names: float = 50.0
    tokens: Tokens = "roomy"
    words: Beside = "left"

    @property
    def height(self) -> float:
        return self.bottom - self.top
