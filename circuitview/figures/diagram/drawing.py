"""The residual-stream diagram: every path a band, as wide as its contribution, on one scale.

Blue adds; orange, cut into dashes, takes away; grey stands for what is not drawn singly and for
positions and biases' own nodes. Thick bands lie under thin ones, what is selected lies on top.
The same picture serves the window and the exports.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from circuitview.core.names import POSITION, TOKEN, Head, Source
from circuitview.core.path import Path
from circuitview.figures.compose import provenance
from circuitview.figures.diagram.geometry import Band, Frame, Layout, Node, SourceToken
from circuitview.figures.diagram.labels import Labels
from circuitview.figures.diagram.layout import lay_out
from circuitview.figures.diagram.ribbon import HAIR, band_curve, ribbon
from circuitview.figures.diagram.style import Style
from circuitview.figures.enlarge import enlarged
from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text
from circuitview.figures.text_width import width
from circuitview.figures.theme import Theme
from circuitview.session.balance import HELD_FIXED, balance_text
from circuitview.session.numbers import logits, percent
from circuitview.session.state import Selection

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

# The largest size for which an exported diagram is laid out (pixels); larger ones are enlarged.
_SLIDE = (1280.0, 720.0)


def diagram_figure(
    expansion: "Expansion",
    *,
    theme: Theme,
    width: float,
    height: float,
    floor: float = 0.0,
    selection: Selection | None = None,
    captioned: bool = False,
    titled: bool = True,
) -> Figure:
    """The diagram of `expansion`.

    Args:
        expansion: must balance.
        theme: colours.
        width, height: pixels.
        floor: paths below this |contribution| (logits) become the grey remainder.
        selection: what stands out.
        captioned: whether the prompt and the balance stand under the picture, as on a slide.
        titled: whether each band carries its path_title, as in exported files.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
    """
    expansion.require_balance()
    factor = max(1.0, min(width / _SLIDE[0], height / _SLIDE[1])) if captioned else 1.0
    if factor > 1.0:
        smaller = diagram_figure(
            expansion,
            theme=theme,
            width=width / factor,
            height=height / factor,
            floor=floor,
            selection=selection,
            captioned=True,
            titled=titled,
        )
        return enlarged(smaller, factor)
    n_heads = expansion.recording.weights.config.n_heads
    style = Style.for_size(width, height, n_heads)
    caption = (balance_text(expansion), _origin(expansion, style, width)) if captioned else ()
    chosen = selection or Selection()
    drawing = _Drawing(expansion, theme, style, chosen, width, height, caption, titled)
    layout = lay_out(expansion, drawing.frame(), floor)
    return Figure(
        width=width,
        height=height,
        background=theme.background,
        items=drawing.items(layout),
        title=f"Paths to {expansion.target}",
        description=provenance(expansion),
    )


def _origin(expansion: "Expansion", style: Style, room: float) -> str:
    """The model, what is held, and the prompt up to dest; a long one loses its start."""
    prompt, dest = expansion.recording.prompt, expansion.target.dest
    words = f"{prompt.model}, {HELD_FIXED}, prompt up to dest {dest}:  "
    left = room - 4 * style.label - width(words, style.label)
    kept: list[str] = []
    for label in reversed(prompt.labels[: dest + 1]):
        left -= width(f"{label} ", style.label)
        if left < 0:
            kept[-1:] = ["…"]
            break
        kept.append(label)
    return words + " ".join(reversed(kept))


def path_title(expansion: "Expansion", path: Path) -> str:
    """What is said of a listed path that is pointed at: value (logits), and share |c| / Σ|c|."""
    return _title(expansion, str(path), float(expansion.contributions[expansion.place[path]]))


def _title(expansion: "Expansion", name: str, value: float) -> str:
    share = abs(value) / (float(np.abs(expansion.contributions).sum()) or 1.0)
    return f"{name}: {logits(value, signed=True)} logits, {percent(share)} of Σ|c|"


class _Drawing:
    """One diagram being drawn: the layout's numbers become items."""

    def __init__(
        self,
        expansion: "Expansion",
        theme: Theme,
        style: Style,
        selection: Selection,
        width: float,
        height: float,
        caption: tuple[str, ...],
        titled: bool,
    ) -> None:
        self.expansion = expansion
        self.theme = theme
        self.style = style
        self.selection = selection
        self.width = width
        self.height = height
        self.caption = caption
        self.titled = titled

    def frame(self) -> Frame:
        style = self.style
        labels = [width(label, style.label) for label in self.expansion.recording.prompt.labels]
        others = width(f"{len(labels)} others", style.label)
        left = max(min(max(labels), 0.11 * self.width), others) + 5.4 * style.label
        right = max(7.5 * style.label, width(str(self.expansion.target), style.total) / 2 + 12)
        footer = style.small * 2.6 + len(self.caption) * style.label * 1.6
        return Frame(
            left=max(left, 9 * style.label),
            top=style.heading * 3.4,
            right=self.width - min(right, 0.2 * self.width) - 2.6 * style.label,
            bottom=self.height - footer - style.label,
            gap=style.gap,
            node_width=0.8 * style.label,
            token_room=max(0.07 * self.width, 5 * style.label),
        )

    def items(self, layout: Layout) -> tuple[Item, ...]:
        covered = [band for band in layout.bands if self._picked(band)]
        under = [band for band in layout.bands if not self._picked(band)]
        under.sort(key=lambda band: -band.thickness)
        labels = self._labels(layout)
        return (
            self._lane(layout),
            *(self._strand(layout, node, net, y) for node, net, y in layout.strands),
            *(self._band(band) for band in under),
            *(self._band(band) for band in covered),
            *self._selected_strands(layout, covered),
            *(self._node(node, layout, labels) for node in layout.nodes),
            *labels.headings(),
            *labels.total(),
            labels.legend(len(self.caption)),
            *labels.captions(self.caption),
        )

    def _labels(self, layout: Layout) -> Labels:
        size = (self.width, self.height)
        return Labels(self.expansion, layout, self.theme, self.style, self.selection, size)

    def _picked(self, band: Band) -> bool:
        return isinstance(band.what, Path) and self.selection.covers(band.what)

    def _lane(self, layout: Layout) -> Item:
        x, y, wide, high = layout.lane
        theme, style = self.theme, self.style
        return Group(
            (
                Rect(x - 10, y, wide + 20, high, fill=theme.lane, radius=10),
                Text(x + wide / 2, y - 5, "residual stream", style.small, theme.muted, "middle"),
            ),
            id="residual stream",
        )

    def _band(self, band: Band) -> Group:
        colour = self.theme.remainder if isinstance(band.what, str) else self.theme.sign(band.value)
        curve = band_curve(band, colour, self._opacity(band))
        title = self._title(band) if self.titled or isinstance(band.what, str) else None
        return Group((curve,), id=str(band.what), title=title, data=band.what)

    def _opacity(self, band: Band) -> float:
        faint = min(1.0, max(0.35, band.thickness / HAIR))
        if self.selection.anything:
            return 0.95 if self._picked(band) else 0.13 * faint
        if isinstance(band.what, str):
            return 0.55
        share = min(1.0, band.thickness / 24)
        return (0.5 + 0.32 * share) * faint

    def _title(self, band: Band) -> str:
        name = "unembedding bias b_U" if band.what == "b_U" else str(band.what)
        return _title(self.expansion, name, band.value)

    def _strand(self, layout: Layout, node: Node, net: float, y: float) -> Group:
        """From a source token to the embedding: what it sends through all token paths together."""
        opacity = 0.06 if self.selection.anything else 0.42
        if isinstance(node.what, SourceToken) and node.what.position is not None:
            opacity = 0.85 if node.what.position == self.selection.source else opacity
        curve = self._token_curve(layout, node, net, y, opacity)
        return Group((curve,), title=self._labels(layout).token_title(node), data=node.what)

    def _token_curve(
        self, layout: Layout, node: Node, value: float, y: float, opacity: float
    ) -> Curve:
        left, right = node.x + layout.node_width, layout.columns[0][1] - layout.node_width / 2
        start, thickness = node.y + node.height / 2, max(abs(value) * layout.scale, HAIR)
        curve = ribbon(left, start, right, y, thickness, self.theme.sign(value), value < 0)
        return replace(curve, opacity=opacity)

    def _selected_strands(self, layout: Layout, picked: list[Band]) -> Iterable[Item]:
        """Where the selected paths start: what each source position sends through them."""
        for source in (TOKEN, POSITION):
            bands = [
                (band, band.what)
                for band in picked
                if isinstance(band.what, Path) and band.what.source == source
            ]
            if bands:
                places = [self.expansion.place[path] for _, path in bands]
                sent = self.expansion.by_source[places].sum(0)  # [src]
                middle = float(np.mean([band.stops[0][3] for band, _ in bands]))
                yield from self._strands_of(layout, sent, middle)

    def _strands_of(
        self, layout: Layout, sent: npt.NDArray[np.float64], middle: float
    ) -> Iterable[Item]:
        nodes = [node for node in layout.nodes if isinstance(node.what, SourceToken)]
        alone = [node.what.position for node in nodes if isinstance(node.what, SourceToken)]
        rest = float(sent.sum() - sum(sent[place] for place in alone if place is not None))
        values = [rest if place is None else float(sent[place]) for place in alone]
        y = middle - sum(map(abs, values)) * layout.scale / 2
        name = self._labels(layout).name
        for node, value in zip(nodes, values, strict=True):
            thickness = abs(value) * layout.scale
            if value:
                curve = self._token_curve(layout, node, value, y + thickness / 2, 0.9)
                title = (
                    f"{name(node)}: {logits(value, signed=True)} logits through the selected paths"
                )
                yield Group((curve,), title=title, data=node.what)
            y += thickness

    def _node(self, node: Node, layout: Layout, labels: Labels) -> Group:
        theme = self.theme
        match node.what:
            case "adds" | "takes away" if not node.height:
                return Group(())
            case "adds" | "takes away":
                fill = theme.positive if node.what == "adds" else theme.negative
            case Head() if self.selection.head == node.what:
                fill = theme.accent
            case SourceToken(position) if position == self.expansion.target.dest:
                fill = theme.text
            case Head() | SourceToken():
                fill = theme.node
            case Source() as source:
                fill = theme.node if source == TOKEN else theme.remainder
            case _:
                fill = theme.remainder
        bar = Rect(
            node.x, node.y - 0.75, layout.node_width, max(node.height, 0.0) + 1.5, fill, radius=2
        )
        return Group(
            (bar, *labels.label(node)),
            id=f"node {labels.name(node)}",
            title=labels.title(node),
            data=node.what,
        )
