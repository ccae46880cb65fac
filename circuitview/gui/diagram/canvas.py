"""The scene of one figure, with pan, zoom, and what lies under the pointer.

Hundreds of smooth translucent bands take tens of milliseconds to paint. They are painted once, into
a picture; pointing only draws the band in question on top of it. While the picture is being moved,
and when new numbers come, its edges are first left rough, and made smooth when it stands still.
"""

from typing import Any

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QGraphicsScene, QGraphicsView, QWidget

from circuitview.figures.figure import Figure
from circuitview.gui.diagram.items import CurveItem, GroupItem, item_of

_STEP = 1.25  # of a zoom by key or menu
_MOST = 20.0
_LEAST = 0.5
_SETTLE = 80  # milliseconds without a move until the edges are smooth again


class Canvas(QGraphicsView):
    """A figure that can be panned and zoomed.

    Signals:
        clicked: what was clicked, or None for the empty picture.
        opened: what was double-clicked.
        pointed: the item under the pointer, or None.
        resized: the room changed while the whole figure was shown.
    """

    clicked = Signal(object)
    opened = Signal(object)
    pointed = Signal(object)
    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._figures = QGraphicsScene(self)
        # Rebuilt often and asked for single points only: a tree costs more than it saves.
        self._figures.setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.setScene(self._figures)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.AnchorUnderMouse)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.FullViewportUpdate)
        self.setMouseTracking(True)
        self.viewport().setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self._zoom = 1.0
        self._press: QPoint | None = None
        self._last: QPoint | None = None
        self._dragging = False
        self._hovered: CurveItem | GroupItem | None = None
        self._picture: QPixmap | None = None
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(_SETTLE)
        self._settle.timeout.connect(self._repaint)

    # --- showing ---------------------------------------------------------------------------------

    @property
    def zoom(self) -> float:
        return self._zoom

    def show_figure(self, figure: Figure, rough: bool = False) -> None:
        """Show `figure` in place of the one before; zoom and place stay.

        With `rough` it is there sooner and its edges are made smooth a moment later: for figures
        that may follow one another quickly.
        """
        self._hovered = None
        self._figures.clear()
        self._figures.setSceneRect(0, 0, figure.width, figure.height)
        self.setBackgroundBrush(QColor(figure.background or "#ffffff"))
        for item in figure.items:
            self._figures.addItem(item_of(item))
        if rough:
            self._settle.start()
        else:
            self._settle.stop()
        self._repaint()

    def _repaint(self) -> None:
        self._picture = None
        self.viewport().update()

    def _moved(self) -> None:
        """The picture is being panned or zoomed: paint it roughly until it stands still."""
        self._settle.start()
        self._repaint()

    def _painted(self) -> QPixmap:
        """The scene as it is seen now."""
        viewport, ratio = self.viewport(), self.devicePixelRatioF()
        picture = QPixmap(viewport.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(self.backgroundBrush().color())
        smooth = not self._settle.isActive()
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, smooth)
        painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
        self.render(painter, QRectF(viewport.rect()), viewport.rect())
        painter.end()
        return picture

    def fit(self) -> None:
        """Show the whole figure."""
        self.resetTransform()
        self._zoom = 1.0
        self._repaint()
        self.resized.emit()

    def zoom_in(self) -> None:
        self._zoom_by(_STEP)

    def zoom_out(self) -> None:
        self._zoom_by(1 / _STEP)

    def _zoom_by(self, factor: float) -> None:
        wanted = min(max(self._zoom * factor, _LEAST), _MOST)
        factor = wanted / self._zoom
        if factor != 1.0:
            self._zoom = wanted
            self.scale(factor, factor)
            self._moved()

    # --- pointing --------------------------------------------------------------------------------

    def thing_at(self, place: QPoint) -> Any:
        """What the figure says is drawn at a place of the viewport, or None."""
        item = self._item_at(place)
        return None if item is None else item.thing

    def _item_at(self, place: QPoint) -> CurveItem | GroupItem | None:
        """The item there; where several are within reach, the one that is really drawn there."""
        found = [
            item
            for item in self.items(place)
            if isinstance(item, CurveItem | GroupItem) and item.thing is not None
        ]
        point = self.mapToScene(place)
        exact = (item for item in found if isinstance(item, GroupItem) or item.covers(point))
        return next(exact, found[0] if found else None)

    def _hover(self, item: CurveItem | GroupItem | None) -> None:
        if item is self._hovered:
            return
        self._hovered = item
        self.viewport().update()
        shape = Qt.CursorShape.ArrowCursor if item is None else Qt.CursorShape.PointingHandCursor
        self.viewport().setCursor(shape)
        self.pointed.emit(item)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002
        if self._picture is None:
            self._picture = self._painted()
        painter = QPainter(self.viewport())
        painter.drawPixmap(0, 0, self._picture)
        if isinstance(self._hovered, CurveItem):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setTransform(self.viewportTransform())
            self._hovered.paint_alone(painter)
        painter.end()

    # --- events ----------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._press = self._last = event.position().toPoint()
            self._dragging = False
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        if self._press is None or self._last is None:
            self._hover(self._item_at(place))
            return
        far = (place - self._press).manhattanLength() >= QApplication.startDragDistance()
        self._dragging = self._dragging or far
        if self._dragging:
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            step = place - self._last
            across, down = self.horizontalScrollBar(), self.verticalScrollBar()
            across.setValue(across.value() - step.x())
            down.setValue(down.value() - step.y())
            self._moved()
        self._last = place

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self._press is not None and not self._dragging:
            self.clicked.emit(self.thing_at(event.position().toPoint()))
        if self._dragging:
            self.viewport().setCursor(Qt.CursorShape.ArrowCursor)
        self._press = self._last = None
        self._dragging = False
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        thing = self.thing_at(event.position().toPoint())
        if thing is not None:
            self.opened.emit(thing)
        else:
            self.fit()
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)
        super().leaveEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if turned:
            self._zoom_by(_STEP ** (turned / 240))
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:
        if (
            isinstance(event, QNativeGestureEvent)
            and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture
        ):
            self._zoom_by(1 + event.value())
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.clicked.emit(None)
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._repaint()
        if self._zoom == 1.0:
            self.resized.emit()
