"""A bar from a zero line: blue to the right, orange and hatched to the left.

The hatch tells the two apart where colours don't.
"""

from circuitview.figures.figure import Command, Curve, Item, Rect
from circuitview.figures.theme import Theme

_HATCH_STEP = 5.0
_THINNEST = 1.0  # pixels, so that no contribution vanishes


def signed_bar(
    zero: float, length: float, top: float, thickness: float, theme: Theme, opacity: float = 1.0
) -> tuple[Item, ...]:
    """The bar that starts at x = `zero` and is `length` pixels long, to the left where negative."""
    if length == 0:
        return ()
    size = max(abs(length), _THINNEST)
    left = zero - size if length < 0 else zero
    body = Rect(left, top, size, thickness, fill=theme.sign(length), opacity=opacity)
    if length > 0:
        return (body,)
    lines = hatch(left, top, size, thickness)
    if not lines:
        return (body,)
    return (body, Curve(lines, stroke=theme.background, stroke_width=1.4, opacity=0.6))


def hatch(left: float, top: float, width: float, height: float) -> tuple[Command, ...]:
    """Slanting lines cut to a rectangle, without a clip, so that every viewer shows them alike."""
    commands: list[Command] = []
    # A line rises to the right: x + y = sum, counted from the top left corner.
    total = _HATCH_STEP
    while total < width + height:
        start_x, start_y = (total, 0.0) if total <= width else (width, total - width)
        end_x, end_y = (0.0, total) if total <= height else (total - height, height)
        commands.append(("M", left + start_x, top + start_y))
        commands.append(("L", left + end_x, top + end_y))
        total += _HATCH_STEP
    return tuple(commands)
