"""Where everything in a deep model's diagram stands: a grid of layers and heads.

Left to right is the way through the model, as in the diagram of stacks; every head of every layer
is a cell of one size. A band rides the lane of the residual stream on top, dips to the cells that
its path steps through, and ends in the stack of what adds or takes away; between steps that lie
close together it goes straight. MLPs and biases have rows of their own under the heads.

The scale is the largest with which the lane, the stacks at both ends and the source tokens fit.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitview.core.names import POSITION, TOKEN, Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.figures.diagram.columns import Place, end_of
from circuitview.figures.diagram.geometry import Band, Column, Constant, Frame, Layout, Node
from circuitview.figures.diagram.lane import Ride, stack
from circuitview.figures.diagram.shown import shown_paths
from circuitview.figures.diagram.tokens import TokenColumn

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

_TURN = 76.0  # pixels that a band needs from the lane to a cell, to fall without a kink
_STRAIGHT = 2.2  # steps nearer to one another than so many turns are joined straight
_LANE = 0.36  # of the height, at least, is the lane's while rows have the room they need
_ROW = (4.0, 27.0)  # pixels: the lowest and the highest row
_THICKEST = 30.0  # pixels: of a path
_SQUEEZED = 3.0  # times: bands in a full lane lie upon one another rather than being all fine
_BEHIND = 0.4  # of a column's room: how far an MLP stands behind its layer's heads
_WORDS = 1.7  # gaps between the nodes of the embedding: two lines of words stand beside each
_CELL = (0.56, 0.62)  # of a column's and a row's room


@dataclass(slots=True)
class _Draft:
    """A band that is being placed: where it starts, steps and ends, and what lies between.

    Attributes:
        spots: x, and the middle of the row, of each place.
        rides: the ride between a place and the next; None where it goes straight.
        ys: its height at each place.
    """

    what: Path | Constant
    value: float
    size: float
    places: list[Place]
    spots: list[tuple[float, float]]
    rides: list[Ride | None]
    ys: list[float]

    def beside(self, number: int, step: int) -> float:
        """The height from which a band comes to a place (step -1), or to which it goes (1), as far
        as it is known: heights in the lane are measured in logits until they have a scale."""
        ride = self.rides[number if step > 0 else number - 1]
        return self.spots[number + step][1] if ride is None else ride.middle


class Grid:
    """The columns and rows of one deep diagram."""

    def __init__(self, expansion: "Expansion", frame: Frame) -> None:
        config = expansion.recording.weights.config
        self.n_layers, self.n_heads = config.n_layers, config.n_heads
        self.sources = expansion.orders.sources
        kinds = {source.kind for source in self.sources}
        self.rows = ["mlp"] if "mlp" in kinds or len(expansion.orders.mlps) else []
        self.rows += [kind for kind in ("bias", "mlp bias") if kind in kinds]
        self.frame = frame
        self._at: dict[Place, tuple[float, float]] = {}
        self.embed = frame.left + frame.token_room
        span = frame.right - self.embed
        self.entry = max(min(_TURN, 0.1 * span), span / (self.n_layers + 2))
        self.entry = max(self.entry, frame.row_names)
        self.pitch = (span - 2 * self.entry) / max(self.n_layers - 1, 1)
        split = expansion.through_mlps and not config.parallel_attn_mlp
        self.behind = _BEHIND * self.pitch if split else 0.0
        self.turn = max(self.pitch, min(_TURN, 0.1 * span))
        # The rows under the heads keep a line of text each.
        self.low_row = 0.8 * frame.gap
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
        return self.embed + self.entry + layer * self.pitch

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
                return self.frame.right - self.entry / 2
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
    drafts = _drafts(expansion, shown.places, shown.rest if shown.remainder else None, grid)
    paths = (draft for draft in drafts if draft.what != "remainder")
    depth = stack([ride for draft in paths for ride in draft.rides if ride is not None])
    tokens = TokenColumn(expansion, frame)
    embedded = _embedded(drafts, tokens, grid.sources)
    rest = abs(shown.rest) if shown.remainder else 0.0
    scale = _scale(drafts, depth / _SQUEEZED + rest, embedded, tokens, grid)
    part = min(1.0, (grid.lane_room / scale - rest) / max(depth, 1e-12))
    _settle(drafts, rest, part, frame.top + frame.lane_pad, scale)
    nodes, used = _place(drafts, embedded, expansion, grid, scale)
    embed = next(node for node in nodes if node.what == TOKEN)
    token_nodes, strands = tokens.place(frame, scale, embed)
    columns = [Column("embed", grid.embed)]
    columns += [Column(f"layer {n}", grid.column(n), n) for n in range(grid.n_layers)]
    return Layout(
        scale=scale,
        lane=(grid.embed, frame.top, frame.right - grid.embed, grid.lane_height),
        columns=(*columns, Column("logit", frame.right)),
        bands=tuple(_band(draft, scale) for draft in drafts),
        nodes=(*token_nodes, *nodes),
        strands=strands,
        hidden=shown.hidden,
        others=tokens.others,
        node_width=frame.node_width,
        cell=grid.cell,
        used=used,
    )


def _drafts(
    expansion: "Expansion", shown: Sequence[int], remainder: float | None, grid: Grid
) -> list[_Draft]:
    """The remainder, b_U and the shown paths, the smallest first: strong ones lie on top."""
    drafts = []
    if remainder is not None:
        drafts.append(_draft("remainder", remainder, ["remainder", end_of(remainder)], grid))
    if expansion.constant:
        value = expansion.constant
        drafts.append(_draft("b_U", value, ["b_U", end_of(value)], grid))
    places = np.array(shown, dtype=np.intp)
    values = expansion.contributions[places]
    for i in np.argsort(np.abs(values), kind="stable").tolist():
        path, value = expansion.paths[shown[i]], float(values[i])
        drafts.append(_draft(path, value, [path.source, *path.steps, end_of(value)], grid))
    return drafts


def _draft(what: Path | Constant, value: float, places: list[Place], grid: Grid) -> _Draft:
    """A band with its rides: between steps that lie far enough apart."""
    size, turn = abs(value), grid.turn
    spots = [grid.at(place) for place in places]
    rides: list[Ride | None] = [
        Ride(one + turn, other - turn, size) if other - one > _STRAIGHT * turn else None
        for (one, _), (other, _) in itertools.pairwise(spots)
    ]
    return _Draft(what, value, size, places, spots, rides, [0.0] * len(places))


def _settle(drafts: Sequence[_Draft], rest: float, part: float, top: float, scale: float) -> None:
    """Turn the heights of rides from logits into pixels. The remainder rides on top; under it the
    other rides, upon one another where there is less room than they reach deep."""
    for draft in drafts:
        for ride in draft.rides:
            if ride is not None:
                depth = rest / 2 if draft.what == "remainder" else rest + ride.middle * part
                ride.middle = top + depth * scale


def _embedded(
    drafts: Sequence[_Draft], tokens: TokenColumn, sources: Sequence[Source]
) -> dict[Place, float]:
    """How much starts at each node of the embedding (logits), from top to bottom."""
    sums: dict[Place, float] = {TOKEN: 0.0, POSITION: 0.0, "remainder": 0.0}
    for draft in drafts:
        if draft.places[0] in sums:
            sums[draft.places[0]] += draft.size
    # The strands of the tokens hold unlisted paths too.
    sums[TOKEN] = max(sums[TOKEN], sum(abs(net) for _, net in tokens.parts))
    return {place: size for place, size in sums.items() if size > 0 or place in sources}


def _scale(
    drafts: Sequence[_Draft],
    lane: float,
    embedded: dict[Place, float],
    tokens: TokenColumn,
    grid: Grid,
) -> float:
    frame = grid.frame
    room = frame.height - 2 * frame.lane_pad
    everything = sum(draft.size for draft in drafts)
    largest = max((draft.size for draft in drafts if isinstance(draft.what, Path)), default=0.0)
    limits = [
        (grid.lane_room, lane),
        (room - 2 * frame.gap, everything),
        (room - len(embedded) * _WORDS * frame.gap, sum(embedded.values())),
        (_THICKEST, largest),
    ]
    scales = [pixels / logits for pixels, logits in limits if logits > 0]
    return min([tokens.largest_scale(frame.height), *scales])


def _place(
    drafts: Sequence[_Draft],
    embedded: dict[Place, float],
    expansion: "Expansion",
    grid: Grid,
    scale: float,
) -> tuple[list[Node], frozenset[Place]]:
    """Give every draft its height at each of its places; return the nodes, and which are used."""
    frame = grid.frame
    passing: dict[Place, list[tuple[float, _Draft, int]]] = defaultdict(list)
    for draft in drafts:
        for number, place in enumerate(draft.places):
            # Where it starts a band is ordered by where it goes, else by where it comes from.
            passing[place].append((draft.beside(number, -1 if number else 1), draft, number))
    for here in passing.values():
        here.sort(key=itemgetter(0))
    half = frame.node_width / 2
    nodes: list[Node] = []
    y = frame.top + frame.lane_pad
    for place, size in embedded.items():
        _fill(passing[place], y, scale)
        net = sum(draft.value for _, draft, _ in passing[place])
        what: Any = place
        nodes.append(Node(what, grid.embed - half, y, size * scale, expansion.nets.get(what, net)))
        y += size * scale + _WORDS * frame.gap
    wide = grid.cell[0]
    for place in [*grid.cells(), *(["b_U"] if expansion.constant else [])]:
        (x, middle), high = grid.at(place), grid.height(place)
        _squeeze(passing[place], middle, high, scale)
        what = place
        net = expansion.nets.get(what, expansion.constant)
        nodes.append(Node(what, x - wide / 2, middle - high / 2, high, net))
    used = frozenset(place for place, here in passing.items() if here)
    return [*nodes, *_ends(passing, grid, scale)], used


def _ends(
    passing: dict[Place, list[tuple[float, _Draft, int]]], grid: Grid, scale: float
) -> list[Node]:
    """The stacks of what adds and of what takes away."""
    nodes = []
    y = grid.frame.top + grid.frame.lane_pad
    for value in (1.0, -1.0):
        end = end_of(value)
        size = sum(draft.size for _, draft, _ in passing[end])
        _fill(passing[end], y, scale)
        x = grid.frame.right - grid.frame.node_width / 2
        nodes.append(Node(end, x, y, size * scale, size * value))
        y += size * scale + grid.frame.gap
    return nodes


def _fill(here: Sequence[tuple[float, _Draft, int]], y: float, scale: float) -> None:
    """Stack bands from `y` downwards."""
    for _, draft, number in here:
        thickness = draft.size * scale
        draft.ys[number] = y + thickness / 2
        y += thickness


def _squeeze(
    here: Sequence[tuple[float, _Draft, int]], middle: float, height: float, scale: float
) -> None:
    """Stack bands about `middle`, upon one another where they are thicker than the cell is high."""
    whole = sum(draft.size for _, draft, _ in here) * scale
    part = min(1.0, height / whole) if whole > 0 else 1.0
    _fill(here, 0.0, scale)
    for _, draft, number in here:
        draft.ys[number] = middle + (draft.ys[number] - whole / 2) * part


def _band(draft: _Draft, scale: float) -> Band:
    stops = []
    for (x, _), y, ride in zip(draft.spots, draft.ys, [*draft.rides, None], strict=True):
        stops.append((x, y, x, y))
        if ride is not None:
            stops.append((ride.start, ride.middle, ride.end, ride.middle))
    return Band(draft.what, draft.value, draft.size * scale, tuple(stops))
