"""The canvas of one picture, with pan, zoom, and what lies under the pointer.

All that is seen is composed once and kept; pointing only draws the band in question on top of it.
While the picture is being moved the kept one is moved with it, and painted anew when it stands
still. Bands are painted in slices between which the window answers; a new picture takes the place
of the one before once its strongest bands are painted.
"""

from dataclasses import replace
from time import perf_counter
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from circuitview.figures.diagram.picture import Picture, picture_of
from circuitview.figures.figure import Figure
from circuitview.gui.diagram.band_layer import BandLayer
from circuitview.gui.diagram.marks import Mark, PictureMarks
from circuitview.gui.paint import paint

_STEP = 1.25  # of a zoom by key or menu
_MOST = 20.0
_LEAST = 0.5
_SETTLE = 80  # milliseconds without a move until the picture is painted anew
_SLICE = 0.008  # seconds of painting at once
_FIRST = 0.012  # seconds of painting before a picture is seen
# Seconds after which a picture that is no longer meant, or only half painted, is shown no more.
_PATIENCE = 0.1
_HOVERED = 0.97
_ARROWS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class Canvas(QWidget):
    """A picture that can be panned and zoomed.

    Signals:
        clicked: what was clicked, or None for the empty picture.
        opened: what was double-clicked.
        asked: what a menu was asked for, and where on the screen.
        pointed: the mark under the pointer, or None.
        stepped: an arrow key, −1 or 1.
        entered: the enter key.
        left: the escape key.
        resized: the room changed while the whole picture was shown.
        composed: what is seen was put together anew, with the bands as far as they are painted.
    """

    clicked = Signal(object)
    opened = Signal(object)
    asked = Signal(object, QPoint)
    pointed = Signal(object)
    stepped = Signal(int)
    entered = Signal()
    left = Signal()
    resized = Signal()
    composed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMouseTracking(True)
        self.setMinimumSize(240, 160)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.picture = picture_of(Figure(1, 1, None, ()))
        self._bands = self._picked = BandLayer()
        self.marks = PictureMarks(self.picture, self._bands.marks)
        self._zoom = 1.0
        self._offset = QPointF()
        self._press: QPoint | None = None
        self._last: QPoint | None = None
        self._dragging = False
        self._hovered: Mark | None = None
        self._ringed: Any = None
        self._kept = QPixmap()  # what is seen, as it was composed for the transform
        self._kept_for = QTransform()
        self._stale = True
        self._stale_since = self._composed_at = 0.0
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(_SETTLE)
        self._settle.timeout.connect(self._repaint)
        self._slices = QTimer(self)
        self._slices.setInterval(0)
        self._slices.timeout.connect(self._paint_slice)

    # --- showing ---------------------------------------------------------------------------------

    @property
    def zoom(self) -> float:
        return self._zoom

    @property
    def transform(self) -> QTransform:
        """From the picture to the canvas."""
        return QTransform(self._zoom, 0, 0, self._zoom, self._offset.x(), self._offset.y())

    def show_picture(self, picture: Picture) -> None:
        """Show `picture` in place of the one before; zoom and place stay."""
        self._hovered = None
        self.picture = picture
        if picture.bands is not self._bands.bands:
            self._bands = BandLayer(picture.bands, picture.thickness, picture.strong_on_top)
        self._picked = BandLayer(picture.picked, picture.picked_thickness, picture.strong_on_top)
        self.marks = PictureMarks(picture, self._bands.marks)
        self._keep_inside()
        self._repaint()

    def ring(self, thing: Any) -> None:
        """Draw a ring about one thing, where the keyboard is; None draws none."""
        if thing != self._ringed:
            self._ringed = thing
            self.update()

    def finish(self) -> None:
        """Paint all that is still to be painted, now."""
        self._aim()
        while not self.complete:
            self._paint_bands(1.0)
        self._compose()

    def _repaint(self) -> None:
        self._settle.stop()
        if not self._stale:
            self._stale, self._stale_since = True, perf_counter()
        self.update()

    def _moved(self) -> None:
        self._keep_inside()
        self._settle.start()
        self.update()

    def _aim(self) -> None:
        for layer in (self._picked, self._bands):
            layer.aim(self.transform, self.size(), self.devicePixelRatioF())

    @property
    def complete(self) -> bool:
        """Whether every band is painted."""
        return self._bands.complete and self._picked.complete

    def _paint_bands(self, seconds: float) -> None:
        layer = self._bands if self._picked.complete else self._picked
        layer.paint_for(seconds)

    def _paint_slice(self) -> None:
        if self._stale and not self._settle.isActive():
            self._aim()  # a turn may come between another picture and its first paint
        self._paint_bands(_FIRST if self._stale else _SLICE)
        if self.complete:
            self._slices.stop()
        elif not self._stale and perf_counter() - self._composed_at < _PATIENCE:
            return
        if not self._settle.isActive():
            self._compose()
            self.update()

    @property
    def _can_wait(self) -> bool:
        """Whether what is kept may stay a moment longer, until more bands are painted."""
        fits = self._kept.size() == self.size() * self.devicePixelRatioF()
        return fits and perf_counter() - self._stale_since < _PATIENCE

    def _compose(self) -> None:
        """Put together what is seen, with the bands as far as they are painted."""
        ratio = self.devicePixelRatioF()
        kept = QPixmap(self.size() * ratio)
        kept.setDevicePixelRatio(ratio)
        picture = self.picture
        kept.fill(QColor(picture.background))
        painter = QPainter(kept)
        painter.setTransform(self.transform)
        paint(picture.under, painter)
        self._bands.lay_into(painter, picture.strength)
        self._picked.lay_into(painter)
        paint(picture.over, painter)
        painter.end()
        self._kept, self._kept_for, self._stale = kept, self.transform, False
        self._composed_at = perf_counter()
        self.composed.emit()

    def fit(self) -> None:
        """Show the whole picture."""
        self._zoom, self._offset = 1.0, QPointF()
        self._repaint()
        self.resized.emit()

    def zoom_in(self) -> None:
        self._zoom_by(_STEP, QPointF(self.rect().center()))

    def zoom_out(self) -> None:
        self._zoom_by(1 / _STEP, QPointF(self.rect().center()))

    def _zoom_by(self, factor: float, about: QPointF) -> None:
        wanted = min(max(self._zoom * factor, _LEAST), _MOST)
        factor = wanted / self._zoom
        if factor != 1.0:
            self._zoom = wanted
            self._offset = about - (about - self._offset) * factor
            self._moved()

    def _keep_inside(self) -> None:
        """Hold the picture where it can be seen: in the middle where there is room to spare."""
        wide, high = self.picture.width * self._zoom, self.picture.height * self._zoom
        self._offset = QPointF(
            _held(self._offset.x(), self.width(), wide),
            _held(self._offset.y(), self.height(), high),
        )

    # --- painting --------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002
        if self._stale and not self._settle.isActive():
            self._aim()
            if self.complete or not self._can_wait:
                self._paint_bands(_FIRST)
                self._compose()
            if not self.complete:
                self._slices.start()
        painter = QPainter(self)
        moved = self._kept_for.inverted()[0] * self.transform
        if not moved.isIdentity():
            painter.fillRect(self.rect(), QColor(self.picture.background))
            painter.setTransform(moved)
        painter.drawPixmap(0, 0, self._kept)
        painter.setTransform(self.transform)
        if self._hovered is not None and self._hovered.curve is not None:
            paint([replace(self._hovered.curve, opacity=_HOVERED)], painter)
        if self._ringed is not None:
            self._paint_ring(painter)
        painter.end()

    def _paint_ring(self, painter: QPainter) -> None:
        boxes = (mark.box for mark in self.marks.all if mark.thing == self._ringed)
        box = next((box for box in boxes if box is not None), None)
        if box is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.palette().highlight().color(), 2.0))
            around = QRectF(box.left, box.top, box.right - box.left, box.bottom - box.top)
            painter.drawRoundedRect(around, 4, 4)

    # --- pointing --------------------------------------------------------------------------------

    def thing_at(self, place: QPoint) -> Any:
        """What the picture says is drawn at a place of the canvas, or None."""
        mark = self._mark_at(place)
        return None if mark is None else mark.thing

    def _mark_at(self, place: QPoint) -> Mark | None:
        point, _ = self.transform.inverted()
        return self.marks.at(point.map(QPointF(place)))

    def _hover(self, mark: Mark | None) -> None:
        if mark is self._hovered:
            return
        self._hovered = mark
        self.update()
        shape = Qt.CursorShape.ArrowCursor if mark is None else Qt.CursorShape.PointingHandCursor
        self.setCursor(shape)
        self.pointed.emit(mark)

    # --- events ----------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._press = self._last = event.position().toPoint()
            self._dragging = False
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        if self._press is None or self._last is None:
            self._hover(self._mark_at(place))
            return
        far = (place - self._press).manhattanLength() >= QApplication.startDragDistance()
        self._dragging = self._dragging or far
        if self._dragging:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._offset += QPointF(place - self._last)
            self._moved()
        self._last = place

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self._press is not None and not self._dragging:
            self.clicked.emit(self.thing_at(event.position().toPoint()))
        if self._dragging:
            self.setCursor(Qt.CursorShape.ArrowCursor)
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

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.asked.emit(self.thing_at(event.pos()), event.globalPos())
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)
        super().leaveEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if turned:
            self._zoom_by(_STEP ** (turned / 240), event.position())
        event.accept()

    def event(self, event: QEvent) -> bool:
        if (
            isinstance(event, QNativeGestureEvent)
            and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture
        ):
            self._zoom_by(1 + event.value(), event.position())
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape:
            self.left.emit()
        elif key in _ARROWS:
            self.stepped.emit(_ARROWS[Qt.Key(key)])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._keep_inside()
        self._repaint()
        if self._zoom == 1.0:
            self.resized.emit()


def _held(offset: float, room: float, size: float) -> float:
    if size <= room:
        return (room - size) / 2
    return min(0.0, max(offset, room - size))
