"""How far the logits are from linear: frozen beside recomputed, on a logarithmic scale."""

import math
from typing import TYPE_CHECKING

from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.freezing.bars import GAP, SIZE, SMALL, Span, lines
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.text_width import CAP_HEIGHT, elide, width
from circuitview.figures.theme import Theme

if TYPE_CHECKING:
    from circuitview.core.freezing.linearity import Linearity

_ADDED, _DOUBLED = "g(a + b) − g(a) − g(b)", "g(2a) − 2 g(a)"
_LOWEST = -8  # the decade where the axis starts, at the latest
_PITCH = 15.0, 24.0
_NOTES = 64.0  # pixels for the words below


def linearity_figure(
    found: "Linearity",
    *,
    subtitle: str,
    theme: Theme,
    width: float,
    height: float,
    description: str = "",
) -> Figure:
    """Four misfits and the size of the logits, as bars on a logarithmic scale."""
    head, top = heading("Linear in the token embeddings?", subtitle, theme, width)
    rows = (
        (f"{_ADDED}, frozen", found.frozen.added, theme.accent),
        ("recomputed", found.free.added, theme.negative),
        (f"{_DOUBLED}, frozen", found.frozen.doubled, theme.accent),
        ("recomputed", found.free.doubled, theme.negative),
        ("largest |logit|", found.size, theme.remainder),
    )
    room = height - top - 22 - MARGIN
    notes = room - len(rows) * _PITCH[0] >= _NOTES
    pitch = min(max((room - (_NOTES if notes else 0)) / len(rows), 1.0), _PITCH[1])
    across = Span(MARGIN, width - MARGIN)
    body, y = _bars(rows, across, top, pitch, theme)
    items: list[Item] = [head, *body]
    if notes:
        items += lines(across.left, y + 16, _explained(found), across.wide, theme.muted, 3)
    return Figure(
        width, height, theme.background, tuple(items), "Linear in the embeddings?", description
    )


def _explained(found: "Linearity") -> str:
    b = "the same tokens in another order" if found.shuffled else " ".join(found.other)
    return (
        "g(t): all logits with token embeddings t, minus those with none. a: this prompt; b: "
        f"{b}. Frozen: patterns, norm scales and MLP outputs of the clean run. Each bar is the "
        "largest misfit of any token at any position."
    )


def _bars(
    rows: tuple[tuple[str, float, str], ...], across: Span, top: float, pitch: float, theme: Theme
) -> tuple[list[Item], float]:
    written = [_plain(value) for _, value, _ in rows]
    size = min(SIZE, pitch * 0.8)
    label_room = min(max(width(label, size) for label, _, _ in rows), across.wide * 0.46)
    amount_room = max(width(text, size, bold=True) for text in written)
    left = across.left + label_room + GAP
    right = max(left + 1, across.right - amount_room - GAP)
    sizes = [math.log10(value) for _, value, _ in rows if 0 < value < math.inf]
    low = math.floor(min([_LOWEST + 2.0, *sizes])) - 1
    high = math.ceil(max([0.0, *sizes]))
    scale = (right - left) / (high - low)
    bottom = top + pitch * len(rows)
    items: list[Item] = [_axis(low, high, left, scale, (top, bottom), theme)]
    for place, (label, value, colour) in enumerate(rows):
        middle = top + (place + 0.5) * pitch
        base = middle + size * CAP_HEIGHT / 2
        reach = 0.0 if value <= 0 else (math.log10(value) - low) * scale
        thick = pitch * 0.56
        bar = Rect(left, middle - thick / 2, max(reach, 1.0), thick, fill=colour)
        shown = elide(label, size, label_room)
        texts = (
            Text(left - GAP, base, shown, size, theme.text, "end"),
            Text(across.right, base, written[place], size, theme.text, "end"),
        )
        drawn = (bar, *texts) if math.isfinite(value) else texts
        items.append(Group(drawn, title=f"{label}: {written[place]} logits"))
    return items, bottom + 16


def _axis(
    low: int, high: int, left: float, scale: float, ends: tuple[float, float], theme: Theme
) -> Group:
    """A line and a number every few decades."""
    top, bottom = ends
    each = next(step for step in (1, 2, 3, 6, 12, 100) if step * scale >= width("1e-8", SMALL) + 10)
    items: list[Item] = []
    for decade in range(low, high + 1):
        if decade % each:
            continue
        x = left + (decade - low) * scale
        line = segment(x, top, x, bottom)
        items.append(Curve(line, stroke=theme.faint, stroke_width=1))
        text = "1" if decade == 0 else f"1e{decade}".replace("-", "−")
        items.append(Text(x, bottom + 13, text, SMALL, theme.muted, "middle"))
    return Group(tuple(items), id="axis")


def _plain(value: float) -> str:
    """A misfit: "4.4e−5", "17.0"."""
    if not math.isfinite(value):
        return "undefined"
    if value == 0:
        return "0"
    return (
        f"{value:.2f}" if value >= 0.01 else f"{value:.1e}".replace("e-0", "e−").replace("e-", "e−")
    )
