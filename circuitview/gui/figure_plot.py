"""A Figure that is made for the room there is, with parts that can be pointed at and clicked."""

import logging
from collections.abc import Callable, Iterable, Iterator

from PySide6.QtCore import QEvent, QPointF, QSize, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from circuitview.figures.figure import Figure, Group, Item, Text, bounds
from circuitview.figures.pair_grid import PairGrid
from circuitview.figures.text_width import elide
from circuitview.gui.paint import paint
from circuitview.gui.paint_failure import paint_failure

log = logging.getLogger(__name__)

Make = Callable[[float, float], Figure]
_FADED = 0.4  # opacity
_SIZE = 12.0


class FigurePlot(QWidget):
    """Signals: clicked(the data of a part of the figure); made: for the room there is now."""

    clicked = Signal(object)
    made = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._make: Make | None = None
        self._made: tuple[QSize, Figure] | None = None
        self._faded = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(60, 60)

    def show_figure(self, make: Make, faded: bool) -> None:
        """Show what `make` gives for a width and a height; pale where it is not of what is asked
        now."""
        self._make, self._made, self._faded = make, None, faded
        self.update()

    def drawn(self) -> Figure | None:
        """The figure as it is on the screen."""
        if self._make is None:
            return None
        if self._made is None or self._made[0] != self.size():
            self._made = self.size(), self._figure(self._make)
            self.made.emit()
        return self._made[1]

    def _figure(self, make: Make) -> Figure:
        wide, high = float(self.width()), float(self.height())
        try:
            return make(wide, high)
        except Exception as error:
            # Raised while Qt paints, below an event() of Python's, it would end the process.
            log.exception("a figure can't be made")
            ink = self.palette().color(self.foregroundRole()).name()
            words = f"{type(error).__name__}: {error}"
            text = Text(wide / 2, high / 2, elide(words, _SIZE, wide - 20), _SIZE, ink, "middle")
            return Figure(wide, high, None, (text,))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002 - Qt's signature
        figure = self.drawn()
        if figure is None:
            return
        painter = QPainter(self)
        if figure.background is not None:
            painter.fillRect(self.rect(), QColor(figure.background))
        painter.setOpacity(_FADED if self._faded else 1.0)
        failure = None
        try:
            paint(figure.items, painter)
        except Exception as error:  # noqa: BLE001 - it is written in the picture's place
            failure = error
        painter.end()
        if failure is not None:
            paint_failure(self, failure)

    def part_at(self, where: QPointF) -> Group | None:
        """The innermost part with data under the mouse."""
        figure, found = self.drawn(), None
        for part in _parts(figure.items if figure is not None else ()):
            box = bounds(part)
            if box is None:
                continue
            across, down = box.left <= where.x() <= box.right, box.top <= where.y() <= box.bottom
            if not (across and down):
                continue
            found = part
            if isinstance(part.data, PairGrid):  # one image for all of its cells
                wide, high = box.right - box.left, box.bottom - box.top
                cell = part.data.at((where.x() - box.left) / wide, (where.y() - box.top) / high)
                found = None if cell is None else Group((), title=cell.title, data=cell.site)
        return found

    def mousePressEvent(self, event: QMouseEvent) -> None:
        part = self.part_at(event.position())
        if part is not None:
            self.clicked.emit(part.data)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            part = self.part_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), (part.title or "") if part else "", self)
            return True
        return super().event(event)


def _parts(items: Iterable[Item]) -> Iterator[Group]:
    for item in items:
        if isinstance(item, Group):
            if item.data is not None:
                yield item
            yield from _parts(item.items)
