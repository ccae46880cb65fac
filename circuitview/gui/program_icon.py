"""The program's icon, drawn from SVG at any size."""

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from circuitview.resources import resource

_SIZES = (16, 24, 32, 48, 64, 128, 256)


def program_icon() -> QIcon:
    """The icon of the program's windows.

    Raises:
        CircuitviewError: where the installation lacks the file.
    """
    drawing = resource("icons", "circuitview.svg").read_bytes()
    icon = QIcon()
    for size in _SIZES:
        icon.addPixmap(_pixmap(drawing, size))
    return icon


def _pixmap(drawing: bytes, size: int) -> QPixmap:
    raster = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    raster.fill(Qt.GlobalColor.transparent)
    painter = QPainter(raster)
    QSvgRenderer(QByteArray(drawing)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return QPixmap.fromImage(raster)
