"""Rows of a label, a bar and a number: what the freezing figures are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from circuitview.figures.figure import Curve, Group, Item, Text, segment
from circuitview.figures.signed_bar import signed_bar
from circuitview.figures.text_width import CAP_HEIGHT, OTHER_FONT, elide, width
from circuitview.figures.theme import Theme, amount_colour
from circuitview.session import numbers

SIZE, SMALL = 12.0, 11.0
GAP = 12.0
PITCH = 22.0
_THICK, _LINE = 12.0, 15.0


@dataclass(frozen=True, slots=True)
class Span:
    """From where to where something reaches across, in pixels."""

    left: float
    right: float

    @property
    def wide(self) -> float:
        return self.right - self.left


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: what it is, and how much [logits]; `title` is shown when pointing at it."""

    label: str
    value: float
    title: str | None = None
    pale: bool = False


def signed_bars(
    bars: Sequence[Bar], across: Span, top: float, theme: Theme, pitch: float = PITCH
) -> tuple[Group, ...]:
    """Bars from one zero line, on one scale; a row each, from `top` downwards."""
    if not bars:
        return ()
    written = [numbers.logits(bar.value, signed=True) for bar in bars]
    label_room = OTHER_FONT * max(width(bar.label, SIZE) for bar in bars)
    label_room = min(label_room, across.wide * 0.42)
    amount_room = OTHER_FONT * max(width(text, SIZE) for text in written)
    left = across.left + label_room + GAP
    right = max(left + 1, across.right - amount_room - GAP)
    least = min(0.0, *(bar.value for bar in bars))
    most = max(0.0, *(bar.value for bar in bars))
    scale = (right - left) / (most - least) if most - least > 1e-300 else 0.0
    zero = left - least * scale
    rows = []
    for place, (bar, text) in enumerate(zip(bars, written, strict=True)):
        middle = top + (place + 0.5) * pitch
        base = middle + SIZE * CAP_HEIGHT / 2
        thick = min(_THICK, pitch * 0.6)
        shown = elide(bar.label, SIZE, label_room / OTHER_FONT)
        opacity = 0.5 if bar.pale else 1.0
        items: tuple[Item, ...] = (
            Text(across.left, base, shown, SIZE, theme.text),
            *signed_bar(zero, bar.value * scale, middle - thick / 2, thick, theme, opacity),
            Curve(
                segment(zero, middle - pitch / 2, zero, middle + pitch / 2),
                stroke=theme.muted,
                stroke_width=1,
            ),
            Text(across.right, base, text, SIZE, amount_colour(text, theme), "end"),
        )
        title = bar.title or f"{bar.label}: {text} logits"
        rows.append(Group(items, title=title))
    return tuple(rows)


def words(
    x: float, y: float, text: str, room: float, colour: str, *, bold: bool = False
) -> tuple[Text, ...]:
    """A line of small text, cut where there is no room."""
    shown = elide(text, SMALL, room, bold)
    return (Text(x, y, shown, SMALL, colour, bold=bold),) if shown else ()


def lines(x: float, y: float, text: str, room: float, colour: str, most: int) -> tuple[Text, ...]:
    """Small text, wrapped between words to at most so many lines; the first baseline is at `y`."""
    made: list[str] = []
    room /= OTHER_FONT
    for word in text.split(" "):
        longer = f"{made[-1]} {word}" if made else word
        if made and (len(made) == most or width(longer, SMALL) <= room):
            made[-1] = longer
        else:
            made.append(word)
    return tuple(
        Text(x, y + place * _LINE, elide(line, SMALL, room), SMALL, colour)
        for place, line in enumerate(made)
    )
