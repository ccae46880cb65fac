"""The strip under a deep diagram: what paths bring by their number of steps, and layer by layer.

All bars are on one scale, which is drawn beside them. The bars by number of steps add up, with b_U,
to the logit; a path counts in every layer that it steps through, so those by layer need not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.names import Head, Mlp, Source
from circuitview.figures.diagram.geometry import Layout
from circuitview.figures.diagram.room import width
from circuitview.figures.diagram.style import Style
from circuitview.figures.figure import Curve, Group, Item, Rect, Text, segment
from circuitview.figures.theme import Theme
from circuitview.session.numbers import logits

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

_ROUND = tuple(step * 10**power for power in range(-4, 6) for step in (1, 2, 5))
_MOST_ORDERS, _FEWEST_ORDERS = 6, 3


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar (logits)."""

    name: str
    value: float
    title: str


def order_bars(expansion: "Expansion", most: int = _MOST_ORDERS) -> tuple[Bar, ...]:
    """What all paths of each number of steps bring, the longer ones together: exact."""
    values = expansion.orders.by_order()
    step = "step" if expansion.through_mlps else "head"
    few = values if len(values) <= most else np.append(values[: most - 1], values[most - 1 :].sum())
    bars = []
    for number, value in enumerate(few.tolist()):
        last = number == len(few) - 1 and (len(values) > most or expansion.orders.capped)
        name = f"{number}+" if last else str(number)
        what = f"{name} {step}" if name == "1" else f"{name} {step}s"
        bars.append(Bar(name, value, f"all paths with {what}: {logits(value, signed=True)} logits"))
    return tuple(bars)


def layer_bars(expansion: "Expansion") -> tuple[tuple[Bar, Bar | None], ...]:
    """For each layer what all paths through its heads bring, and those through or from its MLP."""
    config, nets = expansion.recording.weights.config, expansion.nets
    found = []
    for layer in range(config.n_layers):
        heads = sum(nets[Head(layer, head)] for head in range(config.n_heads))
        mlp: Source | Mlp = Source("mlp", layer)
        way = "from"
        if expansion.through_mlps and not config.attn_only:
            mlp, way = Mlp(layer), "through"
        name = f"layer {layer}"
        title = f"all paths through heads of {name}: {logits(heads, signed=True)} logits"
        both: tuple[Bar, Bar | None] = (Bar(name, heads, title), None)
        if mlp in nets:
            sent = f"all paths {way} mlp {layer}: {logits(nets[mlp], signed=True)} logits"
            both = (both[0], Bar(f"mlp {layer}", nets[mlp], sent))
        found.append(both)
    return tuple(found)


def _with_room(expansion: "Expansion", room: float, style: Style) -> tuple[Bar, ...]:
    """As many bars by number of steps as have room for their sums; none where that is too few."""
    for most in range(_MOST_ORDERS, _FEWEST_ORDERS - 1, -1):
        bars = order_bars(expansion, most)
        widest = max(width(logits(bar.value, signed=True, digits=1), style.small) for bar in bars)
        if widest + 2 <= room / len(bars):
            return bars
    return ()


