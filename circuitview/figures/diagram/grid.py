"""Where everything in a deep model's diagram stands: a grid of layers and heads.

Left to right is the way through the model, as in the diagram of stacks; every head of every layer
is a cell of one size. A band rides the lane of the residual stream on top, dips to the cells that
its path steps through, and ends in the stack of what adds or takes away; between steps that lie
close together it goes straight. MLPs and biases have rows of their own under the heads.

The scale is the largest with which the lane, the stacks at both ends and the source tokens fit.
"""

from typing import TYPE_CHECKING, Any

from circuitview.core.names import TOKEN, Head, Mlp, Source
from circuitview.figures.diagram.columns import Place, end_of
from circuitview.figures.diagram.embedding import Embedding
from circuitview.figures.diagram.geometry import Column, Frame, Layout, Node
from circuitview.figures.diagram.shown import shown_paths
from circuitview.figures.diagram.style import LARGEST_SCALE
from circuitview.figures.diagram.tokens import TokenColumn
from circuitview.figures.diagram.ways import SQUEEZED, Slot, Ways

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

_TURN = 76.0  # pixels that a band needs from the lane to a cell, to fall without a kink
_LANE = 0.36  # of the height, at least, is the lane's while rows have the room they need
_ROW = (4.0, 27.0)  # pixels: the lowest and the highest row
_THICKEST = 0.4  # of the way from the last layer to the end: of a path, so that it turns well
_MOST = 30.0  # pixels: of a path
_BEHIND = 0.4  # of a column's room: how far an MLP stands behind its layer's heads
_FALL = (24.0, 48.0)  # pixels: from the end of the rows' names to the first layer
_CELL = (0.56, 0.62)  # of a column's and a row's room


def first_layer(frame: Frame) -> float:
    """Where the first layer of a grid stands: x (pixels)."""
    embed = frame.left + frame.token_room
    turn = min(_TURN, 0.1 * (frame.right - embed))
    return embed + max(turn, frame.row_names + _FALL[0])


def row_kinds(expansion: "Expansion") -> list[str]:
    """What stands in the rows under the heads."""
    kinds = {source.kind for source in expansion.orders.sources}
    rows = ["mlp"] if "mlp" in kinds or len(expansion.orders.mlps) else []
    return rows + [kind for kind in ("bias", "mlp bias") if kind in kinds]


class Grid:
    """The columns and rows of one deep diagram."""

    def __init__(self, expansion: "Expansion", frame: Frame) -> None:
        config = expansion.recording.weights.config
        self.n_layers, self.n_heads = config.n_layers, config.n_heads
        self.sources = expansion.orders.sources
        self.rows = row_kinds(expansion)
        self.frame = frame
        self._at: dict[Place, tuple[float, float]] = {}
        self.embed = frame.left + frame.token_room
        span = frame.right - self.embed
        self.first = first_layer(frame)
        # The rows' names stand where nothing falls from the lane.
        self.names_end = max(self.embed + frame.row_names, self.first - _FALL[1])
        self.exit = max(min(_TURN, 0.14 * span), span / (self.n_layers + 2))
        across = frame.right - self.exit - self.first
        self.pitch = across / max(self.n_layers - 1, 1)
        split = expansion.through_mlps and not config.parallel_attn_mlp
        self.behind = _BEHIND * self.pitch if split else 0.0
        self.turn = max(self.pitch, min(_TURN, 0.1 * span))
        # The rows under the heads keep a line of text each.
        self.low_row = max(0.8 * frame.gap, 0.95 * frame.line)
        low = (len(self.rows) + 0.6) * self.low_row if self.rows else 0.0
        room = (1 - _LANE) * frame.height - frame.gap - low
        self.row = min(max(room / self.n_heads, _ROW[0]), _ROW[1])
        taken = self.n_heads * self.row + low + frame.gap
        self.lane_height = max(frame.height - taken, 4 * frame.lane_pad)
        self.lane_room = self.lane_height - 2 * frame.lane_pad
        self.top = frame.top + self.lane_height + frame.gap
        self.cell = min(_CELL[0] * self.pitch, 30.0), _CELL[1] * self.row
        if split:  # two cells share a column
            self.cell = min(self.cell[0], 0.9 * self.behind), self.cell[1]

    def column(self, layer: int) -> float:
        return self.first + layer * self.pitch

    def at(self, place: Place) -> tuple[float, float]:
        """Where a cell stands: x, and the middle of its row; of an end, x alone counts."""
        found = self._at.get(place)
        if found is None:
            found = self._at[place] = self._x(place), self._y(place)
        return found

    def _x(self, place: Place) -> float:
        match place:
            case "adds" | "takes away":
                return self.frame.right
            case "b_U":
                return self.frame.right - self.exit / 2
            case Mlp() | Source(kind="mlp bias"):
                return self.column(place.layer) + self.behind
            case Head() | Source() if place.layer >= 0:
                return self.column(place.layer)
        return self.embed

    def _y(self, place: Place) -> float:
        match place:
            case Head(_, head):
                return self.top + (head + 0.5) * self.row
            case Mlp():
                return self._below("mlp")
            case Source(kind):
                return self._below(kind)
        return self._below("bias" if "bias" in self.rows else "mlp")

    def _below(self, kind: str) -> float:
        under = self.rows.index(kind) if kind in self.rows else len(self.rows)
        return self.top + self.n_heads * self.row + (under + 1.1) * self.low_row

    def height(self, place: Place) -> float:
        """How high the cell of a place is."""
        return self.cell[1] if isinstance(place, Head) else min(self.cell[1], 0.8 * self.low_row)

    def cells(self) -> list[Place]:
        """Every cell, whether a band passes it or not."""
        found: list[Place] = [
            Head(layer, head) for layer in range(self.n_layers) for head in range(self.n_heads)
        ]
        mlps = not any(source.kind == "mlp" for source in self.sources) and "mlp" in self.rows
        found += [Mlp(layer) for layer in range(self.n_layers) if mlps]
        return found + [source for source in self.sources if source.layer >= 0]


