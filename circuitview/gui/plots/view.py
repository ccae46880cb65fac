"""A pyqtgraph view whose axes and marks are items of a Figure.

The view box is placed by hand inside the margins that the labels need; an overlay above it paints
what `items_in_view` of a subclass gives, in the pixels of the widget, for the range in view.
"""

from collections.abc import Iterable

import pyqtgraph
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsWidget,
    QSizePolicy,
    QStyleOptionGraphicsItem,
    QWidget,
)

from circuitview.figures.figure import Box, Item
from circuitview.figures.theme import LIGHT, Theme
from circuitview.gui.paint import paint

_FADED = 0.4  # opacity


class PlotView(pyqtgraph.GraphicsView):  # type: ignore[misc]
    """Base of the plots: pan by dragging, zoom by the wheel, one scale on both axes."""

    def __init__(self, downwards: bool) -> None:
        super().__init__(background=LIGHT.background)
        self.theme: Theme = LIGHT
        self._canvas = QGraphicsWidget()
        self.setCentralItem(self._canvas)
        self.box = pyqtgraph.ViewBox(
            lockAspect=True,
            enableMenu=False,
            invertY=downwards,
            defaultPadding=0.0,
        )
        # Not by the constructor: only an item that enters a scene hears of paints to come.
        self.box.setParentItem(self._canvas)
        self.box.disableAutoRange()
        self._overlay = _Overlay(self)
        self._overlay.setParentItem(self._canvas)
        self._painted: tuple[Item, ...] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(120, 120)
        self._canvas.geometryChanged.connect(self._resized)
        self.box.sigRangeChanged.connect(self._range_changed)

    def items_in_view(self) -> Iterable[Item]:
        """What the overlay paints, in pixels of the widget."""
        raise NotImplementedError

    def area(self, wide: float, high: float) -> Box:
        """Where the view box stands in a widget of that size."""
        raise NotImplementedError

    def reset_range(self) -> None:
        """Show everything."""
        raise NotImplementedError

    def set_theme(self, theme: Theme) -> None:
        if theme is not self.theme:
            self.theme = theme
            self.setBackground(theme.background)
            self.redraw()

    def set_faded(self, faded: bool) -> None:
        """Paint the items pale: they are not of what is asked now."""
        self._overlay.setOpacity(_FADED if faded else 1.0)

    def redraw(self) -> None:
        """Paint the overlay anew."""
        self._painted = None
        self._overlay.update()

    def place(self) -> None:
        """Put the view box where `area` says."""
        size = self._canvas.size()
        area = self.area(size.width(), size.height())
        wide, high = max(area.right - area.left, 1.0), max(area.bottom - area.top, 1.0)
        self.box.setGeometry(QRectF(area.left, area.top, wide, high))
        self._overlay.resize(size.width(), size.height())
        self.redraw()

    def painted_items(self) -> tuple[Item, ...]:
        """What the overlay shows now."""
        if self._painted is None:
            self._painted = tuple(self.items_in_view())
        return self._painted

    def box_area(self) -> Box:
        """The view box in pixels."""
        where = self.box.geometry()
        return Box(where.left(), where.top(), where.right(), where.bottom())

    def _resized(self) -> None:
        self.place()

    def _range_changed(self) -> None:
        self.redraw()


class _Overlay(QGraphicsItem):
    """Paints a plot's items above its view box; the mouse passes through."""

    def __init__(self, plot: PlotView) -> None:
        super().__init__()
        self._plot = plot
        self._size = (0.0, 0.0)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setZValue(10)

    def resize(self, wide: float, high: float) -> None:
        if (wide, high) != self._size:
            self.prepareGeometryChange()
            self._size = (wide, high)

    def boundingRect(self) -> QRectF:
        return QRectF(0, 0, *self._size)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,  # noqa: ARG002 - Qt's signature
        widget: QWidget | None = None,  # noqa: ARG002
    ) -> None:
        painter.save()
        paint(self._plot.painted_items(), painter)
        painter.restore()
