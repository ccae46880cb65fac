"""Colours: a light and a dark theme, and the colour maps of heatmaps.

Blue adds and orange takes away, a pair that colour-blind readers tell apart; whatever has a sign
also shows it by a minus or a hatch. Attention weights, which have no sign, are violet. Text on the
background keeps a contrast of at least 4.5 to 1. Colour maps take their levels from the caller,
never from the values.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from circuitview.core.names import CircuitviewError
from circuitview.session.numbers import MINUS

_STEPS = 256


@dataclass(frozen=True, slots=True)
class Theme:
    """One set of colours, each "#rrggbb".

    Attributes:
        panel: areas set off from the background.
        muted: secondary text.
        faint: hairlines, grids, frames.
        lane: the residual stream.
        node: heads and other things that write.
        positive, negative: fills for what adds and what takes away; the ..._text pair is for words.
        remainder: what is not listed one by one.
        accent: what is selected, and where the keyboard is; selection: the area behind it.
        attention: the stops from weight 0 to 1.
        signed: the stops from the most negative to the most positive, zero in the middle.
    """

    name: str
    background: str
    panel: str
    text: str
    muted: str
    faint: str
    lane: str
    node: str
    positive: str
    negative: str
    positive_text: str
    negative_text: str
    remainder: str
    accent: str
    selection: str
    attention: tuple[str, ...]
    signed: tuple[str, ...]

    def sign(self, value: float) -> str:
        """The fill for a contribution of that sign."""
        return self.negative if value < 0 else self.positive

    def sign_text(self, value: float) -> str:
        """The text colour for a contribution of that sign."""
        return self.negative_text if value < 0 else self.positive_text


LIGHT = Theme(
    name="light",
    background="#ffffff",
    panel="#f5f7fa",
    text="#1d2733",
    muted="#5a6675",
    faint="#d9dfe7",
    lane="#eef1f5",
    node="#2f3a48",
    positive="#2f6db5",
    negative="#dd7622",
    positive_text="#255f9f",
    negative_text="#a84f0c",
    remainder="#98a2ae",
    accent="#00806a",
    selection="#d8f0ea",
    attention=("#f4f2fa", "#cfc4ea", "#9a82d0", "#6442a8", "#2f1566"),
    signed=("#7a3503", "#d9701f", "#f3b880", "#f4f5f7", "#93bce6", "#3577c0", "#0f3566"),
)

DARK = Theme(
    name="dark",
    background="#14181d",
    panel="#1b2127",
    text="#e6ebf0",
    muted="#9aa6b3",
    faint="#343d47",
    lane="#20262d",
    node="#d5dbe2",
    positive="#6aa7ea",
    negative="#f0a050",
    positive_text="#7db3ef",
    negative_text="#f2aa62",
    remainder="#6f7b88",
    accent="#3fd0b0",
    selection="#16403a",
    attention=("#211f2e", "#40346b", "#7359b8", "#ad93ec", "#f1ebff"),
    signed=("#ffd3a1", "#ec9440", "#80501f", "#22272e", "#2b568a", "#5c9ce3", "#c4e0ff"),
)


def theme(name: str) -> Theme:
    """The theme called "light" or "dark".

    Raises:
        CircuitviewError: for any other name.
    """
    for known in (LIGHT, DARK):
        if known.name == name:
            return known
    raise CircuitviewError(f"{name!r} is not a theme: choose light or dark")


def rgb(colour: str) -> tuple[int, int, int]:
    """The red, green and blue of "#rrggbb", each 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(first: str, second: str, share: float) -> str:
    """The colour `share` of the way from `first` to `second`."""
    share = min(max(share, 0.0), 1.0)
    parts = (round(a + (b - a) * share) for a, b in zip(rgb(first), rgb(second), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def luminance(colour: str) -> float:
    """How bright a colour is, 0 to 1. Source: WCAG 2.2, relative luminance."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, 1 to 21. Source: WCAG 2.2."""
    dark, bright = sorted((luminance(first), luminance(second)))
    return (bright + 0.05) / (dark + 0.05)


def readable_on(fill: str, theme: Theme) -> str:
    """The theme's text or background colour, whichever is easier to read on `fill`."""
    return max(theme.text, theme.background, key=lambda colour: contrast(colour, fill))


def amount_colour(written: str, theme: Theme) -> str:
    """The text colour for a number as it is written: what rounds to zero has no sign's colour."""
    if not written.strip("0."):
        return theme.muted
    return theme.negative_text if written.startswith(MINUS) else theme.positive_text


@lru_cache(maxsize=16)
def _table(stops: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    """256 colours along the stops, [256, 4], opaque."""
    places = np.linspace(0, len(stops) - 1, _STEPS)
    channels = [
        np.interp(places, np.arange(len(stops)), [rgb(stop)[channel] for stop in stops])
        for channel in range(3)
    ]
    table = np.stack([*channels, np.full(_STEPS, 255.0)], axis=1).round().astype(np.uint8)
    table.setflags(write=False)
    return table


def _coloured(shares: npt.NDArray[np.float64], stops: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    places = np.nan_to_num(np.clip(shares, 0.0, 1.0) * (_STEPS - 1)).round().astype(np.intp)
    coloured = _table(stops)[places].copy()
    coloured[np.isnan(shares), 3] = 0
    return coloured


def sequential(
    values: npt.ArrayLike, theme: Theme, low: float = 0.0, high: float = 1.0
) -> npt.NDArray[np.uint8]:
    """Colours [..., 4] of attention weights; what is undefined is transparent.

    Args:
        values: weights, [...].
        theme: whose colours.
        low: the value of the first colour; what is below has it too.
        high: the value of the last colour.
    """
    shares = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    return _coloured(shares, theme.attention)


def diverging(values: npt.ArrayLike, theme: Theme, limit: float) -> npt.NDArray[np.uint8]:
    """Colours [..., 4] of signed values; zero is the middle, what is undefined is transparent.

    Args:
        values: contributions or scores, [...].
        theme: whose colours.
        limit: the size of value that has the last colour, the same on both sides; where it is 0
            everything has the middle colour.
    """
    array = np.asarray(values, dtype=np.float64)
    return _coloured(array / (2 * limit) + 0.5 if limit > 0 else array * 0 + 0.5, theme.signed)


def hex_colour(rgba: npt.ArrayLike) -> str:
    """The "#rrggbb" of one colour [4] out of a colour map."""
    red, green, blue = (int(part) for part in np.asarray(rgba)[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"
