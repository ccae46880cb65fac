"""The room that a diagram's parts get. A deep model's grid comes first: where it would be squeezed,
what stands before it gives way."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from circuitview.figures.diagram.geometry import Frame, Tokens
from circuitview.figures.diagram.grid import first_layer, row_kinds
from circuitview.figures.diagram.labels import Labels
from circuitview.figures.diagram.room import number_room
from circuitview.figures.diagram.room import width as text_width
from circuitview.figures.diagram.style import Kind, Style
from circuitview.figures.diagram.words import brief_count, count
from circuitview.session.expansions import explained
from circuitview.session.numbers import logits
from circuitview.session.tokens import token_contributions

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

# From the first layer to the logit, at least: of a figure's width, and of a narrow one's.
GRID_SHARE, NARROW_SHARE = 0.6, 0.55
NARROW = 560.0  # pixels
_STRAND = 24.0  # pixels: the shortest way from the source tokens to the embedding


def frame_for(
    expansion: "Expansion",
    style: Style,
    kind: Kind,
    width: float,
    bottom: float,
    captioned: bool = False,
) -> Frame:
    """The frame of a diagram `width` wide whose lowest node may reach `bottom` (pixels).

    Beside one layer the way back to all stands on the left, unless the figure is captioned.
    """
    total = text_width(explained(expansion), style.total) / 2 + 12
    right = min(max(7.5 * style.label, total), 0.2 * width) + 2.6 * style.label
    frame = Frame(
        left=_left(expansion, style, kind, width, captioned),
        # Under the headings of one layer stands what the numbers of each column count.
        top=style.heading * 3.4 + (1.25 * style.small if kind == "layer" else 0.0),
        right=width - right,
        bottom=bottom,
        gap=style.gap,
        node_width=0.8 * style.label,
        line=1.25 * style.label,
        token_room=max(0.07 * width, 5 * style.label),
    )
    return frame if kind != "grid" else _grid_frame(expansion, style, width, frame)


def grid_share(width: float) -> float:
    """What share of a figure's width its grid has at least, from the first layer to the logit."""
    return GRID_SHARE if width >= NARROW else NARROW_SHARE


def _left(expansion: "Expansion", style: Style, kind: Kind, width: float, captioned: bool) -> float:
    """Where the first nodes stand: behind the source tokens' names and numbers."""
    if kind == "layer" and captioned:
        return 1.5 * style.label + 10
    if kind == "layer":
        return text_width(Labels.WAY_BACK, style.label, bold=True) + 3 * style.label
    left = _names(expansion, style, width) + number_room([_most(expansion)], style)
    return max(left + 1.5 * style.label, 9 * style.label)


def _names(expansion: "Expansion", style: Style, width: float) -> float:
    """What the source tokens' names may take."""
    labels = expansion.recording.prompt.labels
    widest = max(text_width(label, style.label) for label in labels)
    others = text_width(f"{len(labels)} others", style.label)
    return max(min(widest, 0.11 * width), others)


def _most(expansion: "Expansion") -> float:
    """No net of a token, nor of several, is larger than all of them together."""
    return -float(np.abs(token_contributions(expansion)).sum())


def _grid_frame(expansion: "Expansion", style: Style, width: float, frame: Frame) -> Frame:
    """The roomiest frame that leaves the grid its share of the width."""
    kinds = [f"head {'0' * len(str(expansion.recording.weights.config.n_heads - 1))}"]
    names = max(text_width(kind, style.small) for kind in [*kinds, *row_kinds(expansion)])
    frame = replace(frame, row_names=names + 0.9 * style.label)
    made = frame
    for made in _narrower(expansion, style, width, frame):
        if made.right - first_layer(made) >= grid_share(width) * width:
            return made
    return made


def _narrower(expansion: "Expansion", style: Style, width: float, frame: Frame) -> Iterator[Frame]:
    """Frames that leave the grid more and more of the width.

    What gives way, one after the other: the room beside the logit, the remainder's words before
    the embedding with the way from the tokens to it, the tokens' numbers, the tokens themselves.
    """
    # A token's bar and what begins there, the words, and the gap before the other bar.
    words = text_width(f"{count(expansion.n_paths)} paths", style.small, bold=True)
    wide = max(frame.token_room, words + 2.7 * style.label)
    yield replace(frame, token_room=wide)
    frame = replace(frame, right=max(frame.right, width - _sums(expansion, style, frame)))
    yield replace(frame, token_room=wide)
    names = _names(expansion, style, width) + 0.8 * style.label + 8
    numbers = number_room([_most(expansion)], style, least=0.0)
    shortest = _STRAND + 1.5 * frame.node_width
    frame = replace(frame, words="right")
    steps: tuple[tuple[Tokens, float], ...] = (("numbered", names + numbers), ("named", names))
    for tokens, left in steps:
        for part in (1.0, 0.8, 0.6, 0.4, 0.2, 0.0):
            room = shortest + part * (wide - shortest)
            yield replace(frame, tokens=tokens, left=left, token_room=room)
    brief = f"{brief_count(expansion.n_paths)} paths"
    said = max(text_width(text, style.small, bold=True) for text in (brief, "positions"))
    left = said + 0.8 * style.label + frame.node_width / 2 + 6
    frame = replace(frame, tokens="one", token_room=0.0)
    yield replace(frame, words="left", left=left)
    # The word over the embedding is all that needs room before it.
    heading = text_width("embed", style.heading, bold=True) / 2 + 4
    yield replace(frame, left=heading)


def _sums(expansion: "Expansion", style: Style, frame: Frame) -> float:
    """What the sums beside the stacks of a grid need."""
    most = float(np.abs(expansion.contributions).sum()) + abs(expansion.remainder)
    most += abs(expansion.constant)
    sums = text_width(logits(-most, signed=True), style.heading, bold=True)
    logit = text_width(logits(expansion.logit), 1.15 * style.heading, bold=True)
    return frame.node_width / 2 + 14 + max(sums, logit) + 0.4 * style.label
