"""Where everything in the residual-stream diagram stands.

Left to right is the way through the model: source tokens, embedding, the layers, the logit. On top
runs the lane of the residual stream; under it, in each layer, stand the heads. A path is one band
of one thickness (its |contribution| on the picture's single scale): it rides the lane past the
layers it skips, dips to the heads it uses, and ends in the stack of what adds or takes away.

Every band passes every column once, so a column is as tall as the sum of the bands; the scale is
the largest that fits all columns. At a node, bands lie in the order of where they come from on its
left side and of where they go on its right side, which keeps crossings few.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from circuitview.core.names import POSITION, TOKEN, Head, Source
from circuitview.core.path import Path
from circuitview.figures.diagram.geometry import Band, Constant, End, Frame, Layout, Node
from circuitview.figures.diagram.tokens import TokenColumn

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

Place = tuple[str | int, ...]

# More bands than this are a haze that nobody reads; the smallest ones join the remainder.
MOST_BANDS = 600


class _Draft:
    """A band that is being placed: what it is, and the node it visits in each column."""

    __slots__ = ("_ranks", "_start", "places", "stops", "value", "what")

    def __init__(self, what: Path | Constant, value: float, places: Sequence[Place | None]) -> None:
        self.what = what
        self.value = value
        self.places = list(places)
        self.stops: list[tuple[float, float, float, float]] = []
        self._start = next(column for column, place in enumerate(places) if place is not None)
        self._ranks = tuple(_rank(place) for place in places if place is not None)

    def order(self, start: int = 0) -> tuple[tuple[int, int], ...]:
        """From the column `start` on, how high each node stands: the lane first, then the heads."""
        return self._ranks[max(0, start - self._start) :]


_RANKS = {"token": 0, "lane": 0, "adds": 0, "head": 1, "position": 1, "takes away": 1, "bias": 2}


@cache
def _rank(place: Place) -> tuple[int, int]:
    number = place[-1] if len(place) == 3 else 0
    return _RANKS.get(str(place[0]), 3), int(number)


def lay_out(expansion: "Expansion", frame: Frame, floor: float = 0.0) -> Layout:
    """The geometry of `expansion`'s diagram.

    Args:
        expansion: balanced; callers refuse others.
        frame: the room to fill.
        floor: paths below this |contribution| (logits) join the remainder.
    """
    L, H = expansion.recording.weights.config.n_layers, expansion.recording.weights.config.n_heads
    shown = shown_paths(expansion, floor)
    drafts = [
        _Draft(path, value, _places(path, value, L))
        for path, value in (
            (expansion.paths[i], float(expansion.contributions[i])) for i in shown.places
        )
    ]
    if shown.remainder:
        places = _constant_places("remainder", shown.rest, L)
        drafts.append(_Draft("remainder", shown.rest, places))
    if expansion.constant:
        drafts.append(
            _Draft("b_U", expansion.constant, _constant_places("b_U", expansion.constant, L))
        )
    sources = expansion.orders.sources
    columns = _column_nodes(L, H, sources, shown.remainder, bool(expansion.constant))
    tokens = TokenColumn(expansion, frame)
    scale = _scale(drafts, columns, tokens, frame)
    nodes, lane = _place(drafts, columns, expansion, frame, scale)
    embed = next(node for node in nodes if node.what == TOKEN)
    token_nodes, strands = tokens.place(frame, scale, embed)
    return Layout(
        scale=scale,
        lane=lane,
        columns=tuple(zip(_headings(L), _xs(frame, L), strict=True)),
        bands=tuple(
            Band(draft.what, draft.value, abs(draft.value) * scale, tuple(draft.stops))
            for draft in drafts
        ),
        nodes=(*token_nodes, *nodes),
        strands=strands,
        hidden=shown.hidden,
        others=tokens.others,
        node_width=frame.node_width,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a diagram draws band by band, and what it draws as the remainder.

    Attributes:
        places: of the paths with a band of their own, in Expansion.paths.
        hidden: how many paths have none.
        rest: their exact sum (logits).
        remainder: whether that has a band: not where all of them are zero but for rounding.
    """

    places: tuple[int, ...]
    hidden: int
    rest: float
    remainder: bool


