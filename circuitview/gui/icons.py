"""The program's icon and the toolbar's, drawn from SVG at any size.

Toolbar icons are of one colour, written as currentColor in the files; the theme says which.
"""

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from circuitview.figures.theme import Theme, mix
from circuitview.resources import resource

_SIZES = (16, 20, 24, 32, 40, 48, 64)
_PROGRAM_SIZES = (16, 24, 32, 48, 64, 128, 256)


def program_icon() -> QIcon:
    """The icon of the program's windows.

    Raises:
        CircuitviewError: where the installation lacks the file.
    """
    return _icon(resource("icons", "circuitview.svg").read_bytes(), _PROGRAM_SIZES)


def toolbar_icon(name: str, theme: Theme) -> QIcon:
    """The toolbar icon called like its file, in the theme's colours, paler where disabled.

    Raises:
        CircuitviewError: where the installation lacks the file.
    """
    drawing = resource("icons", f"{name}.svg").read_bytes()
    icon = _icon(drawing.replace(b"currentColor", theme.text.encode()), _SIZES)
    pale = mix(theme.background, theme.text, 0.35)
    disabled = drawing.replace(b"currentColor", pale.encode())
    for size in _SIZES:
        icon.addPixmap(_pixmap(disabled, size), QIcon.Mode.Disabled)
    return icon


def _icon(drawing: bytes, sizes: tuple[int, ...]) -> QIcon:
    icon = QIcon()
    for size in sizes:
        icon.addPixmap(_pixmap(drawing, size))
    return icon


def _pixmap(drawing: bytes, size: int) -> QPixmap:
    raster = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    raster.fill(Qt.GlobalColor.transparent)
    painter = QPainter(raster)
    QSvgRenderer(QByteArray(drawing)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return QPixmap.fromImage(raster)
