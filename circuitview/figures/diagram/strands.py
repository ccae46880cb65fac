"""From the source tokens to the embedding: what each sends through all token paths together."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from circuitview.core.names import POSITION, TOKEN
from circuitview.core.path import Path
from circuitview.figures.diagram.geometry import Band, Layout, Node, SourceToken
from circuitview.figures.diagram.labels import Labels
from circuitview.figures.diagram.ribbon import HAIR, ribbon
from circuitview.figures.figure import Curve, Group, Item
from circuitview.session.numbers import logits


def strand(layout: Layout, net: float, node: Node, y: float, labels: Labels) -> Group:
    """The strand of one source token; it arrives at the height `y`."""
    opacity = 0.06 if labels.selection.anything else 0.42
    if isinstance(node.what, SourceToken) and node.what.position is not None:
        opacity = 0.85 if node.what.position == labels.selection.source else opacity
    curve = _curve(layout, node, net, y, opacity, labels)
    return Group((curve,), title=labels.token_title(node), data=node.what)


def _curve(
    layout: Layout, node: Node, value: float, y: float, opacity: float, labels: Labels
) -> Curve:
    left, right = node.x + layout.node_width, layout.columns[0].x - layout.node_width / 2
    start, thickness = node.y + node.height / 2, max(abs(value) * layout.scale, HAIR)
    theme, grey = labels.theme, labels.effects is not None
    ink = theme.remainder if grey else theme.sign(value)
    curve = ribbon(left, start, right, y, thickness, ink, value < 0 and not grey)
    return replace(curve, opacity=opacity)


def selected_strands(layout: Layout, picked: list[Band], labels: Labels) -> Iterable[Item]:
    """Where the selected paths start: what each source position sends through them."""
    if not layout.strands:
        return
    expansion = labels.expansion
    for source in (TOKEN, POSITION):
        bands = [
            (band, band.what)
            for band in picked
            if isinstance(band.what, Path) and band.what.source == source
        ]
        if bands:
            places = [expansion.place[path] for _, path in bands]
            sent = expansion.by_source[places].sum(0)  # [src]
            middle = float(np.mean([band.stops[0][3] for band, _ in bands]))
            yield from _strands_of(layout, sent, middle, labels)


def _strands_of(
    layout: Layout, sent: npt.NDArray[np.float64], middle: float, labels: Labels
) -> Iterable[Item]:
    nodes = [node for node in layout.nodes if isinstance(node.what, SourceToken)]
    alone = [node.what.position for node in nodes if isinstance(node.what, SourceToken)]
    rest = float(sent.sum() - sum(sent[place] for place in alone if place is not None))
    values = [rest if place is None else float(sent[place]) for place in alone]
    y = middle - sum(map(abs, values)) * layout.scale / 2
    for node, value in zip(nodes, values, strict=True):
        thickness = abs(value) * layout.scale
        if value:
            curve = _curve(layout, node, value, y + thickness / 2, 0.9, labels)
            amount = f"{logits(value, signed=True)} logits through the selected paths"
            yield Group((curve,), title=f"{labels.name(node)}: {amount}", data=node.what)
        y += thickness
