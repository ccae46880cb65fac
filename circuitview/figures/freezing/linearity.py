"""How far the logits are from linear: frozen beside free, on a logarithmic scale."""

import math
from typing import TYPE_CHECKING

from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.freezing.bars import GAP, SIZE, SMALL, Span, lines
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.text_width import CAP_HEIGHT, OTHER_FONT, elide, width
from circuitview.figures.theme import Theme

if TYPE_CHECKING:
    from circuitview.core.freezing.linearity import Linearity

_ADDED, _DOUBLED = "g(a + b) − g(a) − g(b)", "g(2a) − 2 g(a)"
_EXPLAINED = (
    "Frozen: patterns, norm scales and MLP outputs of the clean run; free: all follow the new "
    "embeddings."
)
_LOWEST = -8  # the decade where the axis starts, at the latest
_PITCH = 15.0, 60.0
_THICKEST = 30.0
_AXIS = 38.0  # pixels under the bars, for the axis and its name
_NOTES = 36.0  # pixels for the words below
_AXIS_NAME = "largest misfit of any token (logits, logarithmic scale)"
DEFINED = "g(t): logits with embeddings t, less those with none"


def linearity_figure(
    found: "Linearity",
    *,
    subtitle: str,
    theme: Theme,
    width: float,
    height: float,
    description: str = "",
    ink: str | None = None,
) -> Figure:
    """Four misfits and the size of the logits, as bars on a logarithmic scale; the subtitle has to
    say what g, a and b are."""
    head, top = heading("Linear in the token embeddings?", subtitle, theme, width, ink)
    rows = (
        (f"{_ADDED}, frozen", found.frozen.added, theme.accent),
        ("free", found.free.added, theme.negative),
        (f"{_DOUBLED}, frozen", found.frozen.doubled, theme.accent),
        ("free", found.free.doubled, theme.negative),
        ("largest |logit|", found.size, theme.remainder),
    )
    room = height - top - _AXIS - MARGIN / 2
    notes = room - len(rows) * _PITCH[0] >= _NOTES
    pitch = min(max((room - (_NOTES if notes else 0)) / len(rows), 1.0), _PITCH[1])
    across = Span(MARGIN, width - MARGIN)
    body, y = _bars(rows, across, top, pitch, theme)
    items: list[Item] = [head, *body]
    if notes:
        items += lines(across.left, y + 12, _EXPLAINED, across.wide, theme.muted, 2)
    return Figure(
        width, height, theme.background, tuple(items), "Linear in the embeddings?", description
    )


def _bars(
    rows: tuple[tuple[str, float, str], ...], across: Span, top: float, pitch: float, theme: Theme
) -> tuple[list[Item], float]:
    written = [_plain(value) for _, value, _ in rows]
    size = min(SIZE, pitch * 0.8)
    widest = OTHER_FONT * max(width(label, size) for label, _, _ in rows)
    label_room = min(widest, across.wide * 0.54)
    amount_room = OTHER_FONT * max(width(text, size) for text in written)
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
        thick = min(pitch * 0.56, _THICKEST)
        bar = Rect(left, middle - thick / 2, max(reach, 1.0), thick, fill=colour)
        shown = elide(label, size, label_room / OTHER_FONT)
        texts = (
            Text(left - GAP, base, shown, size, theme.text, "end"),
            Text(across.right, base, written[place], size, theme.text, "end"),
        )
        drawn = (bar, *texts) if math.isfinite(value) else texts
        items.append(Group(drawn, title=f"{label}: {written[place]} logits"))
    items.append(_axis_name(across, left, right, bottom + 29, theme))
    return items, bottom + _AXIS


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


def _axis_name(across: Span, left: float, right: float, y: float, theme: Theme) -> Text:
    """What the bars' lengths are: under them, or, where it is longer, up to the right edge."""
    if OTHER_FONT * width(_AXIS_NAME, SMALL) <= right - left:
        return Text((left + right) / 2, y, _AXIS_NAME, SMALL, theme.text, "middle")
    shown = elide(_AXIS_NAME, SMALL, across.wide / OTHER_FONT)
    return Text(across.right, y, shown, SMALL, theme.text, "end")


def _plain(value: float) -> str:
    """A misfit: "4.4e−5", "17.0"."""
    if not math.isfinite(value):
        return "undefined"
    if value == 0:
        return "0"
    return (
        f"{value:.2f}" if value >= 0.01 else f"{value:.1e}".replace("e-0", "e−").replace("e-", "e−")
    )
