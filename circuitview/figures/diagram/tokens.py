"""The leftmost column of the diagram: the source tokens."""

from typing import TYPE_CHECKING

import numpy as np

from circuitview.figures.diagram.geometry import Frame, Node, SourceToken
from circuitview.session.tokens import token_contributions

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion


class TokenColumn:
    """The source tokens on the left: what each brings through all token paths together.

    A token's strand is its net, so that the strands add up to the token paths' sum. On a long
    prompt those with the largest net stand alone, the others share one node.
    """

    _FEW = 16  # prompts up to so many tokens show each of them
    _SHARE = 0.015  # on longer ones, what has a smaller share of Σ |net| joins the others

    def __init__(self, expansion: "Expansion", frame: Frame) -> None:
        nets = token_contributions(expansion)  # [src]
        sizes = np.abs(nets)
        self._line = frame.line
        room = max(2, int(frame.height / (self._line * 1.25)) - 1)
        order = np.argsort(-sizes, kind="stable")
        if len(nets) > self._FEW:
            order = order[sizes[order] >= self._SHARE * sizes.sum()]
        # The dest token is always among those shown: it is where one stands.
        alone = sorted({*order[: room - 1].tolist(), expansion.target.dest})
        self.parts: list[tuple[SourceToken, float]] = [
            (SourceToken(position), float(nets[position])) for position in alone
        ]
        self.others = len(nets) - len(alone)
        if self.others:
            self.parts.append((SourceToken(None), float(np.delete(nets, alone).sum())))

    def largest_scale(self, height: float) -> float:
        """Pixels a logit with which the column is just as tall as `height`."""
        sizes = sorted(abs(net) for _, net in self.parts)
        low, high = 0.0, height / max(sum(sizes), 1e-12)
        for _ in range(40):  # how tall it is rises with the scale: halve the interval
            middle = (low + high) / 2
            if sum(max(size * middle, self._line) for size in sizes) > height:
                high = middle
            else:
                low = middle
        return low if low > 0 else height / max(sum(sizes), 1e-12)

    def place(
        self, frame: Frame, scale: float, embed: Node
    ) -> tuple[tuple[Node, ...], tuple[tuple[Node, float, float], ...]]:
        """The token nodes, and their strands to the node `embed`."""
        slots = [max(abs(net) * scale, self._line) for _, net in self.parts]
        spare = (frame.height - sum(slots)) / max(1, len(slots))
        spacing = min(max(spare, 0.0), 10.0)
        nodes, strands = [], []
        y = frame.top + frame.lane_pad
        at = embed.y
        # At the embedding they lie upon one another where its bar is lower than all of them.
        tall = sum(abs(net) for _, net in self.parts) * scale
        part = min(1.0, embed.height / tall) if tall > 0 else 1.0
        for (what, net), slot in zip(self.parts, slots, strict=True):
            thickness = abs(net) * scale
            node = Node(what, frame.left, y + (slot - thickness) / 2, thickness, net)
            nodes.append(node)
            inside = min(at + thickness * part / 2, embed.y + embed.height - thickness / 2)
            strands.append((node, net, max(inside, embed.y + thickness / 2)))
            at += thickness * part
            y += slot + spacing
        return tuple(nodes), tuple(strands)
