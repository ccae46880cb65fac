"""Another token at one position: frozen, foretold and free; by path; and which tokens move."""

from typing import TYPE_CHECKING, NamedTuple

from circuitview.figures.enlarge import shifted
from circuitview.figures.figure import Figure, Group, Item, Text
from circuitview.figures.freezing.bars import PITCH, SMALL, Bar, Span, signed_bars, words
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.path_table import GAP, TableRow, table_figure
from circuitview.figures.theme import Theme, amount_colour
from circuitview.session import numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from circuitview.core.freezing.swap import Mover, Swap

SIDE_BY_SIDE = 620.0  # from here on the paths stand beside the bars
_LINE, _CAPTION = 17.0, 20.0
_TABLE_LEAST = 110.0
_COLUMN = 50.0, 60.0
_LABEL = 64.0, 96.0  # pixels: the least, and what most tokens need
_NAMED = ("path", "weight", "× (value after", "− value before)", "= change (logits)")
_BRIEFLY = ("path", "weight", "× (after", "− before)", "= change")
_NARROW_GAP = 11.0  # pixels between their columns
_NAMED_FROM = 460.0  # pixels; in less, the short names
# What table_figure needs around its rows and for each, at least: rows are counted before drawing.
_TABLE_RIM, _TABLE_ROW = 66.0, 19.0


def swap_figure(
    found: "Swap",
    *,
    subtitle: str,
    theme: Theme,
    width: float,
    height: float,
    description: str = "",
    ink: str | None = None,
) -> Figure:
    """Three bars, the tokens that move most, and the paths that carry the change."""
    title = f"{found.old} → {found.new} at position {found.position}: change of {found.target}"
    head, top = heading(title, subtitle, theme, width, ink)
    beside = width >= SIDE_BY_SIDE
    middle = MARGIN + (width - 2 * MARGIN) * 0.42
    left = Span(MARGIN, middle - MARGIN / 2 if beside else width - MARGIN)
    right = Span(middle + MARGIN / 2 if beside else MARGIN, width - MARGIN)
    items: list[Item] = [head]
    pitch = min(PITCH, max(14.0, (height - top) / 8))
    items += signed_bars(_three(found), left, top, theme, pitch)
    below = top + 3 * pitch + 6
    bottom = height - MARGIN / 2
    if beside:
        items += _movers(found, left, below, bottom, theme)
        items += _paths(found, right, top - 10, bottom, theme)
    else:
        half = below + max(_TABLE_LEAST, (bottom - below) * 0.55)
        items += _paths(found, right, below, min(half, bottom), theme)
        items += _movers(found, left, half + 6, bottom, theme)
    return Figure(width, height, theme.background, tuple(items), title, description)


def _three(found: "Swap") -> tuple[Bar, ...]:
    error = numbers.error(found.error)
    return (
        Bar("frozen", found.frozen, f"frozen: {_signed(found.frozen)} logits; held: all patterns"),
        Bar("foretold by paths", found.predicted, f"the paths' sum; error {error}"),
        Bar("free", found.free, f"free: {_signed(found.free)} logits; all recomputed"),
    )


