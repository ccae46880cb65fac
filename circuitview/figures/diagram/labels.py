"""The words around the bands of the diagram: headings, the target and its logit, the scale, the
captions."""

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

from circuitview.figures.diagram.geometry import AllLayers
from circuitview.figures.diagram.node_labels import NodeLabels
from circuitview.figures.diagram.ribbon import dashes
from circuitview.figures.diagram.room import shortened, shortened_balance, width
from circuitview.figures.diagram.words import expansion_name
from circuitview.figures.figure import Anchor, Command, Curve, Group, Item, Text
from circuitview.session.expansions import explained
from circuitview.session.numbers import logits

# What the numbers at the nodes count, beside one layer: in its own columns, and in the others.
_COUNTED = (("net of all paths", "net of the paths drawn"), ("all paths", "paths drawn"))
_NAME = 0.25  # of the width: what the target's name may take beside a narrow grid's headings


class Labels(NodeLabels):
    """What is written into one diagram, at its nodes and around them."""

    WAY_BACK = "‹ all layers"

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
