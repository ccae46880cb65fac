"""What is drawn and written at the nodes of a deep model's grid."""

from collections.abc import Iterable
from itertools import pairwise

from circuitview.core.names import Head, Mlp, Source
from circuitview.figures.diagram.geometry import LayerHeading, Node, SourceToken
from circuitview.figures.diagram.labels import Labels
from circuitview.figures.diagram.room import width
from circuitview.figures.figure import Curve, Group, Item, Rect, Text, segment
from circuitview.figures.text_width import tick_step
from circuitview.figures.theme import mix
from circuitview.session.numbers import logits

_FAINT = 0.35  # of a cell that no band passes
_OUTLINED = 8.0  # pixels: smaller cells have no outline that keeps what passes behind them apart
_LEAST = 0.3  # of a cell's side: where the net is about nothing


class GridLabels(Labels):
    """The words and the cells of one grid."""

    def cells(self) -> Iterable[Group]:
        """A cell for every head, MLP and bias; faint where no drawn path passes."""
        assert self.layout.cell is not None
        nodes = [node for node in self.layout.nodes if in_grid(node)]
        largest = max((abs(node.net) for node in nodes), default=0.0) or 1.0
        for node in nodes:
            yield Group(
                tuple(self._cell(node, node.what in self.layout.used, largest)),
                id=f"node {self.name(node)}",
                title=self.title(node),
                data=node.what,
            )

    def _cell(self, node: Node, used: bool, largest: float) -> Iterable[Item]:
        """As large and as strong as the net; a minus is cut out of what takes away."""
        theme = self.theme
        wide, high = (self.layout.cell or (0.0, 0.0))[0], node.height
        share = (abs(node.net) / largest) ** 0.5
        side = _LEAST + (1 - _LEAST) * share
        w, h = wide * side, high * side
        x, y = node.x + (wide - w) / 2, node.y + (high - h) / 2
        fill = mix(theme.remainder, theme.sign(node.net), min(1.0, 0.25 + 1.5 * share))
        lowers = node.net < 0
        if self.effects is not None:
            fill = self.effects.colour(node.what, theme)
            lowers = (self.effects.of(node.what) or 0.0) < 0
        chosen = isinstance(node.what, Head) and node.what == self.selection.head
        opacity = 1.0 if used or chosen else _FAINT
        yield Rect(node.x, node.y, wide, high)  # the whole cell can be pointed at
        if min(wide, high) >= _OUTLINED:  # around small ones it would be a haze
            paper, strength = theme.background, 0.9 * opacity
            yield Rect(x - 1, y - 1, w + 2, h + 2, fill=paper, radius=3, opacity=strength)
        round_or_not = 0.5 * min(w, h) if isinstance(node.what, Source) else 2.0
        yield Rect(x, y, w, h, fill=fill, radius=round_or_not, opacity=opacity)
        if lowers and w > 4 and h > 3:
            cut = min(0.2 * h, 2.0)
            yield Rect(
                x + 0.2 * w, y + (h - cut) / 2, 0.6 * w, cut, theme.background, opacity=opacity
            )
        if chosen:
            yield Rect(
                node.x - 2.5,
                node.y - 2.5,
                wide + 5,
                high + 5,
                stroke=theme.accent,
                stroke_width=2,
                radius=4,
            )

    def rows(self) -> Iterable[Item]:
        """Before the first layer: the number of each row's head, and what the rows below are."""
        style = self.style
        nodes = [
            node
            for node in self.layout.nodes
            if isinstance(node.what, Head | Mlp | Source) and in_grid(node) and node.what.layer == 0
        ]
        heads = sorted((node for node in nodes if isinstance(node.what, Head)), key=lambda n: n.y)
        row = heads[1].y - heads[0].y if len(heads) > 1 else style.small * 2
        step = tick_step(len(heads), row * len(heads), style.small * 1.15)
        x = self.layout.names_end - 3
        for number, node in enumerate(heads):
            if number % step == 0:
                text = f"head {number}" if number == 0 else str(number)
                yield self._row(x, node, text)
        below = 0.0
        for node in sorted(nodes, key=lambda node: node.y):
            if not isinstance(node.what, Head) and node.y > below + style.small * 1.22:
                below = node.y
                yield self._row(x, node, str(node.what).removesuffix(" 0"))

    def _row(self, x: float, node: Node, text: str) -> Text:
        y = node.y + node.height / 2 + self.style.small * 0.36
        halo = self.theme.background
        return Text(x, y, text, self.style.small, self.theme.muted, "end", halo=halo)

    def headings(self) -> Iterable[Item]:
        style, theme = self.style, self.theme
        y = style.heading * 1.5
        columns = self.layout.columns
        layers = [column for column in columns if column.layer is not None]
        yield from self._tokens_heading(y)
        embed = columns[0]
        yield Text(embed.x, y, embed.name, style.heading, theme.text, "middle", bold=True)
        pitch = min((b.x - a.x for a, b in pairwise(layers)), default=80.0)
        room = width(f"{layers[-1].name}  ", style.heading, bold=True)
        whole = pitch > room
        size = style.heading if pitch > width("000", style.heading, bold=True) else style.small
        step = 1 if whole else tick_step(len(layers), pitch * len(layers), width("000", size, True))
        if not whole:
            first = layers[0].x - width("0", size) - 4
            taken = embed.x + width(embed.name, style.heading, bold=True) / 2
            if first - width("layer", style.small) > taken:
                yield Text(first, y, "layer", style.small, theme.muted, "end")
        target = self._target
        room = width(target.text, target.size, bold=True)
        over = target.x - {"middle": room / 2, "end": room, "start": 0.0}[target.anchor] - 4
        for number, column in enumerate(layers):
            layer = number
            box = Rect(column.x - pitch / 2, y - size * 1.3, pitch, size * 1.9)
            shown: list[Item] = [box]
            text = column.name if whole else str(layer)
            # The target's name stands over the stacks, and may reach over the last layers.
            if number % step == 0 and column.x + width(text, size, bold=True) / 2 < over:
                shown.append(Text(column.x, y, text, size, theme.text, "middle", bold=True))
            title = f"layer {layer}: double-click to show it alone"
            yield Group(tuple(shown), id=f"heading {layer}", title=title, data=LayerHeading(layer))

    def rules(self) -> Iterable[Item]:
        """A hairline for each layer, so that the eye keeps its column."""
        top, bottom = (
            self.layout.lane[1],
            max(n.y + n.height for n in self.layout.nodes if in_grid(n)),
        )
        for column in self.layout.columns:
            if column.layer is not None and column.layer % 5 == 0:
                line = segment(column.x, top, column.x, bottom)
                yield Curve(line, stroke=self.theme.faint, stroke_width=1, opacity=0.7)

    def cell_sample(self, x: float, y: float) -> tuple[list[Item], float]:
        """What the cells say, for the legend; and how wide that is."""
        nodes = [node for node in self.layout.nodes if in_grid(node)]
        largest = max(abs(node.net) for node in nodes)
        size, theme = self.style.small, self.theme
        text = f"cell: net of all paths through it, up to {logits(largest)} logits"
        mark = Rect(x, y - size * 0.8, size * 0.9, size * 0.9, fill=theme.positive, radius=2)
        words = Text(x + size * 1.5, y, text, size, theme.muted)
        return [mark, words], size * 1.5 + width(text, size)


def in_grid(node: Node) -> bool:
    """Whether a node is a cell: a head, an MLP, a source that writes in a layer."""
    what = node.what
    if isinstance(what, Source):
        return what.layer >= 0
    return isinstance(what, Head | Mlp) and not isinstance(what, SourceToken)
