"""The words at the nodes of the diagram: names, and the sums of what passes."""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from circuitview.core.names import Head, Source
from circuitview.figures.diagram.effects import MeasuredEffects
from circuitview.figures.diagram.geometry import Elsewhere, Layout, Node, SourceToken
from circuitview.figures.diagram.room import number_room, shortened, width
from circuitview.figures.diagram.style import Style
from circuitview.figures.diagram.words import brief_count, count
from circuitview.figures.effect_words import written
from circuitview.figures.figure import Item, Text
from circuitview.figures.theme import Theme, amount_colour
from circuitview.session.numbers import logits
from circuitview.session.state import Selection

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion


class NodeLabels:
    """What is written at the nodes of one diagram."""

    def __init__(
        self,
        expansion: "Expansion",
        layout: Layout,
        theme: Theme,
        style: Style,
        selection: Selection,
        size: tuple[float, float],
        layer: int | None = None,
        effects: MeasuredEffects | None = None,
    ) -> None:
        self.expansion = expansion
        self.layout = layout
        self.theme = theme
        self.style = style
        self.selection = selection
        self.width, self.height = size
        self.layer, self.effects = layer, effects
        self._named = None if layer is None else _with_room(layout, style.small)

    def name(self, node: Node) -> str:
        """What `node` is called in exported files and titles."""
        match node.what:
            case SourceToken(None):
                return "the other tokens"
            case SourceToken(int(position)):
                return f"{self.expansion.recording.prompt.labels[position]} at {position}"
        return str(node.what)

    def title(self, node: Node) -> str:
        """What is said of `node` when it is pointed at."""
        if isinstance(node.what, SourceToken):
            return self.token_title(node)
        measured = self.effects is not None and self.effects.asks(node.what)
        effect = f", {self.effects.words(node.what)}" if self.effects and measured else ""
        return f"{self._net_title(node)}{effect}"

    def _net_title(self, node: Node) -> str:
        amount = f"{logits(node.net, signed=True)} logits"
        match node.what:
            case Head() if self.layer is None:
                return f"head {node.what}: {amount} through it"
            case Head():
                return f"head {node.what}: {amount} through it, of all paths"
            case "remainder":
                paths = f"{self.layout.hidden:,} paths"
                return f"remainder: {paths} that are not shown one by one, {amount} together"
            case Elsewhere():
                return f"{node.what}: {amount} in the paths drawn"
            case Source(_, layer) if self.layer is not None and layer != self.layer:
                return f"{node.what}: {amount} start there, of the paths drawn"
            case Source():
                return f"{node.what}: {amount} start there"
        return f"{node.what}: {amount} through it"

    def token_title(self, node: Node) -> str:
        return f"{self.name(node)}: {logits(node.net, signed=True)} logits through all token paths"

    def is_named(self, node: Node) -> bool:
        """Whether there is room for its name: beside many heads shown alone there may be none."""
        return self._named is None or node.what in self._named

    def label(self, node: Node) -> Iterable[Item]:
        style, theme = self.style, self.theme
        number, ink = self._number(node)
        match node.what:
            case SourceToken():
                yield from self._token_label(node, number, ink)
            case "adds" | "takes away":
                if self._both_ends():
                    yield self._end_label(node, number, ink)
            case Source(kind="token") if self.layer is None and self.layout.tokens != "one":
                return
            case Head() if style.gap < style.small * 1.15:
                return
            case _ if not self.is_named(node):
                return
            case "remainder" | "b_U" if not node.height and not node.net:
                return
            case _ if self.layout.cell is not None and node.x < self.layout.columns[0].x:
                words = self._left_of if self.layout.words == "left" else self._right_of
                yield from words(node, number, ink)
            case _:
                text = self._node_name(node)
                size, left, y = style.small, node.x, node.y - 4
                step = width(text + " ", size, bold=True) + 2
                if node.what == "b_U" and self.layout.cell is not None:
                    y = node.y + node.height + size * 1.1  # over it the stack of the end may stand
                yield Text(left, y, text, size, theme.text, bold=True, halo=theme.background)
                end = left + step + width(number, size)
                if self.layer is not None and self._meets(node, end, y):
                    left, step, y = node.x + self.layout.node_width, 4, node.y + size
                    if node.height < 2 * size + 4 - self.style.gap:  # the next name stands there
                        return
                    end = left + step + width(number, size)
                # Where many layers stand close together the next column begins here.
                if end <= self._next_column(node.x):
                    yield Text(left + step, y, number, size, ink, halo=theme.background)

    def _number(self, node: Node) -> tuple[str, str]:
        """What is written beside a node, and its ink: its net, or where effects colour the diagram
        its effect; a column beside one layer goes on counting what its heading says. A net beside
        effects is grey: blue and orange are those of effects there."""
        theme, effects = self.theme, self.effects
        effect = None if effects is None or self.layer is not None else effects.of(node.what)
        if effects is not None and effect is not None:
            number = written(effect, effects.metric)
            return number, amount_colour(number, theme)
        number = logits(node.net, signed=True)
        ends = node.what in ("adds", "takes away")
        if effects is not None and not ends:
            return number, theme.muted
        return number, amount_colour(number, theme)

    def _meets(self, node: Node, end: float, y: float) -> bool:
        """Whether what is written at `node`, to `end`, lies on a name or bar of a later column."""
        size = self.style.small
        return any(
            node.x < other.x < end + 2
            and other.y - 4 - 1.1 * size < y
            and y - size < other.y + other.height
            for other in self.layout.nodes
            if self.is_named(other)
        )

    def _node_name(self, node: Node) -> str:
        """What is written at `node`."""
        match str(node.what):
            case "token" | "position" as kind:
                return f"{kind}s"
            case "remainder":
                number = count if self.layout.tokens == "roomy" else brief_count
                return f"{number(self.layout.hidden)} paths"
            case name:
                return name

    def _left_of(self, node: Node, number: str, ink: str) -> Iterable[Item]:
        """Name and net to the left of a node, one over the other: cells begin on its right."""
        size, x = self.style.small, node.x - 6
        name = self._node_name(node)
        y = node.y + node.height / 2 - size * 0.1
        if node.what == "remainder":
            # Its tall bar reaches below what runs from the tokens to the embedding; so do these.
            y = max(y, node.y + node.height - size * 1.5)
        halo = self.theme.background
        yield Text(x, y, name, size, self.theme.text, "end", bold=True, halo=halo)
        yield Text(x, y + size * 1.23, number, size, ink, "end", halo=halo)

    def _right_of(self, node: Node, number: str, ink: str) -> Iterable[Item]:
        """Name and net in one line under a node, to the right, where the lane begins."""
        size, x, halo = self.style.small, node.x + 2, self.theme.background
        name = self._node_name(node)
        # In a low lane the words move up from its edge: under it the names of the rows begin.
        _, top, _, high = self.layout.lane
        here = [other for other in self.layout.nodes if other.x == node.x and other.y > node.y]
        y = min(node.y + node.height + size * 1.1, top + high - size * (0.3 + 1.25 * len(here)))
        if y - size < top:
            return
        yield Text(x, y, name, size, self.theme.text, bold=True, halo=halo)
        x += width(name, size, bold=True) + 0.4 * size
        yield Text(x, y, number, size, ink, halo=halo)

    def _next_column(self, x: float) -> float:
        """Where the next layer's names begin, seen from a layer; nothing stands beside others."""
        half = self.layout.node_width / 2
        starts = [column.x - half for column in self.layout.columns[1:-1]]
        later = [start for start in starts if start > x + half]
        return later[0] if later and x > starts[0] - half else math.inf

    def _end_label(self, node: Node, number: str, ink: str) -> Text:
        """The sum of a stack, beside the part of it that the bracket leaves free."""
        style = self.style
        if self.layout.cut:
            x, y = node.x + self.layout.node_width + 14, node.y + node.height / 2
            below = self.layout.lane[1] + self.layout.node_width + style.heading * 3.2
            return Text(
                x, max(y, below) + style.heading * 0.36, number, style.heading, ink, bold=True
            )
        x, y = node.x + self.layout.node_width + 14, self._sums[str(node.what)]
        return Text(x, y, number, style.heading, ink, bold=True)

    @cached_property
    def _sums(self) -> dict[str, float]:
        """Where the logit and the sums of the stacks are written (y): one under the other."""
        size = self.style.heading
        _, top, bottom = self._net_span()
        wanted = {"logit": (top + bottom) / 2}
        for node in self.layout.nodes:
            if isinstance(node.what, str) and node.what in ("adds", "takes away"):
                start, end = node.y, node.y + node.height
                if top <= start < bottom:
                    start = bottom
                elif start < top <= end:
                    end = top
                # Under a bracket that fills the stack the label moves below it.
                wanted[node.what] = max((start + end) / 2, start + size * 0.9)
        at, free = {}, 0.0
        for what in sorted(wanted, key=lambda what: wanted[what]):
            if what == "logit" or self._both_ends():
                at[what] = max(wanted[what], free) + size * 0.36
                free = at[what] + size
        return at

    def _token_label(self, node: Node, number: str, ink: str) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = node.y + node.height / 2 + style.label * 0.36
        end = node.x - 8 - self._numbers
        assert isinstance(node.what, SourceToken)
        position = node.what.position
        is_dest = position == self.expansion.target.dest
        if position is None:
            label = f"{self.layout.others} others"
        else:
            label = self.expansion.recording.prompt.labels[position]
        chosen = position is not None and position == self.selection.source
        if self.layout.tokens != "named":
            yield Text(node.x - 8, y, number, style.small, ink, "end")
        yield Text(
            end,
            y,
            shortened(label, style.label, end - 0.4 * style.label, bold=is_dest or chosen),
            style.label,
            theme.accent if chosen else theme.muted if position is None else theme.text,
            "end",
            bold=is_dest or chosen,
        )

    @cached_property
    def _numbers(self) -> float:
        """What the numbers beside the source tokens take, and the gap before them."""
        if self.layout.tokens == "named":
            return 0.0
        nets = [node.net for node in self.layout.nodes if isinstance(node.what, SourceToken)]
        return number_room(nets, self.style, *([0.0] if self.layout.tokens == "numbered" else []))

    def _both_ends(self) -> bool:
        """Whether something adds and something takes away: else the logit's own number says it."""
        return all(
            node.height > 0
            for node in self.layout.nodes
            if isinstance(node.what, str) and node.what in ("adds", "takes away")
        )

    def _net_span(self) -> tuple[float, float, float]:
        """x, top and bottom of the bracket beside the larger stack that is as tall as the logit."""
        ends = {node.what: node for node in self.layout.nodes if isinstance(node.what, str)}
        total = self.expansion.total
        larger = ends["adds"] if total >= 0 else ends["takes away"]
        net = abs(total) * self.layout.scale
        top = larger.y if total >= 0 else larger.y + larger.height - net
        return larger.x + self.layout.node_width + 3, top, top + net


def _with_room(layout: Layout, size: float) -> frozenset[object]:
    """The nodes whose names have room: those that carry most first."""
    named: list[Node] = []
    for node in sorted(layout.nodes, key=lambda node: -node.height):
        beside = (other for other in named if other.x == node.x)
        if all(abs(other.y - node.y) >= size * 1.23 for other in beside):
            named.append(node)
    return frozenset(node.what for node in named)