def shown_paths(expansion: "Expansion", floor: float) -> Shown:
    """The paths of at least `floor` (logits), the largest of very many; the others are summed."""
    sizes = np.abs(expansion.contributions)
    nothing = expansion.tolerance / 1000
    keep = np.flatnonzero((sizes >= floor) & (sizes > nothing))
    if len(keep) > MOST_BANDS:
        keep = np.sort(keep[np.argsort(-sizes[keep], kind="stable")[:MOST_BANDS]])
    left = np.ones(len(sizes), np.bool_)
    left[keep] = False
    return Shown(
        places=tuple(keep.tolist()),
        hidden=int(left.sum()) + expansion.n_unlisted,
        rest=float(expansion.contributions[left].sum()) + expansion.remainder,
        remainder=bool((sizes[left] > nothing).any()) or expansion.n_unlisted > 0,
    )


def _end(value: float) -> Place:
    return ("takes away",) if value < 0 else ("adds",)


def _places(path: Path, value: float, n_layers: int) -> list[Place | None]:
    """The node that `path` visits in each column: embed, the layers, logit."""
    heads = {head.layer: head for head in path.heads}
    places: list[Place | None] = [(path.source.kind,) if path.source.layer < 0 else None]
    for layer in range(n_layers):
        if layer < path.source.layer:
            places.append(None)
        elif layer == path.source.layer:
            places.append((path.source.kind, layer))
        elif layer in heads:
            places.append(("head", layer, heads[layer].head))
        else:
            places.append(("lane", layer))
    return [*places, _end(value)]


def _constant_places(what: Constant, value: float, n_layers: int) -> list[Place | None]:
    lanes: list[Place | None] = [("lane", layer) for layer in range(n_layers)]
    if what == "b_U":
        return [*([None] * n_layers), ("b_U",), _end(value)]
    return [("remainder",), *lanes, _end(value)]


def _column_nodes(
    n_layers: int, n_heads: int, sources: Sequence[Source], remainder: bool, b_U: bool
) -> list[list[Place]]:
    """The nodes of each column from top to bottom, the lane apart."""
    embed: list[Place] = [("token",)]
    if POSITION in sources:
        embed.append(("position",))
    if remainder:
        embed.append(("remainder",))
    columns = [embed]
    for layer in range(n_layers):
        column: list[Place] = [("head", layer, head) for head in range(n_heads)]
        column += [("bias", layer)] if Source("bias", layer) in sources else []
        column += [("b_U",)] if b_U and layer == n_layers - 1 else []
        columns.append(column)
    return [*columns, [("adds",), ("takes away",)]]


def _headings(n_layers: int) -> list[str]:
    return ["embed", *(f"layer {layer}" for layer in range(n_layers)), "logit"]


def _xs(frame: Frame, n_layers: int) -> npt.NDArray[np.float64]:
    return np.linspace(frame.left + frame.token_room, frame.right, n_layers + 2)


def _scale(
    drafts: Sequence[_Draft],
    columns: Sequence[Sequence[Place]],
    tokens: "TokenColumn",
    frame: Frame,
) -> float:
    """The largest number of pixels a logit with which every column fits the frame."""
    lanes, others = [0.0] * len(columns), [0.0] * len(columns)
    for draft in drafts:
        for column, place in enumerate(draft.places):
            if place is not None:
                (lanes if place[0] == "lane" else others)[column] += abs(draft.value)
    lane = max(lanes)
    scales = [tokens.largest_scale(frame.height)]
    for column, nodes in enumerate(columns):
        inner = 0 < column < len(columns) - 1
        gaps = len(nodes) * frame.gap + 2 * frame.lane_pad
        logits = others[column] + (lane if inner else 0.0)
        if logits > 0:
            scales.append(max(frame.height - gaps, frame.height / 4) / logits)
    return min(scales)


