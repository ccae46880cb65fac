"""Figures drawn larger: the same picture for a slide, with text that carries across a room."""

from collections.abc import Sequence
from dataclasses import replace

from circuitview.figures.figure import Command, Curve, Figure, Group, Image, Item, Rect, Text

# The size for which the charts' text was chosen (pixels); a larger picture is drawn at this size or
# a little above and enlarged.
_READING = (950.0, 535.0)


def enlargement(width: float, height: float) -> float:
    """By how much a chart of that size is drawn smaller and then enlarged; at least 1."""
    return max(1.0, min(width / _READING[0], height / _READING[1]))


def enlarged(figure: Figure, factor: float) -> Figure:
    """`figure` with every length times `factor`."""
    if factor == 1.0:
        return figure
    return replace(
        figure,
        width=figure.width * factor,
        height=figure.height * factor,
        items=tuple(_item(item, factor) for item in figure.items),
    )


def shifted(items: Sequence[Item], across: float, down: float) -> tuple[Item, ...]:
    """`items` elsewhere, to put one figure beside another."""
    return tuple(_item(item, 1.0, across, down) for item in items)


def _item(item: Item, k: float, dx: float = 0.0, dy: float = 0.0) -> Item:
    match item:
        case Rect():
            return _rect(item, k, dx, dy)
        case Curve():
            return replace(
                item,
                commands=tuple(_command(command, k, dx, dy) for command in item.commands),
                stroke_width=item.stroke_width * k,
                dash=tuple(length * k for length in item.dash),
            )
        case Text():
            return replace(item, x=item.x * k + dx, y=item.y * k + dy, size=item.size * k)
        case Image():
            x, y = item.x * k + dx, item.y * k + dy
            return replace(item, x=x, y=y, width=item.width * k, height=item.height * k)
        case Group():
            clip = None if item.clip is None else _rect(item.clip, k, dx, dy)
            parts = tuple(_item(part, k, dx, dy) for part in item.items)
            return replace(item, items=parts, clip=clip)


def _rect(rect: Rect, k: float, dx: float, dy: float) -> Rect:
    return replace(
        rect,
        x=rect.x * k + dx,
        y=rect.y * k + dy,
        width=rect.width * k,
        height=rect.height * k,
        stroke_width=rect.stroke_width * k,
        radius=rect.radius * k,
        dash=tuple(length * k for length in rect.dash),
    )


def _command(command: Command, k: float, dx: float, dy: float) -> Command:
    match command:
        case ("M" | "L" as kind, x, y):
            return kind, x * k + dx, y * k + dy
        case ("C", x1, y1, x2, y2, x, y):
            return "C", x1 * k + dx, y1 * k + dy, x2 * k + dx, y2 * k + dy, x * k + dx, y * k + dy
    return command