def _paths(found: "Swap", across: Span, top: float, bottom: float, theme: Theme) -> list[Item]:
    if bottom - top < _TABLE_LEAST * 0.6:
        return []
    high = bottom - top + MARGIN
    capacity = max(int((high - _TABLE_RIM) // _TABLE_ROW) - 2, 0)
    listed = found.paths[: capacity + (found.n_paths == capacity + 1)]
    rows = [
        TableRow(
            (row.path.label, numbers.weight(row.weight), row.after, row.before, row.change),
            data=row.path,
        )
        for row in listed
    ]
    n_rest = found.n_paths - len(listed)
    if n_rest:
        rest = found.predicted - sum(row.change for row in listed)
        more = f"{numbers.readable(n_rest)} {'more' if listed else 'paths'}"
        rows.append(TableRow((more, "", "", "", rest), id="more"))
    rows.append(TableRow(("sum of paths", "", "", "", found.predicted), "total"))
    headers: tuple[str, ...] = _NAMED if across.wide >= _NAMED_FROM else _BRIEFLY
    cut = across.wide < 320
    if cut:
        rows = [
            TableRow((row.cells[0], row.cells[-1]), row.kind, row.id, data=row.data) for row in rows
        ]
        headers = "path", "change (logits)"
    table = table_figure(
        headers,
        rows,
        title="",
        subtitle="",
        theme=theme,
        width=across.wide + 2 * MARGIN,
        height=high,
        right_columns=() if cut else (1,),
        gap=GAP if headers is _NAMED else _NARROW_GAP,
    )
    return [Group(shifted(table.items, across.left - MARGIN, top - MARGIN), id="paths")]


def _movers(found: "Swap", across: Span, top: float, bottom: float, theme: Theme) -> list[Item]:
    """The tokens in question, then those that rise and fall most, as many as fit."""
    room = int((bottom - top - _CAPTION) // _LINE)
    if room < 3:
        return []
    known = {mover.token for mover in found.own}
    up, down = (
        [mover for mover in movers if mover.token not in known]
        for movers in (found.raised, found.lowered)
    )
    each = max(0, (room - len(found.own)) // 2)
    shown = [*found.own[:room], *up[:each], *down[:each]]
    columns = _mover_columns(across)
    base = top + 13
    name_room = columns[0].right - _COLUMN[0] - across.left
    items: list[Item] = [*words(across.left, base, "logit at dest", name_room, theme.muted)]
    items += [
        Text(column.right, base, column.name, SMALL, theme.muted, "end") for column in columns
    ]
    for place, mover in enumerate(shown):
        y = top + _CAPTION + (place + 0.75) * _LINE
        items.append(_mover(mover, across.left, columns, y, theme))
    return items


class _MoverColumn(NamedTuple):
    """Where a column ends, its name, and how its number is written; changes have their colour."""

    right: float
    name: str
    written: "Callable[[Mover], str]"
    coloured: bool = False


def _mover_columns(across: Span) -> list[_MoverColumn]:
    """Whole logits, and beside the two swapped ones their changes, where there is room: without a
    column of its own no change stands where a logit is expected."""
    named: list[tuple[str, Callable[[Mover], str], bool]] = [
        ("clean", lambda mover: numbers.logits(mover.clean), False),
        ("frozen", lambda mover: numbers.logits(mover.clean + mover.frozen), False),
        ("change", lambda mover: _signed(mover.frozen), True),
        ("free", lambda mover: numbers.logits(mover.clean + mover.free), False),
        ("change", lambda mover: _signed(mover.free), True),
    ]
    if across.wide < len(named) * _COLUMN[0] + _LABEL[0]:
        named = [column for column in named if column[0] != "change"]
    last = len(named) - 1
    pitch = min(max((across.wide - _LABEL[1]) / len(named), _COLUMN[0]), _COLUMN[1])
    return [
        _MoverColumn(across.right - (last - place) * pitch, name, written, coloured)
        for place, (name, written, coloured) in enumerate(named)
    ]


def _mover(
    mover: "Mover", left: float, columns: list[_MoverColumn], y: float, theme: Theme
) -> Group:
    room = columns[0].right - _COLUMN[0] + 4 - left
    items: list[Item] = [*words(left, y, mover.label, room, theme.text)]
    for column in columns:
        text = column.written(mover)
        ink = amount_colour(text, theme) if column.coloured else theme.text
        items.append(Text(column.right, y, text, SMALL, ink, "end"))
    title = (
        f"{mover.label}: clean {numbers.logits(mover.clean)}, frozen "
        f"{numbers.logits(mover.clean + mover.frozen)} ({_signed(mover.frozen)}), free "
        f"{numbers.logits(mover.clean + mover.free)} ({_signed(mover.free)}) logits"
    )
    return Group(tuple(items), title=title)


def _signed(value: float) -> str:
    return numbers.logits(value, signed=True)
