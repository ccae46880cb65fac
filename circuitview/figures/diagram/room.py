"""How much room the diagram's words may need: an SVG is also read where the bundled font is not
installed, and what steps in for it is wider."""

from collections.abc import Iterable

from circuitview.figures.diagram.style import Style
from circuitview.figures.text_width import elide
from circuitview.figures.text_width import width as bundled_width
from circuitview.session.numbers import logits

# How much wider, by weight: DejaVu Sans, the widest of the families that an SVG names.
_WIDER, _WIDER_BOLD = 1.12, 1.18


def width(text: str, size: float, bold: bool = False) -> float:
    """How wide `text` is at `size` in the widest font that may draw it (pixels)."""
    return bundled_width(text, size, bold) * (_WIDER_BOLD if bold else _WIDER)


def shortened(text: str, size: float, room: float, bold: bool = False) -> str:
    """`text` where it surely fits into `room` pixels, else its start and "…", else ""."""
    return elide(text, size, room / (_WIDER_BOLD if bold else _WIDER), bold)


def number_room(nets: Iterable[float], style: Style, least: float = 3.9) -> float:
    """What a column of numbers takes, and the gap before it (pixels); at least so many times the
    size of a name."""
    widest = max((width(logits(net, signed=True), style.small) for net in nets), default=0.0)
    return max(least * style.label, widest + 0.6 * style.label)


def shortened_balance(line: str, size: float, room: float) -> str:
    """`line` where it fits; of a balance what stands before the sum makes way, never the proof."""
    parts, equals, end = line.rpartition(" = ")
    if not equals or width(line, size) <= room:
        return shortened(line, size, room)
    return shortened(parts, size, room - width(equals + end, size)) + equals + end