def lay_out_grid(expansion: "Expansion", frame: Frame, floor: float = 0.0) -> Layout:
    """The geometry of `expansion`'s diagram as a grid.

    Args:
        expansion: balanced; callers refuse others.
        frame: the room to fill.
        floor: paths below this |contribution| (logits) join the remainder.
    """
    grid = Grid(expansion, frame)
    shown = shown_paths(expansion, floor)
    ways = Ways(expansion, shown, grid)
    tokens = None if frame.tokens == "one" else TokenColumn(expansion, frame)
    embedding = Embedding(ways, tokens, grid)
    rest = abs(shown.rest) if shown.remainder else 0.0
    scale = _scale(ways, ways.depth / SQUEEZED + rest, embedding, tokens, grid)
    part = min(1.0, (grid.lane_room / scale - rest) / max(ways.depth, 1e-12))
    ways.settle(rest, part, frame.top + frame.lane_pad, scale)
    slots = _slots(ways, embedding, grid, scale)
    nodes = _nodes(ways, slots, embedding, expansion, grid, scale)
    embed = next(node for node in nodes if node.what == TOKEN)
    token_nodes, strands = ((), ()) if tokens is None else tokens.place(frame, scale, embed)
    columns = [Column("embed", grid.embed)]
    columns += [Column(f"layer {n}", grid.column(n), n) for n in range(grid.n_layers)]
    return Layout(
        scale=scale,
        lane=(grid.embed, frame.top, frame.right - grid.embed, grid.lane_height),
        columns=(*columns, Column("logit", frame.right)),
        bands=ways.bands(slots, scale),
        nodes=(*token_nodes, *nodes),
        strands=strands,
        hidden=shown.hidden,
        others=0 if tokens is None else tokens.others,
        node_width=frame.node_width,
        cell=grid.cell,
        used=frozenset(ways.places),
        tokens=frame.tokens,
        words=frame.words,
        names_end=grid.names_end,
    )


def _scale(
    ways: Ways,
    lane: float,
    embedding: Embedding,
    tokens: TokenColumn | None,
    grid: Grid,
) -> float:
    frame = grid.frame
    room = frame.height - 2 * frame.lane_pad
    n_constants = sum(isinstance(what, str) for what in ways.whats)
    limits = [
        (grid.lane_room, lane),
        (room - 2 * frame.gap, float(ways.sizes.sum())),
        embedding.limit,
        (min(_MOST, _THICKEST * grid.exit), float(ways.sizes[n_constants:].max(initial=0.0))),
    ]
    scales = [pixels / logits for pixels, logits in limits if logits > 0]
    if tokens is not None:
        scales.append(tokens.largest_scale(frame.height))
    return min([LARGEST_SCALE, *scales])


def _slots(ways: Ways, embedding: Embedding, grid: Grid, scale: float) -> dict[Place, Slot]:
    """Where bands are stacked at each place."""
    frame = grid.frame
    slots: dict[Place, Slot] = {}
    for place in ways.places:
        slots[place] = Slot(None, grid.at(place)[1], grid.height(place))
    slots.update((place, slot) for place, (slot, _) in embedding.slots(scale).items())
    y = frame.top + frame.lane_pad
    for value in (1.0, -1.0):
        slots[end_of(value)] = Slot(y)
        y += ways.passing.get(end_of(value), 0.0) * scale + frame.gap
    return slots


def _nodes(
    ways: Ways,
    slots: dict[Place, Slot],
    embedding: Embedding,
    expansion: "Expansion",
    grid: Grid,
    scale: float,
) -> list[Node]:
    """The nodes of the embedding, the cells, and the stacks of what adds and of what takes away."""
    half = grid.frame.node_width / 2
    nodes: list[Node] = []
    for place, (slot, high) in embedding.slots(scale).items():
        net = expansion.nets.get(_thing(place), ways.passing_net.get(place, 0.0))
        nodes.append(Node(_thing(place), grid.embed - half, slot.top or 0.0, high, net))
    wide = grid.cell[0]
    for place in [*grid.cells(), *(["b_U"] if expansion.constant else [])]:
        (x, middle), high = grid.at(place), grid.height(place)
        net = expansion.nets.get(_thing(place), expansion.constant)
        nodes.append(Node(_thing(place), x - wide / 2, middle - high / 2, high, net))
    for value in (1.0, -1.0):
        end = end_of(value)
        size = ways.passing.get(end, 0.0)
        y = slots[end].top or 0.0
        nodes.append(Node(end, grid.frame.right - half, y, size * scale, size * value))
    return nodes


def _thing(place: Place) -> Any:
    """A place as what stands there; that a grid has no lane among its places no type can say."""
    return place
