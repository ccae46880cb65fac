"""Items of a Figure on the screen, whose rows can be pointed at and clicked.

Only what lies in the exposed part is painted, so that a figure much longer than the screen scrolls
as smoothly as a short one.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from circuitview.figures.figure import Box, Group, Item, Text, bounds
from circuitview.figures.text_width import ASCENT, DESCENT
from circuitview.figures.theme import LIGHT, Theme
from circuitview.gui.paint import paint
from circuitview.gui.paint_failure import paint_failure

_SPARE = 2.0  # pixels that a marked row reaches beyond what is in it
_RIM = 5.0  # pixels above the first row and below the last


class FigureView(QWidget):
    """The items, painted from the first to the last row at the widget's width.

    Signals:
        clicked: the data of the group that was clicked.
        stepped: -1 or 1, for the arrow keys.
    """

    clicked = Signal(object)
    stepped = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._theme: Theme = LIGHT
        self._pieces: list[tuple[Item, _Span]] = []
        self._marked: Any = None
        self._crop = Box(0, 0, 1, 1)
        self._factor = 1.0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def show_items(
        self, items: Iterable[Item], theme: Theme, sides: tuple[float, float], wide: float
    ) -> None:
        """Show `items`, what lies between the two `sides` in `wide` pixels."""
        self._theme = theme
        left, right = sides
        self._pieces = [
            (item, span)
            for outer in items
            for item in _taken_apart(outer)
            if (span := _span(item)) is not None
        ]
        top = min((span.top for _, span in self._pieces), default=0.0) - _RIM
        bottom = max((span.bottom for _, span in self._pieces), default=0.0) + _RIM
        self._crop, self._factor = Box(left, top, right, bottom), wide / (right - left)
        self.resize(round(wide), round((bottom - top) * self._factor))
        self.update()

    def mark(self, marked: Any) -> None:
        """Put the group with this data on a band of the theme's."""
        if marked != self._marked:
            self._marked = marked
            self.update()

    def marked_span(self) -> tuple[int, int] | None:
        """From where to where the marked group reaches down the widget."""
        span = self._marked_rows()
        if span is None:
            return None
        ends = ((edge - self._crop.top) * self._factor for edge in span)
        top, bottom = (round(end) for end in ends)
        return top, bottom

    def _marked_rows(self) -> "_Span | None":
        for item, span in self._pieces:
            if isinstance(item, Group) and item.data is not None and item.data == self._marked:
                return _Span(span.top - _SPARE, span.bottom + _SPARE)
        return None

    def sizeHint(self) -> QSize:
        return self.size()

    def group_at(self, where: QPointF) -> Group | None:
        """The group with data at a height; its whole row counts, the gaps in it too."""
        y = where.y() / self._factor + self._crop.top
        for item, span in self._pieces:
            inside = span.top - _SPARE <= y < span.bottom + _SPARE
            if inside and isinstance(item, Group) and item.data is not None:
                return item
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(self._theme.background))
        failure = None
        try:
            self._paint(event, painter)
        except Exception as error:  # noqa: BLE001 - it is written in the picture's place
            failure = error
        painter.end()
        if failure is not None:
            paint_failure(self, failure)

    def _paint(self, event: QPaintEvent, painter: QPainter) -> None:
        top, bottom = (
            edge / self._factor + self._crop.top
            for edge in (event.rect().top() - 2, event.rect().bottom() + 3)
        )
        painter.scale(self._factor, self._factor)
        painter.translate(-self._crop.left, -self._crop.top)
        band = self._marked_rows()
        if band is not None:
            wide = self._crop.right - self._crop.left - 4
            where = QRectF(self._crop.left + 2, band.top, wide, band.bottom - band.top)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.selection))
            painter.drawRoundedRect(where, 4, 4)
        paint(
            (item for item, span in self._pieces if span.top <= bottom and span.bottom >= top),
            painter,
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        group = self.group_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and group is not None:
            self.clicked.emit(group.data)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Up:
                self.stepped.emit(-1)
            case Qt.Key.Key_Down:
                self.stepped.emit(1)
            case _:
                super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            group = self.group_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), (group.title or "") if group else "", self)
            return True
        return super().event(event)


def _taken_apart(item: Item) -> tuple[Item, ...]:
    """The rows of a group that only holds rows; anything else as it is."""
    if isinstance(item, Group) and item.clip is None and item.data is None:
        return item.items
    return (item,)


class _Span(NamedTuple):
    """From where to where something reaches downwards."""

    top: float
    bottom: float


def _span(item: Item) -> _Span | None:
    """The span of an item; cheaper than its bounds, which measure every text."""
    match item:
        case Group(clip=None):
            spans = [span for inner in item.items if (span := _span(inner)) is not None]
            if not spans:
                return None
            return _Span(min(span.top for span in spans), max(span.bottom for span in spans))
        case Text(rotation=0.0):
            return _Span(item.y - ASCENT * item.size, item.y + DESCENT * item.size)
    box = bounds(item)
    return None if box is None else _Span(box.top, box.bottom)
