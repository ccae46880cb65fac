"""The lines on top of a figure: what it shows, and of which run."""

from circuitview.figures.figure import Group, Text
from circuitview.figures.text_width import OTHER_FONT, elide
from circuitview.figures.theme import Theme

MARGIN = 16.0
_TITLE_SIZE, SUBTITLE_SIZE = 15.0, 12.0


def heading_room(width: float) -> float:
    """What a line of the heading may take, to end within the frame in any font (pixels)."""
    return (width - 2 * MARGIN) / OTHER_FONT


def heading(
    title: str, subtitle: str, theme: Theme, width: float, ink: str | None = None
) -> tuple[Group, float]:
    """The heading, and the y below which the figure is free.

    Args:
        title: what is shown.
        subtitle: of which run; one line, or several.
        theme: whose colours.
        width: of the figure (pixels).
        ink: the colour of the subtitle's first line, where it is to be noticed.
    """
    room = heading_room(width)
    y = MARGIN
    items: list[Text] = []
    if title:
        y += 11
        shown = elide(title, _TITLE_SIZE, room, bold=True)
        items.append(Text(MARGIN, y, shown, _TITLE_SIZE, theme.text, bold=True))
        y += 8
    for place, line in enumerate(subtitle.split("\n") if subtitle else ()):
        y += 10
        colour = ink if ink and place == 0 else theme.muted
        items.append(Text(MARGIN, y, elide(line, SUBTITLE_SIZE, room), SUBTITLE_SIZE, colour))
        y += 6
    return Group(tuple(items), id="heading"), y + 10
