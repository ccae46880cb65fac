"""Scene items made from a figure's groups: what is exported is what is on the screen.

A band is one curve that can be pointed at even where it is a hair; all else is painted as it is.
"""

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPainterPath, QPainterPathStroker
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from circuitview.figures.figure import Curve, Group, Item, bounds
from circuitview.gui.paint import colour, paint, pen, qpath

_REACH = 9.0  # pixels: a thinner band can be pointed at as if it were this thick
_HOVERED = 0.97


class CurveItem(QGraphicsPathItem):
    """One band, or one strand from a source token."""

    def __init__(self, curve: Curve, data: Any, title: str) -> None:
        super().__init__(qpath(curve))
        self.thing = data
        self.title = title
        self._curve = curve
        self._shape: QPainterPath | None = None
        self._box: QRectF | None = None
        self.setPen(pen(curve))
        self.setBrush(QBrush(colour(curve.fill, curve.opacity)) if curve.fill else QBrush())

    def boundingRect(self) -> QRectF:
        # The base class would ask shape() and so stroke every band of every new figure.
        if self._box is None:
            spare = max(self._curve.stroke_width if self._curve.stroke else 0.0, _REACH) / 2 + 1.0
            self._box = self.path().controlPointRect().adjusted(-spare, -spare, spare, spare)
        return self._box

    def shape(self) -> QPainterPath:
        if self._shape is None:
            # The stroke without its dashes: one points at a band between two of them as well.
            stroker = QPainterPathStroker()
            stroker.setWidth(max(self._curve.stroke_width if self._curve.stroke else 0.0, _REACH))
            self._shape = stroker.createStroke(self.path())
            if self._curve.fill:
                self._shape.addPath(self.path())
                self._shape.setFillRule(Qt.FillRule.WindingFill)
        return self._shape

    def covers(self, point: QPointF) -> bool:
        """Whether the band as it is drawn lies under `point` of the scene."""
        if self._curve.fill:
            return self.path().contains(point)
        stroker = QPainterPathStroker()
        stroker.setWidth(self._curve.stroke_width + 1.0)
        return stroker.createStroke(self.path()).contains(point)

    def paint_alone(self, painter: QPainter) -> None:
        """Paint the band as it looks when it is pointed at."""
        paint([replace(self._curve, opacity=_HOVERED)], painter)


class GroupItem(QGraphicsItem):
    """Any other group: a node with its label, the lane, the scale."""

    def __init__(self, items: tuple[Item, ...], data: Any = None, title: str = "") -> None:
        super().__init__()
        self.thing = data
        self.title = title
        self._items = items
        box, margin = bounds(items), 2.0
        self._box = QRectF()
        if box is not None:
            self._box = QRectF(box.left, box.top, box.right - box.left, box.bottom - box.top)
            self._box.adjust(-margin, -margin, margin, margin)

    def boundingRect(self) -> QRectF:
        return self._box

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,  # noqa: ARG002
        widget: QWidget | None = None,  # noqa: ARG002
    ) -> None:
        paint(self._items, painter)


def item_of(item: Item) -> CurveItem | GroupItem:
    """The scene item that shows `item`."""
    if isinstance(item, Group):
        if len(item.items) == 1 and isinstance(item.items[0], Curve):
            return CurveItem(item.items[0], item.data, item.title or "")
        return GroupItem(item.items, item.data, item.title or "")
    return GroupItem((item,))
