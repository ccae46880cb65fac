"""The columns of a diagram of stacks: which nodes each has, and which of them a path visits.

Two plans: the whole of a model of few layers; and one layer of a deep model, with what enters it
on the left and what it leaves for on the right, both by layer.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from circuitview.core.names import POSITION, TOKEN, Head, Mlp, Source, Step
from circuitview.core.path import Path
from circuitview.figures.diagram.geometry import Constant, Elsewhere, End, Side

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

_MOST_BESIDE = 10  # layers that stand alone beside one that is shown alone
LANE = "lane"  # where a band passes a column without a node
Place = Head | Mlp | Source | Elsewhere | str


@dataclass(frozen=True)
class Plan:
    """The columns of one diagram.

    Attributes:
        names: what is written over each column, and the layer it is, where it is one.
        columns: the nodes of each, from top to bottom, the lane apart.
        column_of: where each source and step that has a node stands.
        layer: the one layer that is shown; None for all.
        grouped: which Elsewhere stands for another one that has no node of its own.
    """

    names: tuple[tuple[str, int | None], ...]
    columns: tuple[tuple[Place, ...], ...]
    column_of: dict[Place, int] = field(repr=False)
    layer: int | None = None
    grouped: Mapping[Place, Place] = field(default_factory=dict, repr=False)

    @property
    def last(self) -> int:
        """The column of the logit."""
        return len(self.columns) - 1

    def visits(self, path: Path, value: float) -> list[Place | None]:
        """What a path passes in each column, None before it starts."""
        stops: list[Place] = [path.source, *path.steps]
        if self.layer is not None:
            stops = [self.grouped.get(stop, stop) for stop in _around(path, self.layer)]
        start = self.column_of[stops[0]]
        visited: list[Place | None] = [*[None] * start, *[LANE] * (self.last - start)]
        for stop in stops:
            visited[self.column_of[stop]] = stop
        return [*visited, end_of(value)]

    def constant_visits(self, what: Constant, value: float) -> list[Place | None]:
        """The same for the remainder, which rides the lane, and for b_U, which enters last."""
        if what == "b_U":
            return [*([None] * (self.last - 1)), "b_U", end_of(value)]
        return ["remainder", *([LANE] * (self.last - 1)), end_of(value)]


def end_of(value: float) -> End:
    return "takes away" if value < 0 else "adds"


def whole_plan(expansion: "Expansion", remainder: bool) -> Plan:
    """A column for the embeddings, one for each layer, one for the logit; where paths run through
    MLPs that stand behind their layer's heads, one for each of those."""
    config, sources = expansion.recording.weights.config, expansion.orders.sources
    split = expansion.through_mlps and not config.parallel_attn_mlp and not config.attn_only
    names: list[tuple[str, int | None]] = [("embed", None)]
    columns: list[list[Place]] = [[TOKEN, *([POSITION] if POSITION in sources else [])]]
    if remainder:
        columns[0].append("remainder")
    for layer in range(config.n_layers):
        parts = _layer_nodes(expansion, layer, split)
        columns += parts
        names.append((f"layer {layer}", layer))
        names += [(f"mlp {layer}", layer)] * (len(parts) - 1)
    if expansion.constant:
        columns[-1].append("b_U")
    return _plan([*names, ("logit", None)], columns, None)


def layer_plan(
    expansion: "Expansion", layer: int, terms: Sequence[tuple[Path, float]], remainder: bool
) -> Plan:
    """What enters one layer, its heads and MLP, and what those paths pass next, on the way to the
    logit. Of many layers beside it those that carry most stand alone."""
    config = expansion.recording.weights.config
    split = expansion.through_mlps and not config.parallel_attn_mlp and not config.attn_only
    carried: dict[Place, float] = defaultdict(float)
    for path, value in terms:
        for stop in _around(path, layer):
            if isinstance(stop, Elsewhere) or (isinstance(stop, Source) and stop.layer < 0):
                carried[stop] += abs(value)
    before, earlier = _gathered(carried, "before")
    after, later = _gathered(carried, "after")
    parts = _layer_nodes(expansion, layer, split)
    names: list[tuple[str, int | None]] = [
        ("from", None),
        (f"layer {layer}", layer),
        *([(f"mlp {layer}", layer)] * (len(parts) - 1)),
        ("next", None),
        ("logit", None),
    ]
    first = [*before, *(["remainder"] if remainder else [])]
    last = [*after, *(["b_U"] if expansion.constant else [])]
    return replace(_plan(names, [first, *parts, last], layer), grouped={**earlier, **later})


def _gathered(carried: Mapping[Place, float], side: Side) -> tuple[list[Place], dict[Place, Place]]:
    """The nodes on one side of a layer, and which of them the small ones join."""
    here = [
        place
        for place in carried
        if (place.side == side if isinstance(place, Elsewhere) else side == "before")
    ]
    layers = [
        place for place in here if isinstance(place, Elsewhere) and isinstance(place.what, int)
    ]
    layers.sort(key=lambda place: -carried[place])
    small = layers[_MOST_BESIDE - 1 :] if len(layers) > _MOST_BESIDE else []
    others = Elsewhere(side, "other layers")
    kept = [place for place in here if place not in small] + ([others] if small else [])
    return sorted(kept, key=_entry_order), dict.fromkeys(small, others)


def _plan(
    names: list[tuple[str, int | None]], columns: list[list[Place]], layer: int | None
) -> Plan:
    columns = [*columns, ["adds", "takes away"]]
    column_of = {place: column for column, places in enumerate(columns) for place in places}
    return Plan(tuple(names), tuple(map(tuple, columns)), column_of, layer)


def _layer_nodes(expansion: "Expansion", layer: int, split: bool) -> list[list[Place]]:
    """The nodes of a layer: one column, or, with `split`, its MLP in a second one."""
    config, sources = expansion.recording.weights.config, expansion.orders.sources
    heads: list[Place] = [Head(layer, head) for head in range(config.n_heads)]
    bias, mlp_bias = Source("bias", layer), Source("mlp bias", layer)
    mlp: list[Place] = []
    if expansion.through_mlps and not config.attn_only:
        mlp.append(Mlp(layer))
    elif Source("mlp", layer) in sources:
        mlp.append(Source("mlp", layer))
    mlp += [mlp_bias] if mlp_bias in sources else []
    heads += [bias] if bias in sources else []
    return [heads, mlp] if split else [heads + mlp]


def _around(path: Path, layer: int) -> list[Place]:
    """What a path that touches `layer` passes there, just before it and just behind it."""
    stops: list[Place] = []
    earlier = [step for step in path.steps if step.layer < layer]
    if path.source.layer != layer:
        stops.append(_entry(path.source, earlier))
    else:
        stops.append(path.source)
    stops += [step for step in path.steps if step.layer == layer]
    later = next((step for step in path.steps if step.layer > layer), None)
    return stops if later is None else [*stops, Elsewhere("after", later.layer)]


def _entry(source: Source, earlier: Sequence[Step]) -> Place:
    """What wrote the stream that the layer reads: the last step before it, or the source."""
    if earlier:
        return Elsewhere("before", earlier[-1].layer)
    match source.kind:
        case "bias":
            return Elsewhere("before", "biases")
        case "mlp":
            return Elsewhere("before", "MLPs")
        case "mlp bias":
            return Elsewhere("before", "MLP biases")
    return source


def _entry_order(place: Place) -> tuple[int, int]:
    match place:
        case Source():
            return (0, int(place != TOKEN))
        case Elsewhere(_, int(layer)):
            return (1, layer)
        case _:
            return (2, len(str(place)))
