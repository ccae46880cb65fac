"""How wide a text is in the bundled font, known without a screen.

Widths are the font's own advances; kerning, which moves some letters by a hair, is left out.
fontTools reads the font when the first width is asked for.
"""

import unicodedata
from bisect import bisect_left
from functools import cache, lru_cache

from circuitview.resources import resource

ASCENT, DESCENT = 0.97, 0.24  # of the size, above and below the baseline
CAP_HEIGHT = (
    0.727  # of the size; a text is centred on y with its baseline at y + size * CAP_HEIGHT/2
)
ELLIPSIS = "…"
# How much wider a text may come out where an exported file is shown in another font.
OTHER_FONT = 1.12
_TURNS_INTO = " → "
_STEPS = (1, 2, 5)


@cache
def _advances(bold: bool) -> dict[int, float]:
    """The advance of every character that the font has, in units of the size."""
    from fontTools.ttLib import TTFont

    name = "CircuitviewSans-SemiBold.otf" if bold else "CircuitviewSans-Regular.otf"
    with TTFont(resource("fonts", name), lazy=True) as font:
        per_em = font["head"].unitsPerEm
        advance = font["hmtx"].metrics
        return {code: advance[glyph][0] / per_em for code, glyph in font.getBestCmap().items()}


def has_glyph(character: str) -> bool:
    """Whether the bundled font draws `character` itself."""
    return ord(character) in _advances(False)


def _advance(character: str, bold: bool) -> float:
    known = _advances(bold).get(ord(character))
    if known is not None:
        return known
    # Another font steps in: Chinese, Japanese, Korean and emoji are square, marks take no room.
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf", "Cc"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF" or category == "So":
        return 1.0
    return 0.65


@lru_cache(maxsize=20_000)
def _em(text: str, bold: bool) -> float:
    return sum(_advance(character, bold) for character in text)


def width(text: str, size: float, bold: bool = False) -> float:
    """How wide `text` is at `size` (pixels)."""
    return _em(text, bold) * size


def elide(text: str, size: float, room: float, bold: bool = False) -> str:
    """`text` where it fits into `room` pixels, else its start and "…", else "".

    Of two tokens, "a → b", both keep their starts: it is the second that has come anew.
    """
    if width(text, size, bold) <= room:
        return text
    if text.count(_TURNS_INTO) == 1:
        before, _, after = text.partition(_TURNS_INTO)
        both = _elided_pair(before, after, size, room, bold)
        if both:
            return both
    left = room / size - _advance(ELLIPSIS, bold)
    if left < 0:
        return ""
    kept = 0
    for character in text:
        left -= _advance(character, bold)
        if left < 0:
            break
        kept += 1
    # An accent or joiner belongs to the letter before it: neither is kept without the other.
    while kept and _joins(text, kept):
        kept -= 1
    return text[:kept].rstrip() + ELLIPSIS


def _elided_pair(before: str, after: str, size: float, room: float, bold: bool) -> str:
    """Both with an arrow between them, the shorter whole where it leaves room; "" where not even
    a letter of each fits."""
    needs = width(before, size, bold), width(after, size, bold)
    for arrow in (_TURNS_INTO, _TURNS_INTO.strip()):
        left = room - width(arrow, size, bold)
        share = left - min(*needs, left / 2)
        parts = [
            elide(part, size, max(min(need, share), 0.0), bold)
            for part, need in zip((before, after), needs, strict=True)
        ]
        begun = [part.removesuffix(ELLIPSIS) for part in parts]
        # A position may stand before the first token, whose own letters are what counts.
        if all(
            len(kept) > whole.find("␣") + 1
            for kept, whole in zip(begun, (before, after), strict=True)
        ):
            return arrow.join(parts)
    return ""


def elide_middle(text: str, size: float, room: float, bold: bool = False) -> str:
    """`text` where it fits into `room` pixels, else its start and its end with "…" between."""
    if width(text, size, bold) <= room:
        return text

    def shortened(kept: int) -> str:
        head = kept - kept * 2 // 5
        tail = len(text) - kept + head
        while head and _joins(text, head):
            head -= 1
        while tail < len(text) and _joins(text, tail):
            tail += 1
        return text[:head].rstrip() + ELLIPSIS + text[tail:].lstrip()

    fitting = bisect_left(
        range(1, len(text)), True, key=lambda n: width(shortened(n), size, bold) > room
    )
    if not fitting and width(ELLIPSIS, size, bold) > room:
        return ""
    return shortened(fitting)


def _joins(text: str, place: int) -> bool:
    """Whether cutting before `place` would tear one sign apart."""
    joiner = "\u200d"
    return unicodedata.category(text[place])[0] == "M" or joiner in (text[place - 1], text[place])


def tick_step(count: int, room: float, each: float) -> int:
    """The k of "label every k-th": the smallest of 1, 2, 5, 10, 20 … that leaves labels room.

    Args:
        count: how many things stand side by side.
        room: the pixels they share.
        each: what one label needs.
    """
    scale = 1
    while True:
        for step in _STEPS:
            if step * scale * room >= each * count or step * scale >= max(count, 1):
                return step * scale
        scale *= 10
