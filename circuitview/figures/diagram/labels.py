"""The words of the diagram: names and sums at the nodes, headings, the logit, the scale."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from circuitview.core.names import Head, Source
from circuitview.figures.diagram.geometry import Layout, Node, SourceToken
from circuitview.figures.diagram.ribbon import dashes
from circuitview.figures.diagram.style import Style
from circuitview.figures.figure import Command, Curve, Group, Item, Text
from circuitview.figures.text_width import elide, width
from circuitview.figures.theme import Theme
from circuitview.session.numbers import logits
from circuitview.session.state import Selection

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion


class Labels:
    """What is written into one diagram."""

    def __init__(
        self,
        expansion: "Expansion",
        layout: Layout,
        theme: Theme,
        style: Style,
        selection: Selection,
        size: tuple[float, float],
    ) -> None:
        self.expansion = expansion
        self.layout = layout
        self.theme = theme
        self.style = style
        self.selection = selection
        self.width, self.height = size

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
        what = f"head {node.what}" if isinstance(node.what, Head) else str(node.what)
        return f"{what}: {logits(node.net, signed=True)} logits through it"

    def token_title(self, node: Node) -> str:
        return f"{self.name(node)}: {logits(node.net, signed=True)} logits through all token paths"

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
            case Source(kind="token"):
                return
            case Head() if style.gap < style.small * 1.15:
                return
            case _:
                name = {"position": "positions", "remainder": f"{self.layout.hidden:,} paths"}
                text = name.get(str(node.what), str(node.what))
                size, left, y = style.small, node.x, node.y - 4
                step = width(text + " ", size, bold=True) + 2
                yield Text(left, y, text, size, theme.text, bold=True, halo=theme.background)
                # Where many layers stand close together the next column begins here.
                if node.x + step + width(number, size) <= self._next_column(node.x):
                    yield Text(left + step, y, number, size, ink, halo=theme.background)

    def _next_column(self, x: float) -> float:
        """Where the next layer's names begin, seen from a layer; nothing stands beside others."""
        half = self.layout.node_width / 2
        starts = [place - half for _, place in self.layout.columns[1:-1]]
        later = [start for start in starts if start > x + half]
        return later[0] if later and x > starts[0] - half else math.inf

    def _end_label(self, node: Node, number: str, ink: str) -> Text:
        """The sum of a stack, beside the part of it that the bracket leaves free."""
        style = self.style
        _, top, bottom = self._net_span()
        start, end = node.y, node.y + node.height
        if top <= start < bottom:
            start = bottom
        elif start < top <= end:
            end = top
        # Under a bracket that fills the stack the label moves below it.
        low = max((start + end) / 2, start + style.heading * 0.9)
        x = node.x + self.layout.node_width + 14
        return Text(x, low + style.heading * 0.36, number, style.heading, ink, bold=True)

    def _token_label(self, node: Node, number: str, ink: str) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = node.y + node.height / 2 + style.label * 0.36
        room = node.x - 8 - 4.3 * style.label
        assert isinstance(node.what, SourceToken)
        position = node.what.position
        is_dest = position == self.expansion.target.dest
        if position is None:
            label = f"{self.layout.others} others"
        else:
            label = self.expansion.recording.prompt.labels[position]
        chosen = position is not None and position == self.selection.source
        yield Text(node.x - 8, y, number, style.small, ink, "end")
        yield Text(
            node.x - 8 - 3.9 * style.label,
            y,
            elide(label, style.label, room, bold=is_dest),
            style.label,
            theme.accent if chosen else theme.muted if position is None else theme.text,
            "end",
            bold=is_dest or chosen,
        )

    def headings(self) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = style.heading * 1.5
        first = self.layout.nodes[0].x + self.layout.node_width
        yield Text(first, y, "source tokens", style.heading, theme.text, "end", bold=True)
        columns = self.layout.columns[:-1]
        pitch = min(later - x for (_, x), (_, later) in pairwise(columns))
        close = any(width(f"{name} ", style.heading, bold=True) > pitch for name, _ in columns)
        for name, x in columns:
            shown = name.removeprefix("layer ") if close else name
            yield Text(x, y, shown, style.heading, theme.text, "middle", bold=True)

    def total(self) -> Iterable[Item]:
        """The target, and the logit as what is left of the larger stack."""
        style, theme, expansion = self.style, self.theme, self.expansion
        x = self.layout.columns[-1][1]
        room = 2 * (self.width - x) - 8
        target = elide(str(expansion.target), style.total, room, bold=True)
        y = self.layout.lane[1] - style.total * 0.62
        yield Text(x, y, target, style.total, theme.text, "middle", bold=True)
        left, top, bottom = self._net_span()
        yield Curve(
            (("M", left, top), ("L", left + 4, top), ("L", left + 4, bottom), ("L", left, bottom)),
            stroke=theme.text,
            stroke_width=1.5,
        )
        at = (top + bottom) / 2 + style.heading * 0.36
        label = logits(expansion.logit)
        yield Text(left + 11, at, label, style.heading * 1.15, theme.text, bold=True)

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

    def legend(self, n_captions: int) -> Group:
        """The scale: how thick a band of so many logits is, and what the colours say."""
        style, theme = self.style, self.theme
        y = self.height - n_captions * style.label * 1.6 - style.small * 1.5
        steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
        step = next((step for step in steps if step * self.layout.scale >= 9), steps[-1])
        x = self.layout.columns[0][1] - 10
        size, thick = style.small, step * self.layout.scale
        middle = y - size * 0.36
        items: list[Item] = []

        def sample(text: str, colour: str, thickness: float, dash: tuple[float, ...]) -> None:
            nonlocal x
            line: tuple[Command, ...] = (("M", x, middle), ("L", x + 34, middle))
            items.append(Curve(line, stroke=colour, stroke_width=thickness, dash=dash, opacity=0.8))
            items.append(Text(x + 41, y, text, size, theme.muted))
            x += 41 + width(text, size) + 26

        unit = "logit" if step == 1 else "logits"
        sample(f"{step:g} {unit}: adds", theme.positive, thick, ())
        sample("takes away", theme.negative, thick, dashes(-1, thick))
        sample("not shown singly, b_U", theme.remainder, thick, ())
        return Group(tuple(items), id="scale")

    def captions(self, lines: tuple[str, ...]) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = self.height - style.label * 0.9
        for line in reversed(lines):
            text = _shortened(line, style.label, self.width - 3 * style.label)
            ink = theme.text if line == lines[0] else theme.muted
            yield Text(1.5 * style.label, y, text, style.label, ink)
            y -= style.label * 1.6


def _shortened(line: str, size: float, room: float) -> str:
    """`line` where it fits; of a balance what stands before the sum makes way, never the proof."""
    parts, equals, end = line.rpartition(" = ")
    if not equals or width(line, size) <= room:
        return elide(line, size, room)
    return elide(parts, size, room - width(equals + end, size)) + equals + end
