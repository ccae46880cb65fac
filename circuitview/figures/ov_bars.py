"""What a head or chain writes towards the target, by source: weight × value = contribution.

Every row is one source token and the last row is their exact sum. Where not all fit, those with
the largest contributions stay, in the order of the prompt, and the others become one row with their
sum.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text, segment
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.signed_bar import signed_bar
from circuitview.figures.text_width import CAP_HEIGHT, elide, width
from circuitview.figures.theme import Theme, amount_colour
from circuitview.session import numbers

_SIZE, _SMALL = 12.0, 11.0
_HEADER, _FOOT = 22.0, 34.0
_ROW_SPAN = 20.0, 28.0  # the least and the most height of a row
_TWO_LINES = 33.0
_LONGEST_LABEL, _LONGEST_NOTE = 110.0, 84.0
_TWO_LINES_FROM = 380.0
_WIDE_FROM = 720.0  # pixels, from which the tokens raised and lowered have a column of their own
_RAISES, _LOWERS = "↑", "↓"
_LEAST_BAR = 80.0
_GAP = 14.0


@dataclass(frozen=True, slots=True)
class OVRow:
    """One source token.

    Attributes:
        label: the token.
        weight: how much of its column arrives at dest: for a single head the attention weight.
        value: what the chain would add to the target at weight 1 (logits).
        contribution: weight × value (logits).
        raises: tokens that this source raises most, each with what it gets at weight 1 (logits).
        lowers: those it lowers most.
    """

    label: str
    weight: float
    value: float
    contribution: float
    raises: tuple[tuple[str, float], ...] = ()
    lowers: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class _Columns:
    """The right edge of each column of numbers, and where the bars are."""

    label: float
    weight: float
    value: float
    contribution: float
    zero: float
    scale: float  # pixels a logit
    right: float
    notes: float | None  # left edge of the raised and lowered tokens, where they have a column
    brief: bool  # whether weight and value are left to the rows' titles, for want of room


def ov_figure(
    rows: Sequence[OVRow],
    *,
    title: str,
    subtitle: str,
    theme: Theme,
    width: float,
    height: float,
    description: str = "",
) -> Figure:
    """The bar chart of `rows`, in the order of the prompt."""
    head, top = heading(title, subtitle, theme, width)
    if not rows:
        return Figure(width, height, theme.background, (head,), title, description)
    room = height - top - _HEADER - _FOOT
    kept, others = _kept(rows, max(1, int(room // _ROW_SPAN[0])))
    lines = len(kept) + bool(others)
    noted = any(rows[place].raises or rows[place].lowers for place in kept)
    two_lines = noted and _TWO_LINES_FROM <= width < _WIDE_FROM and room / lines >= _TWO_LINES
    most = _TWO_LINES + 7 if two_lines else _ROW_SPAN[1]
    pitch = min(room / lines, most)
    rest = math.fsum(rows[place].contribution for place in others)
    total = math.fsum(row.contribution for row in rows)
    columns = _columns(rows, kept, (rest, total), noted and width >= _WIDE_FROM, width)
    body: list[Item] = []
    y = top + _HEADER
    for place in kept:
        body.append(_row(rows[place], place, y, pitch, two_lines, columns, theme))
        y += pitch
    if others:
        body.append(_others(len(others), rest, y, pitch, columns, theme))
        y += pitch
    items: tuple[Item, ...] = (
        head,
        _header(columns, top, two_lines, width, theme),
        Group(tuple(body), id="sources"),
        _sum_row(total, y, columns, width, theme),
    )
    return Figure(width, height, theme.background, items, title, description)


def _kept(rows: Sequence[OVRow], capacity: int) -> tuple[list[int], list[int]]:
    """Which rows are shown and which are summed up, both in the order of the prompt."""
    if len(rows) <= capacity:
        return list(range(len(rows))), []
    by_size = sorted(range(len(rows)), key=lambda place: (-abs(rows[place].contribution), place))
    return sorted(by_size[: capacity - 1]), sorted(by_size[capacity - 1 :])


def _columns(
    rows: Sequence[OVRow],
    kept: Sequence[int],
    sums: tuple[float, float],
    with_notes: bool,
    wide: float,
) -> _Columns:
    shown = [rows[place] for place in kept]
    longest = max([width(row.label, _SIZE) for row in shown] + [width("999 others", _SIZE)])
    label = MARGIN + min(longest, _LONGEST_LABEL)
    weight = label + _GAP + max(width("weight", _SMALL), width("0.00", _SIZE))
    values = [width(numbers.logits(row.value, signed=True), _SIZE) for row in shown]
    value = weight + _GAP + 10 + max([*values, width("value", _SMALL)])
    amounts = [*(row.contribution for row in shown), *sums]
    widths = [width(numbers.logits(amount, signed=True), _SIZE, True) for amount in amounts]
    contribution = value + _GAP + 8 + max([*widths, width("logits", _SMALL)])
    right = wide - MARGIN
    brief = contribution + _GAP + _LEAST_BAR > right
    if brief:
        contribution += label - value
    left = contribution + _GAP
    notes = None
    if with_notes:
        notes = right - (right - left) * 0.46
        right = notes - _GAP
    right = max(right, left + 1)
    # The sum has no bar, so that it does not shrink the others.
    amounts = [*(row.contribution for row in shown), sums[0]]
    least, most = min(0.0, *amounts), max(0.0, *amounts)
    # Amounts at the edge of what a float can hold would make the scale, and the bars, infinite.
    scale = (right - left) / (most - least) if most - least > 1e-300 else 0.0
    return _Columns(
        label, weight, value, contribution, left - least * scale, scale, right, notes, brief
    )


def _header(columns: _Columns, top: float, two_lines: bool, wide: float, theme: Theme) -> Group:
    y = top + 10
    words = [(columns.label, "source"), (columns.contribution, "logits")]
    if not columns.brief:
        words += [(columns.weight, "weight"), (columns.value, "value")]
    items: list[Item] = [Text(x, y, word, _SMALL, theme.muted, "end") for x, word in words]
    if columns.notes is not None:
        items.append(Text(columns.notes, y, "raises", _SMALL, theme.muted))
        half = columns.notes + _notes_room(columns) / 2
        items.append(Text(half, y, "lowers", _SMALL, theme.muted))
    elif two_lines:
        key = f"{_RAISES} raises  {_LOWERS} lowers"
        items.append(Text(columns.right, y, key, _SMALL, theme.muted, "end"))
    items.append(_rule(y + 6, wide, theme))
    return Group(tuple(items), id="columns")


def _rule(y: float, wide: float, theme: Theme) -> Curve:
    return Curve(segment(MARGIN, y, wide - MARGIN, y), stroke=theme.faint)


def _row(
    row: OVRow,
    place: int,
    top: float,
    pitch: float,
    two_lines: bool,
    columns: _Columns,
    theme: Theme,
) -> Group:
    line = pitch * 0.5 if two_lines else pitch
    y = top + line / 2 + (3 if two_lines else 0) + _SIZE * CAP_HEIGHT / 2
    weight, value = numbers.weight(row.weight), numbers.logits(row.value, signed=True)
    amount = numbers.logits(row.contribution, signed=True)
    label = elide(row.label, _SIZE, columns.label - MARGIN)
    factors = [
        Text(columns.weight, y, weight, _SIZE, theme.muted, "end"),
        Text(columns.weight + 7, y, "×", _SMALL, theme.muted),
        Text(columns.value, y, value, _SIZE, theme.muted, "end"),
        Text(columns.value + 7, y, "=", _SMALL, theme.muted),
    ]
    items: list[Item] = [
        Text(columns.label, y, label, _SIZE, theme.text, "end"),
        *([] if columns.brief else factors),
        Text(columns.contribution, y, amount, _SIZE, amount_colour(amount, theme), "end"),
        *_bar(row.contribution, y, line, columns, theme),
    ]
    if two_lines:
        left = columns.weight - width(weight, _SIZE)
        items += _notes(row, left, y + _SMALL + 4, columns.right - left, theme)
    elif columns.notes is not None:
        room = _notes_room(columns) / 2
        items += _tokens(row.raises, columns.notes, y, room, theme)
        items += _tokens(row.lowers, columns.notes + room, y, room, theme)
    title = f"{row.label}: {weight} × {value} = {amount} logits"
    return Group(tuple(items), id=f"source-{place}", title=title, data=place)


def _notes_room(columns: _Columns) -> float:
    assert columns.notes is not None
    bars = columns.contribution + _GAP
    return (columns.notes - bars) * 0.46 / 0.54


def _bar(
    amount: float, baseline: float, line: float, columns: _Columns, theme: Theme, opacity: float = 1
) -> tuple[Item, ...]:
    """The bar of a row and its piece of the zero line, which keeps off a second line of text."""
    thickness = min(line * 0.56, 13.0)
    middle = baseline - _SIZE * CAP_HEIGHT / 2
    top = middle - thickness / 2
    bar = signed_bar(columns.zero, amount * columns.scale, top, thickness, theme, opacity)
    reach = thickness / 2 + 2 if line < _ROW_SPAN[0] else line / 2
    piece = segment(columns.zero, middle - reach, columns.zero, middle + reach)
    return (*bar, Curve(piece, stroke=theme.muted, stroke_width=1))


def _notes(row: OVRow, left: float, y: float, room: float, theme: Theme) -> list[Item]:
    """The line "↑ ␣tea ␣coffee … ↓ ␣the …", half of the room for each side."""
    items: list[Item] = []
    half = room / 2
    sides = [(_RAISES, row.raises, 1.0, left), (_LOWERS, row.lowers, -1.0, left + half)]
    for arrow, tokens, sign, x in sides:
        if tokens:
            items.append(Text(x, y, arrow, _SMALL, theme.sign_text(sign)))
            start = width(arrow, _SMALL) + 4
            items += _tokens(tokens, x + start, y, half - start, theme)
    return items


def _tokens(
    tokens: tuple[tuple[str, float], ...], left: float, y: float, room: float, theme: Theme
) -> list[Item]:
    """As many of the tokens as fit, long ones shortened."""
    items: list[Item] = []
    x = left
    for label, _ in tokens:
        shown = elide(label, _SMALL, min(room - 6, _LONGEST_NOTE))
        across = width(shown, _SMALL)
        if not shown or x + across > left + room - 6:
            break
        items.append(Text(x, y, shown, _SMALL, theme.muted))
        x += across + 8
    return items


def _others(
    count: int, rest: float, top: float, pitch: float, columns: _Columns, theme: Theme
) -> Group:
    y = top + pitch / 2 + _SIZE * CAP_HEIGHT / 2
    amount = numbers.logits(rest, signed=True)
    label = f"{count} others" if count > 1 else "1 other"
    items = (
        Text(columns.label, y, label, _SIZE, theme.muted, "end"),
        Text(columns.contribution, y, amount, _SIZE, amount_colour(amount, theme), "end"),
        *_bar(rest, y, pitch, columns, theme, 0.45),
    )
    return Group(items, id="others", title=f"{label}: {amount} logits together")


def _sum_row(total: float, top: float, columns: _Columns, wide: float, theme: Theme) -> Group:
    amount = numbers.logits(total, signed=True)
    y = top + 22
    back = Rect(MARGIN - 6, top + 6, wide - 2 * MARGIN + 12, 23, fill=theme.panel, radius=4)
    items: tuple[Item, ...] = (
        back,
        Text(columns.label, y, "sum", _SIZE, theme.text, "end", bold=True),
        Text(
            columns.contribution, y, amount, _SIZE, amount_colour(amount, theme), "end", bold=True
        ),
    )
    return Group(items, id="sum", title=f"sum: {amount} logits")
