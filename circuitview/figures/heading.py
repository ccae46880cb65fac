"""The two lines on top of a figure: what it shows, and of which run."""

from circuitview.figures.figure import Group, Text
from circuitview.figures.text_width import elide
from circuitview.figures.theme import Theme

MARGIN = 16.0
_TITLE_SIZE, _SUBTITLE_SIZE = 15.0, 12.0


def heading(title: str, subtitle: str, theme: Theme, width: float) -> tuple[Group, float]:
    """The heading, and the y below which the figure is free."""
    room = width - 2 * MARGIN
    y = MARGIN
    items: list[Text] = []
    if title:
        y += 11
        shown = elide(title, _TITLE_SIZE, room, bold=True)
        items.append(Text(MARGIN, y, shown, _TITLE_SIZE, theme.text, bold=True))
        y += 8
    if subtitle:
        y += 10
        shown = elide(subtitle, _SUBTITLE_SIZE, room)
        items.append(Text(MARGIN, y, shown, _SUBTITLE_SIZE, theme.muted))
        y += 6
    return Group(tuple(items), id="heading"), y + 10
