"""The bands of a picture, painted a slice at a time, so that the window never waits for them.

Hundreds of smooth translucent bands take tenths of a second to paint. They are painted once, on a
picture of their own, the strongest first; what is selected only changes how that picture is laid
into the whole.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPixmap, QTransform

from circuitview.figures.figure import Curve, Group
from circuitview.gui.diagram.marks import Marks
from circuitview.gui.paint import colour, pen, qpath


class BandLayer:
    """Some bands of one picture, painted for one place and zoom at a time.

    Args:
        bands: lowest first, each with one curve; asked for one by one as they are painted.
        thickness: how thick each really is (pixels of the picture).
        strong_on_top: whether thick ones lie over thin ones.
    """

    def __init__(
        self,
        bands: Sequence[Group] = (),
        thickness: Sequence[float] = (),
        strong_on_top: bool = False,
    ) -> None:
        self.bands = bands
        self.marks = Marks(bands)
        self._thickness = thickness
        # Strong ones are painted first, at whichever end of the pile they lie.
        self._upwards = not strong_on_top
        self._paths: list[QPainterPath] = []
        self._done = 0
        self._looks: tuple[object, ...] = ()
        self._transform = QTransform()
        self._pixmap = QPixmap()
        self._before: tuple[QPixmap, QTransform] | None = None  # complete, for another place

    @property
    def complete(self) -> bool:
        return self._done == len(self.bands)

    def aim(self, transform: QTransform, size: QSize, ratio: float) -> None:
        """Begin anew where the place, zoom or room differs from what is painted."""
        looks = (
            *(transform.m11(), transform.dx(), transform.dy()),
            *(size.width(), size.height(), ratio),
        )
        if looks == self._looks:
            return
        if self.complete and self._looks:
            self._before = self._pixmap, self._transform
        self._looks, self._done = looks, 0
        self._transform = QTransform(transform)
        self._pixmap = QPixmap(size * ratio if len(self.bands) else QSize())
        self._pixmap.setDevicePixelRatio(ratio)
        self._pixmap.fill(Qt.GlobalColor.transparent)

    def paint_for(self, seconds: float) -> None:
        """Go on painting for about so long."""
        if self.complete or self._pixmap.isNull():
            return
        end = perf_counter() + seconds
        painter = QPainter(self._pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setTransform(self._transform)
        if not self._upwards:
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationOver)
        whole = QRectF(QPointF(), self._pixmap.deviceIndependentSize())
        seen = self._transform.inverted()[0].mapRect(whole)
        while not self.complete and perf_counter() < end:
            self._paint(self._done, painter, seen)
            self._done += 1
        painter.end()
        if self.complete:
            self._before = None

    def _paint(self, number: int, painter: QPainter, seen: QRectF) -> None:
        place = number if self._upwards else len(self.bands) - 1 - number
        (curve,), real = self.bands[place].items, self._thickness[place]
        assert isinstance(curve, Curve)
        if number == len(self._paths):
            self._paths.append(qpath(curve))
        path, spare = self._paths[number], curve.stroke_width
        if not path.controlPointRect().adjusted(-spare, -spare, spare, spare).intersects(seen):
            return
        if curve.fill:
            painter.fillPath(path, colour(curve.fill, curve.opacity))
        if curve.stroke:
            # Hairs are drawn thicker than they are; as one zooms in they need it less.
            wide = max(real, curve.stroke_width / max(self._transform.m11(), 1.0))
            painter.strokePath(path, pen(replace(curve, stroke_width=wide)))

    def lay_into(self, painter: QPainter, opacity: float = 1.0) -> None:
        """Lay what is painted into a picture; until all is, what was complete at another place."""
        painter.save()
        painter.setOpacity(opacity)
        painter.resetTransform()
        if self._before is not None and not self.complete:
            pixmap, transform = self._before
            painter.setTransform(transform.inverted()[0] * self._transform)
            painter.drawPixmap(0, 0, pixmap)
        elif not self._pixmap.isNull():
            painter.drawPixmap(0, 0, self._pixmap)
        painter.restore()
