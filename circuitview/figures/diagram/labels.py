"""The words of the diagram: names and sums at the nodes, headings, the logit, the scale."""

import math
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from circuitview.core.names import Head, Source
from circuitview.figures.diagram.effects import MeasuredEffects
from circuitview.figures.diagram.geometry import (
    AllLayers,
    Elsewhere,
    Layout,
    Node,
    SourceToken,
)
from circuitview.figures.diagram.ribbon import dashes
from circuitview.figures.diagram.room import number_room, shortened, shortened_balance, width
from circuitview.figures.diagram.style import Style
from circuitview.figures.diagram.words import brief_count, count, expansion_name
from circuitview.figures.figure import Anchor, Command, Curve, Group, Item, Text
from circuitview.figures.theme import Theme
from circuitview.session.expansions import explained
from circuitview.session.numbers import logits
from circuitview.session.state import Selection

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion


# What the numbers at the nodes count, beside one layer: in its own columns, and in the others.
_COUNTED = (("net of all paths", "net of the paths drawn"), ("all paths", "paths drawn"))
_NAME = 0.25  # of the width: what the target's name may take beside a narrow grid's headings


class Labels:
    """What is written into one diagram."""

    WAY_BACK = "‹ all layers"

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
        if isinstance(node.what, SourceToken):
            return self.token_title(node)
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
        number = logits(node.net, signed=True)
        ink = theme.sign_text(node.net) if number.strip("0.") else theme.muted
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

    def headings(self) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = style.heading * 1.5
        if self.layer is None:
            yield from self._tokens_heading(y)
        columns = self.layout.columns[:-1]
        pitch = min(later.x - one.x for one, later in pairwise(columns))
        close = any(width(f"{c.name} ", style.heading, bold=True) > pitch for c in columns)
        for column in columns:
            name = column.name
            shown = name.removeprefix("layer ").replace("mlp ", "m") if close else name
            anchor: Anchor = (
                "start" if self.layer is not None and column is columns[0] else "middle"
            )
            x = column.x - (self.layout.node_width / 2 if anchor == "start" else 0.0)
            yield Text(x, y, shown, style.heading, theme.text, anchor, bold=True)
            if self.layer is not None:
                counted, at = self._counted[column.layer is None], y + 1.3 * style.small
                yield Text(x, at, counted, style.small, theme.muted, anchor)

    @cached_property
    def _counted(self) -> tuple[str, str]:
        """Beside one layer: what the numbers in its own columns count, and those in the others.

        The latter can't be added to the former: only what is drawn has a place beside the layer.
        """
        columns = self.layout.columns[:-1]
        pitch = min(later.x - one.x for one, later in pairwise(columns))
        for words in _COUNTED:
            first, middle = (width(words[which], self.style.small) for which in (1, 0))
            if max(first + middle / 2, first / 2 + middle / 2) + 6 <= pitch:
                return words
        return _COUNTED[-1]

    def _tokens_heading(self, y: float) -> Iterable[Text]:
        if not self.layout.strands:
            return
        end, size = self.layout.nodes[0].x + self.layout.node_width, self.style.heading
        for text in ("source tokens", "tokens"):
            if width(text, size, bold=True) <= end - 2:
                yield Text(end, y, text, size, self.theme.text, "end", bold=True)
                return

    def way_back(self) -> Group:
        """Which layer is shown alone, and where to point to see all again."""
        style, theme = self.style, self.theme
        x, y = 1.2 * style.label, style.heading * 1.5
        return Group(
            (Text(x, y, self.WAY_BACK, style.label, theme.accent, bold=True),),
            id="all layers",
            title="back to the whole model (Esc)",
            data=AllLayers(),
        )

    def total(self) -> Iterable[Item]:
        """The target, and the logit as what is left of the larger stack."""
        style, theme, expansion = self.style, self.theme, self.expansion
        yield self._target
        left, top, bottom = self._net_span()
        if self.layout.cut:
            yield self._cut_mark()
            size = style.heading * 1.15
            at = self.layout.lane[1] + self.layout.node_width + size
            yield Text(left + 11, at, logits(expansion.logit), size, theme.text, bold=True)
            return
        yield Curve(
            (("M", left, top), ("L", left + 4, top), ("L", left + 4, bottom), ("L", left, bottom)),
            stroke=theme.text,
            stroke_width=1.5,
        )
        label = logits(expansion.logit)
        yield Text(
            left + 11, self._sums["logit"], label, style.heading * 1.15, theme.text, bold=True
        )

    @cached_property
    def _target(self) -> Text:
        """The target's name over the stacks; in a narrow grid it ends with the picture."""
        style, ink = self.style, self.theme.text
        x, y = self.layout.columns[-1].x, self.layout.lane[1] - style.total * 0.62
        name, room = explained(self.expansion), 2 * (self.width - x) - 8
        most = _NAME * self.width
        if self.layer is not None:
            taken = width(self._counted[1], style.small) / 2
            left = self.layout.columns[-2].x + taken + 6
            if min(width(name, style.total, True), room) / 2 > x - left:
                x = self.width - 4
                name = shortened(name, style.total, x - left, bold=True)
                return Text(x, y, name, style.total, ink, "end", bold=True)
        if self.layout.cell is not None and room < min(width(name, style.total, True), most):
            x = self.width - 4
            name = shortened(name, style.total, most, bold=True)
            return Text(x, y, name, style.total, ink, "end", bold=True)
        name = shortened(name, style.total, room, bold=True)
        return Text(x, y, name, style.total, ink, "middle", bold=True)

    def _cut_mark(self) -> Group:
        """A break in the remainder, which is not as thick as it should be, and the words for it."""
        band = next(band for band in self.layout.bands if band.what == "remainder")
        x, y = band.stops[1][2] + 40, band.stops[1][3]
        high = band.thickness / 2 + 3
        breaks = tuple(
            Curve(
                (("M", x + off - 5, y + high), ("L", x + off + 5, y - high)),
                stroke=self.theme.background,
                stroke_width=4,
            )
            for off in (0, 11)
        )
        words = "all other paths, not to scale"
        at = y + self.style.small * 0.36
        halo = self.theme.background
        text = Text(x + 26, at, words, self.style.small, self.theme.text, halo=halo)
        return Group((*breaks, text), id="cut")

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

    def legend_line(self, n_captions: int) -> float:
        """The baseline of the legend."""
        return self.height - n_captions * self.style.label * 1.6 - self.style.small * 1.5

    def sample(self) -> tuple[float, float]:
        """A round number of logits, and how thick a band of so many is (pixels)."""
        steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
        step = next((step for step in steps if step * self.layout.scale >= 9), steps[-1])
        return step, step * self.layout.scale

    def legend(self, n_captions: int) -> Group:
        """The scale: how thick a band of so many logits is, and what the colours say."""
        style, theme, y = self.style, self.theme, self.legend_line(n_captions)
        step, thick = self.sample()
        size = style.small
        middle = y - size * 0.36
        items: list[Item] = []
        x = self.layout.columns[0].x - 10
        named = expansion_name(self.expansion)
        if named:
            items.append(Text(1.5 * style.label, y, named, size, theme.text, bold=True))
            x = max(x, 1.5 * style.label + width(named, size, bold=True) + 26)

        def sample(text: str, colour: str, thickness: float, dash: tuple[float, ...]) -> None:
            nonlocal x
            if x + 41 + width(text, size) > self.width - style.label:
                return
            line: tuple[Command, ...] = (("M", x, middle), ("L", x + 34, middle))
            items.append(Curve(line, stroke=colour, stroke_width=thickness, dash=dash, opacity=0.8))
            items.append(Text(x + 41, y, text, size, theme.muted))
            x += 41 + width(text, size) + 26

        unit = "logit" if step == 1 else "logits"
        sample(f"{step:g} {unit}: adds", theme.positive, thick, ())
        sample("takes away", theme.negative, thick, dashes(-1, thick))
        sample("not shown singly, b_U", theme.remainder, thick, ())
        more, wide = self.cell_sample(x, y)
        if x + wide < self.width - style.label:
            items += more
        return Group(tuple(items), id="scale")

    def cell_sample(self, x: float, y: float) -> tuple[list[Item], float]:  # noqa: ARG002
        """What cells say, where there are any; and how wide that is."""
        return [], 0.0

    def captions(self, lines: tuple[str, ...]) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = self.height - style.label * 0.9
        for line in reversed(lines):
            text = shortened_balance(line, style.label, self.width - 3 * style.label)
            ink = theme.text if line == lines[0] else theme.muted
            yield Text(1.5 * style.label, y, text, style.label, ink)
            y -= style.label * 1.6


def _with_room(layout: Layout, size: float) -> frozenset[object]:
    """The nodes whose names have room: those that carry most first."""
    named: list[Node] = []
    for node in sorted(layout.nodes, key=lambda node: -node.height):
        beside = (other for other in named if other.x == node.x)
        if all(abs(other.y - node.y) >= size * 1.23 for other in beside):
            named.append(node)
    return frozenset(node.what for node in named)
