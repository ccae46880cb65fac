"""One row of a head's attention under two prompts: paired bars by source token."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.freezing.bars import GAP, SIZE, SMALL, Span, lines
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.text_width import CAP_HEIGHT, OTHER_FONT, elide, width
from circuitview.figures.theme import Theme
from circuitview.session import numbers

if TYPE_CHECKING:
    from circuitview.core.freezing.row import TwoRows

_PITCH = 20.0, 38.0
_HEADER, _NOTES = 20.0, 36.0
_NUMBERS = 90.0  # pixels for A's and B's side by side
_STACKED, _STACKED_SIZE = 36.0, 9.5  # pixels for A's over B's, and their size
_STACKED_PITCH = 20.0  # pixels a row, from which two numbers are read one over the other
_WIDE = 520.0  # pixels; from here on the two numbers stand side by side
_LEAST_BARS = 48.0  # pixels; where less is left the numbers give way to a scale


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where things stand: labels end at `label`; each quantity has bars, and numbers or a scale."""

    label: float
    weight: Span
    score: Span
    numbers: Literal["beside", "stacked", "none"]


def row_figure(
    found: "TwoRows",
    *,
    subtitle: str,
    theme: Theme,
    width: float,
    height: float,
    description: str = "",
    ink: str | None = None,
) -> Figure:
    """Weights and scores of one row, those of prompt A over those of prompt B."""
    title = f"Head {found.head} at dest {found.dest}, under prompts A and B"
    head, top = heading(title, subtitle, theme, width, ink)
    room = height - top - _HEADER - _NOTES - MARGIN / 2
    kept = _kept(found, max(1, int(room // _PITCH[0])))
    pitch = min(max(room / max(len(kept), 1), _PITCH[0] * 0.5), _PITCH[1])
    columns = _columns(found, kept, width, pitch)
    items: list[Item] = [head, _header(found, columns, top, theme)]
    y = top + _HEADER
    for src in kept:
        items.append(_row(found, src, y, pitch, columns, theme))
        y += pitch
    left_out = len(found.same) - len(kept)
    across = width - 2 * MARGIN
    items += lines(MARGIN, y + 15, _explained(found, left_out), across, theme.muted, 2)
    return Figure(width, height, theme.background, tuple(items), title, description)


def _explained(found: "TwoRows", left_out: int) -> str:
    more = f"{left_out} more positions, whose weights move less. " if left_out else ""
    if not found.scores_stay:
        return more + "In a later layer scores move too: earlier heads read the changed tokens."
    if not found.same.any():
        return more + "No pair of tokens is the same under both prompts."
    drift = numbers.error(found.drift)
    return (
        f"{more}Layer 0: scores of unchanged pairs stay (largest change {drift}); weights move, "
        "since the row is renormalised."
    )


def _kept(found: "TwoRows", capacity: int) -> list[int]:
    """The positions whose weights move most, or are largest, in the order of the prompt."""
    n = len(found.same)
    if n <= capacity:
        return list(range(n))
    moved = np.abs(found.weight_changes)
    largest = np.maximum(found.weights_a, found.weights_b)
    order = np.lexsort((np.arange(n), -largest, -moved))
    return sorted(int(src) for src in order[:capacity])


def _columns(found: "TwoRows", kept: list[int], wide: float, pitch: float) -> _Columns:
    longest = max(width(_label(found, src), SIZE, _changed(found, src)) for src in kept)
    label = MARGIN + min(OTHER_FONT * longest, wide * 0.3)
    if wide >= _WIDE:
        return _spread(label, wide, "beside", _NUMBERS)
    wider = MARGIN + min(OTHER_FONT * longest, wide * 0.36)
    stacked = _spread(wider, wide, "stacked", _STACKED)
    if pitch >= _STACKED_PITCH and stacked.weight.wide >= _LEAST_BARS:
        return stacked
    return _spread(label, wide, "none", 0.0)


def _spread(
    label: float, wide: float, numbers: Literal["beside", "stacked", "none"], room: float
) -> _Columns:
    """Both quantities as wide as each other, with `room` for numbers behind each."""
    between = room + 2 * GAP if room else GAP
    each = max((wide - MARGIN - label - 2 * between + (GAP if room else 0)) / 2, 8.0)
    weight = Span(label + GAP, label + GAP + each)
    score = Span(weight.right + between, weight.right + between + each)
    return _Columns(label, weight, score, numbers)


def _ends(found: "TwoRows") -> tuple[tuple[float, float], tuple[float, float]]:
    """From where to where weights and scores reach; zero is among them."""
    reach = max(1e-12, float(found.weights_a.max()), float(found.weights_b.max()))
    every = np.concatenate([found.scores_a, found.scores_b])
    return (0.0, reach), (min(0.0, float(every.min())), max(0.0, float(every.max())))


def _header(found: "TwoRows", columns: _Columns, top: float, theme: Theme) -> Group:
    base = top + 11
    items: list[Item] = []
    spans = (columns.weight, columns.score)
    for span, name, ends in zip(spans, ("weight", "score"), _ends(found), strict=True):
        shown = name
        if columns.numbers == "none":  # the bars' scale, in place of numbers
            scale = " to ".join(numbers.logits(end) if end else "0" for end in ends)
            scaled = f"{name}, {scale}"
            shown = scaled if width(scaled, SMALL) <= span.wide + GAP / 2 else name
        items.append(Text(span.left, base, shown, SMALL, theme.muted))
        if columns.numbers == "beside":
            for x, prompt in ((span.right + 46, "A"), (span.right + 90, "B")):
                items.append(Text(x, base, prompt, SMALL, theme.muted, "end"))
    upper, lower = _colours(theme)
    x = MARGIN
    for name, colour in (("A", upper), ("B", lower)):
        if x + 26 > columns.weight.left:
            break
        items.append(Rect(x, base - 8, 8, 8, fill=colour))
        items.append(Text(x + 11, base, name, SMALL, theme.muted))
        x += 28
    return Group(tuple(items), id="header")


def _row(
    found: "TwoRows", src: int, top: float, pitch: float, columns: _Columns, theme: Theme
) -> Group:
    size = min(SIZE, pitch * 0.7)
    base = top + pitch / 2 + size * CAP_HEIGHT / 2
    changed = _changed(found, src)
    label_room = (columns.label - MARGIN) / OTHER_FONT
    label = elide(_label(found, src), size, label_room, bold=changed)
    colour = theme.accent if changed else theme.text
    items: list[Item] = [Text(columns.label, base, label, size, colour, "end", bold=changed)]
    weights = float(found.weights_a[src]), float(found.weights_b[src])
    scores = float(found.scores_a[src]), float(found.scores_b[src])
    for span, values, ends, digits in zip(
        (columns.weight, columns.score), (weights, scores), _ends(found), (3, 2), strict=True
    ):
        items += _pair(values, ends, span, top, pitch, theme)
        items += _amounts(values, digits, span, (top, pitch, base), columns, theme)
    title = (
        f"{_label(found, src)}: weight {weights[0]:.4f}, then {weights[1]:.4f}; score "
        f"{numbers.logits(scores[0])}, then {numbers.logits(scores[1])}"
    )
    return Group(tuple(items), title=title, data=src)


def _amounts(
    values: tuple[float, float],
    digits: int,
    span: Span,
    down: tuple[float, float, float],
    columns: _Columns,
    theme: Theme,
) -> list[Item]:
    """A's number and B's behind their bars: side by side, one over the other, or none."""
    top, pitch, base = down
    texts = [numbers.logits(value, digits=digits) for value in values]
    if columns.numbers == "beside":
        return [
            Text(span.right + 46 + 44 * place, base, text, SMALL, theme.text, "end")
            for place, text in enumerate(texts)
        ]
    if columns.numbers == "none":
        return []
    size = _STACKED_SIZE
    middle = top + pitch / 2 + size * CAP_HEIGHT / 2
    return [
        Text(span.right + _STACKED, middle + (place - 0.5) * (size + 0.5), text, size, ink, "end")
        for place, (text, ink) in enumerate(zip(texts, (theme.muted, theme.text), strict=True))
    ]


def _pair(
    values: tuple[float, float],
    ends: tuple[float, float],
    span: Span,
    top: float,
    pitch: float,
    theme: Theme,
) -> list[Item]:
    """A's bar over B's, from one zero line."""
    low, high = ends
    scale = span.wide / (high - low) if high - low > 1e-300 else 0.0
    zero = span.left - low * scale
    thick = pitch * 0.36
    items: list[Item] = []
    for place, (value, colour) in enumerate(zip(values, _colours(theme), strict=True)):
        across = value * scale
        y = top + pitch / 2 + (place - 1) * thick
        left = zero + min(across, 0.0)
        items.append(Rect(left, y, max(abs(across), 0.5), thick - 0.5, fill=colour))
    line = segment(zero, top, zero, top + pitch)
    items.append(Curve(line, stroke=theme.muted, stroke_width=1))
    return items


def _colours(theme: Theme) -> tuple[str, str]:
    return theme.remainder, theme.attention[3]


def _changed(found: "TwoRows", src: int) -> bool:
    ids = (prompt.token_ids[src] for prompt in (found.prompt_a, found.prompt_b))
    return len(set(ids)) > 1


def _label(found: "TwoRows", src: int) -> str:
    a, b = (prompt.labels[src] for prompt in (found.prompt_a, found.prompt_b))
    return f"{src} {a} → {b}" if _changed(found, src) else f"{src} {a}"
