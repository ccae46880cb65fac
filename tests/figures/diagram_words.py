"""Where the words of a diagram lie, in the bundled font or in a wider one that steps in for it."""

import itertools

from circuitview.figures.diagram.geometry import SourceToken
from circuitview.figures.figure import Box, Figure, Group, Rect, Text, bounds, walk

# SVGs name the bundled font; where it is not installed the next family is up to so much wider.
WIDER = 1.12


def word_boxes(figure: Figure, wider: float = WIDER) -> list[tuple[str, Box]]:
    """Every text with its box in a font that is `wider` times as wide."""
    found = []
    for item in walk(figure):
        if isinstance(item, Text) and item.text:
            box = bounds(item)
            more = (wider - 1) * (box.right - box.left)
            before = {"start": 0.0, "middle": more / 2, "end": more}[item.anchor]
            left, right = box.left - before, box.right + more - before
            found.append((item.text, box._replace(left=left, right=right)))
    return found


def require_apart(figure: Figure, wider: float = WIDER) -> None:
    """No text lies on another one, on the bar of a source token, or beyond the picture."""
    words = word_boxes(figure, wider)
    for (one, a), (other, b) in itertools.combinations(words, 2):
        assert not a.overlaps(b), f"{one!r} lies on {other!r}"
    bars = [
        bounds(item.items[0])
        for item in walk(figure)
        if isinstance(item, Group)
        and isinstance(item.data, SourceToken)
        and item.items
        and isinstance(item.items[0], Rect)
    ]
    for text, box in words:
        for bar in bars:
            assert not box.overlaps(bar), f"{text!r} lies on a source token's bar"
        assert box.left >= 0, text
        assert box.right <= figure.width, text
        assert box.top >= 0, text
        assert box.bottom <= figure.height, text
