"""Where everything in a diagram of stacks stands.

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
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from circuitview.core.names import TOKEN, Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.figures.diagram.columns import LANE, Place, Plan, layer_plan, whole_plan
from circuitview.figures.diagram.geometry import (
    Band,
    Column,
    Constant,
    Elsewhere,
    Frame,
    Layout,
    Node,
)
from circuitview.figures.diagram.shown import shown_paths
from circuitview.figures.diagram.style import LARGEST_SCALE
from circuitview.figures.diagram.tokens import TokenColumn

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion


_NAMES = 0.62  # of the height: what the gaps may take beside one layer
_CUT = 0.25  # of what is drawn singly: the most that a remainder takes beside one layer


class _Draft:
    """A band that is being placed: what it is, and the node it visits in each column."""

    __slots__ = ("_ranks", "_start", "places", "size", "stops", "value", "what")

    def __init__(self, what: Path | Constant, value: float, places: Sequence[Place | None]) -> None:
        self.what = what
        self.value = value
        self.size = abs(value)
        self.places = places
        self.stops: list[tuple[float, float, float, float]] = []
        self._start = next(column for column, place in enumerate(places) if place is not None)
        self._ranks = tuple(_rank(place) for place in places if place is not None)

    def order(self, start: int = 0) -> tuple[tuple[int, int], ...]:
        """From the column `start` on, how high each node stands: the lane first, then the heads."""
        return self._ranks[max(0, start - self._start) :]


_KINDS = {"token": 0, "position": 1, "mlp": 2, "bias": 3, "mlp bias": 4}
_NAMED = {LANE: 0, "adds": 0, "takes away": 1}


@cache
def _rank(place: Place) -> tuple[int, int]:
    match place:
        case Head(_, head):
            return 1, head
        case Mlp():
            return 2, 0
        case Source(kind):
            return _KINDS[kind], 0
        case Elsewhere(_, what):
            return (1, what) if isinstance(what, int) else (2, 0)
    return _NAMED.get(place, 5), 0


def lay_out(
    expansion: "Expansion", frame: Frame, floor: float = 0.0, layer: int | None = None
) -> Layout:
    """The geometry of `expansion`'s diagram in columns.

    Args:
        expansion: balanced; callers refuse others.
        frame: the room to fill.
        floor: paths below this |contribution| (logits) join the remainder.
        layer: the only layer whose heads are shown, with what enters and leaves it; None for all.
    """
    shown = shown_paths(expansion, floor, layer)
    terms = [(expansion.paths[i], float(expansion.contributions[i])) for i in shown.places]
    if layer is None:
        plan = whole_plan(expansion, shown.remainder)
    else:
        plan = layer_plan(expansion, layer, terms, shown.remainder)
    drafts = [_Draft(path, value, plan.visits(path, value)) for path, value in terms]
    constants: list[tuple[Constant, float]] = []
    if shown.remainder:
        constants.append(("remainder", shown.rest))
    if expansion.constant:
        constants.append(("b_U", expansion.constant))
    drafts += [_Draft(what, value, plan.constant_visits(what, value)) for what, value in constants]
    cut = layer is not None and _cut_remainder(drafts)
    tokens = TokenColumn(expansion, frame) if layer is None else None
    scale = _scale(drafts, plan, tokens, frame)
    nodes, lane = _place(drafts, plan, expansion, frame, scale)
    token_nodes: tuple[Node, ...] = ()
    strands: tuple[tuple[Node, float, float], ...] = ()
    if tokens is not None:
        embed = next(node for node in nodes if node.what == TOKEN)
        token_nodes, strands = tokens.place(frame, scale, embed)
    return Layout(
        scale=scale,
        lane=lane,
        columns=tuple(
            Column(name, float(x), number)
            for (name, number), x in zip(plan.names, _xs(frame, plan), strict=True)
        ),
        bands=tuple(
            Band(draft.what, draft.value, draft.size * scale, tuple(draft.stops))
            for draft in drafts
        ),
        nodes=(*token_nodes, *nodes),
        strands=strands,
        hidden=shown.hidden,
        others=0 if tokens is None else tokens.others,
        node_width=frame.node_width,
        cut=cut,
    )


def _cut_remainder(drafts: Sequence[_Draft]) -> bool:
    """Beside one layer most of the logit may pass by: then the remainder is drawn thinner than it
    is, or nothing else could be seen."""
    drawn = sum(draft.size for draft in drafts if draft.what != "remainder")
    for draft in drafts:
        if draft.what == "remainder" and draft.size > _CUT * drawn > 0:
            draft.size = _CUT * drawn
            return True
    return False


def _xs(frame: Frame, plan: Plan) -> npt.NDArray[np.float64]:
    left = frame.left + (frame.token_room if plan.layer is None else 0.0)
    return np.linspace(left, frame.right, len(plan.columns))


def _gap(frame: Frame, plan: Plan, column: int) -> float:
    """Between the nodes of a column; one layer alone has room for all their names if it can be."""
    if plan.layer is None:
        return frame.gap
    return min(frame.gap, _NAMES * frame.height / max(len(plan.columns[column]), 1))


def _scale(drafts: Sequence[_Draft], plan: Plan, tokens: TokenColumn | None, frame: Frame) -> float:
    """The largest number of pixels a logit with which every column fits the frame."""
    lanes, others = [0.0] * len(plan.columns), [0.0] * len(plan.columns)
    for draft in drafts:
        for column, place in enumerate(draft.places):
            if place is not None:
                (lanes if place == LANE else others)[column] += draft.size
    lane = max(lanes)
    scales = [LARGEST_SCALE]
    if tokens is not None:
        scales.append(tokens.largest_scale(frame.height))
    for column, nodes in enumerate(plan.columns):
        inner = 0 < column < plan.last
        gaps = len(nodes) * _gap(frame, plan, column) + 2 * frame.lane_pad
        logits = others[column] + (lane if inner else 0.0)
        if logits > 0:
            scales.append(max(frame.height - gaps, frame.height / 4) / logits)
    return min(scales)


def _place(
    drafts: list[_Draft], plan: Plan, expansion: "Expansion", frame: Frame, scale: float
) -> tuple[list[Node], tuple[float, float, float, float]]:
    """Give every draft its stops; return the nodes and the lane."""
    xs = _xs(frame, plan)
    through: dict[tuple[int, Place], list[_Draft]] = defaultdict(list)
    for draft in drafts:
        for column, place in enumerate(draft.places):
            if place is not None:
                through[column, place].append(draft)

    def tall(column: int, place: Place) -> float:
        return sum(draft.size for draft in through[column, place]) * scale

    lane_height = max((tall(column, LANE) for column in range(1, plan.last)), default=0.0)
    lane_height += 2 * frame.lane_pad
    nets = _nets(expansion, drafts, plan)
    nodes: list[Node] = []
    half = frame.node_width / 2
    for column, (x, places) in enumerate(zip(xs, plan.columns, strict=True)):
        y, gap = frame.top + frame.lane_pad, _gap(frame, plan, column)
        inner = 0 < column < plan.last
        if inner:
            lane = through[column, LANE]
            lane.sort(key=lambda draft: (draft.order(column + 1), _arrival(draft)))
            _ride_lane(lane, y, scale, float(x))
            y = frame.top + lane_height
        for place in places:
            y += gap if inner else 0.0
            _pass_node(through[column, place], column, y, scale, float(x) - half, float(x) + half)
            height = tall(column, place)
            what: Any = place
            nodes.append(Node(what, float(x) - half, y, height, nets[place]))
            y += height + (0.0 if inner else gap)
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
        thickness = draft.size * scale
        put(draft, y + thickness / 2)
        y += thickness


def _nets(expansion: "Expansion", drafts: Sequence[_Draft], plan: Plan) -> dict[Place, float]:
    """The sum through each node (logits): of all paths, listed or not; at the ends, and beside a
    layer that is shown alone, of what is drawn."""
    exact: dict[Place, float] = {
        what: value
        for what, value in expansion.nets.items()
        if plan.layer is None or what.layer == plan.layer
    }
    nets: dict[Place, float] = defaultdict(float, exact)
    for draft in drafts:
        for place in dict.fromkeys(draft.places):
            if place is not None and place not in exact:
                nets[place] += draft.value
    return nets