def _place(
    drafts: list[_Draft],
    columns: Sequence[Sequence[Place]],
    expansion: "Expansion",
    frame: Frame,
    scale: float,
) -> tuple[list[Node], tuple[float, float, float, float]]:
    """Give every draft its stops; return the nodes and the lane."""
    xs = _xs(frame, len(columns) - 2)
    through: dict[Place, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        for place in draft.places:
            if place is not None:
                through[place].append(draft)

    def tall(place: Place) -> float:
        return sum(abs(draft.value) for draft in through[place]) * scale

    lane_height = max((tall(("lane", layer)) for layer in range(len(columns) - 2)), default=0.0)
    lane_height += 2 * frame.lane_pad
    nets = _nets(expansion, drafts)
    nodes: list[Node] = []
    half = frame.node_width / 2
    for column, (x, places) in enumerate(zip(xs, columns, strict=True)):
        y = frame.top + frame.lane_pad
        if 0 < column < len(columns) - 1:
            lane = through[("lane", column - 1)]
            lane.sort(key=lambda draft: (draft.order(column + 1), _arrival(draft)))
            _ride_lane(lane, y, scale, float(x))
            y = frame.top + lane_height
        for place in places:
            inner = column > 0
            y += frame.gap if inner and column < len(columns) - 1 else 0.0
            passing = through[place]
            _pass_node(passing, column, y, scale, float(x) - half, float(x) + half)
            height = tall(place)
            nodes.append(Node(_thing(place), float(x) - half, y, height, nets[place]))
            y += height + (0.0 if inner and column < len(columns) - 1 else frame.gap)
    left, right = float(xs[0]), float(xs[-1])
    return nodes, (left, frame.top, right - left, lane_height)


def _arrival(draft: _Draft) -> float:
    return draft.stops[-1][3] if draft.stops else 0.0


def _pass_node(
    passing: list[_Draft], column: int, y: float, scale: float, left: float, right: float
) -> None:
    """Stack the bands at a node: on its left side as they come, on its right side as they go."""
    arrivals: dict[int, float] = {}
    _each(
        sorted(passing, key=_arrival), y, scale, lambda draft, at: arrivals.update({id(draft): at})
    )
    leaving = sorted(passing, key=lambda draft: (draft.order(column + 1), _arrival(draft)))
    if column == 0:
        leaving = sorted(passing, key=lambda draft: draft.order(1))

    def leave(draft: _Draft, at: float) -> None:
        draft.stops.append((left, arrivals[id(draft)], right, at))

    _each(leaving, y, scale, leave)


def _ride_lane(riding: Iterable[_Draft], y: float, scale: float, x: float) -> None:
    """Stack the bands that pass a layer in the lane: each keeps its height there."""
    _each(riding, y, scale, lambda draft, at: draft.stops.append((x, at, x, at)))


def _each(
    drafts: Iterable[_Draft], y: float, scale: float, put: Callable[[_Draft, float], None]
) -> None:
    """Call `put` with each band and the middle of its slot, from `y` downwards."""
    for draft in drafts:
        thickness = abs(draft.value) * scale
        put(draft, y + thickness / 2)
        y += thickness


def _thing(place: Place) -> Head | Source | Constant | End:
    match place:
        case ("head", int(layer), int(head)):
            return Head(layer, head)
        case ("token",):
            return TOKEN
        case ("position",):
            return POSITION
        case ("bias", int(layer)):
            return Source("bias", layer)
        case (("remainder" | "b_U" | "adds" | "takes away") as end,):
            return end
    raise ValueError(place)


def _nets(expansion: "Expansion", drafts: Sequence[_Draft]) -> dict[Place, float]:
    """The sum through each node (logits): of all listed paths, drawn or not."""
    nets: dict[Place, float] = defaultdict(float)
    for what, value in expansion.nets.items():
        if isinstance(what, Head):
            nets["head", what.layer, what.head] = value
        else:
            nets[(what.kind,) if what.layer < 0 else (what.kind, what.layer)] = value
    for draft in drafts:
        end = draft.places[-1]
        assert end is not None
        nets[end] += draft.value
        if isinstance(draft.what, str):
            nets[(draft.what,)] += draft.value
    return nets