class Overview:
    """The strip of one diagram.

    Args:
        top, bottom: its room (pixels).
    """

    def __init__(
        self,
        expansion: "Expansion",
        layout: Layout,
        theme: Theme,
        style: Style,
        top: float,
        bottom: float,
    ) -> None:
        self.expansion, self.layout, self.theme, self.style = expansion, layout, theme, style
        self.left = 1.5 * style.label
        self.columns = [column for column in layout.columns if column.layer is not None]
        pitch = self.columns[1].x - self.columns[0].x if len(self.columns) > 1 else 60.0
        self.pitch = pitch
        self.room = min(self.columns[0].x - 0.8 * pitch, layout.columns[0].x + 60) - self.left
        self.kind = "by number of steps" if expansion.through_mlps else "by number of heads"
        named = width(self.kind, style.small, bold=True) <= self.room
        self.orders = _with_room(expansion, self.room, style) if named else ()
        self.layers = layer_bars(expansion)
        self.top, self.bottom = top + style.small * 2.7, bottom - style.small * 1.9
        bars = [*self.orders, *(bar for both in self.layers for bar in both if bar is not None)]
        highest = max(0.0, *(bar.value for bar in bars))
        lowest = min(0.0, *(bar.value for bar in bars))
        self.scale = (self.bottom - self.top) / max(highest - lowest, 1e-12)
        self.zero = self.top + highest * self.scale

    def items(self) -> tuple[Item, ...]:
        columns, pitch = self.columns, self.pitch
        by_order = self._by_order(self.left, self.room) if self.orders else []
        return (
            Group(tuple(by_order), id="paths by number of steps"),
            Group(tuple(self._by_layer([column.x for column in columns], pitch)), id="by layer"),
            Group(tuple(self._scale_bar(columns[-1].x + 0.7 * pitch)), id="scale of the bars"),
        )

    def _bar(self, bar: Bar, x: float, wide: float, pale: bool = False) -> Group:
        """A bar from the zero line; what takes away hangs down, an MLP's is pale."""
        high = abs(bar.value) * self.scale
        y = self.zero - high if bar.value >= 0 else self.zero
        ink = self.theme.sign(bar.value)
        whole = Rect(x, y, wide, high, fill=ink, opacity=0.45 if pale else 1.0)
        return Group((whole,), id=f"sum {bar.name}", title=bar.title)

    def _heading(self, x: float, words: Sequence[tuple[str, bool]], room: float) -> list[Item]:
        size, made = self.style.small, []
        y = self.top - size * 1.6
        for text, strong in words:
            if room < width(text, size, strong):
                break
            ink = self.theme.text if strong else self.theme.muted
            made.append(Text(x, y, text, size, ink, bold=strong))
            x += width(text, size, strong) + 0.5 * size
            room -= width(text, size, strong) + 0.5 * size
        return list(made)

    def _by_order(self, left: float, room: float) -> list[Item]:
        theme, size = self.theme, self.style.small
        total = logits(self.expansion.total)
        words = ((self.kind, True), (f"sum with b_U {total}", False))
        items: list[Item] = self._heading(left, words, room + min(12.0, 0.2 * self.pitch))
        each = room / len(self.orders)
        items.append(Curve(segment(left, self.zero, left + room, self.zero), stroke=theme.faint))
        for number, bar in enumerate(self.orders):
            x = left + number * each
            items.append(self._bar(bar, x + 0.2 * each, 0.6 * each))
            text, ink = logits(bar.value, signed=True, digits=1), theme.sign_text(bar.value)
            over, paper = self.zero - max(bar.value, 0.0) * self.scale - 3, theme.background
            items.append(Text(x + each / 2, over, text, size, ink, "middle", halo=paper))
            items.append(
                Text(x + each / 2, self.bottom + size * 1.35, bar.name, size, theme.muted, "middle")
            )
        return items

    def _by_layer(self, xs: Sequence[float], pitch: float) -> list[Item]:
        theme = self.theme
        mlps = any(both[1] is not None for both in self.layers)
        way = "through its MLP" if self.expansion.through_mlps else "from its MLP"
        words = [("by layer", True), ("paths through its heads", False)]
        words += [(f"and, pale, {way}", False)] if mlps else []
        left = xs[0] - pitch / 2
        items: list[Item] = self._heading(left, words, xs[-1] + pitch / 2 - left)
        items.append(
            Curve(segment(left, self.zero, xs[-1] + pitch / 2, self.zero), stroke=theme.faint)
        )
        wide = min(0.62 * pitch, 34.0)
        for x, (heads, mlp) in zip(xs, self.layers, strict=True):
            if mlp is None:
                items.append(self._bar(heads, x - wide / 2, wide))
                continue
            items.append(self._bar(heads, x - wide / 2, 0.48 * wide))
            items.append(self._bar(mlp, x + 0.02 * wide, 0.48 * wide, pale=True))
        return items

    def _scale_bar(self, x: float) -> list[Item]:
        """A length of round logits, so that every bar can be read."""
        theme, size = self.theme, self.style.small
        room = self.bottom - self.top
        step = max((step for step in _ROUND if step * self.scale <= 0.7 * room), default=_ROUND[0])
        high = step * self.scale
        middle = (self.top + self.bottom) / 2
        y = middle - high / 2
        line = (("M", x + 4, y), ("L", x, y), ("L", x, y + high), ("L", x + 4, y + high))
        unit = "logit" if step == 1 else "logits"
        return [
            Curve(line, stroke=theme.text, stroke_width=1.2),  # type: ignore[arg-type]
            Text(x + 8, middle + size * 0.36, f"{step:g} {unit}", size, theme.muted),
        ]
