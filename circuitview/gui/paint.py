"""Figures painted with Qt: on the screen, into a PNG, into a PDF.

One painter serves the three, so what is exported is what was seen. Files are written whole or not
at all, at the figure's own size: a picture pixel is 1/96 inch in every format.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path as FilePath

from PySide6.QtCore import QBuffer, QByteArray, QMarginsF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QImage,
    QImageWriter,
    QPageSize,
    QPaintEngine,
    QPainter,
    QPainterPath,
    QPdfWriter,
    QPen,
)

from circuitview.core.files import write_bytes_whole
from circuitview.core.names import CircuitviewError
from circuitview.figures.drawable import drawable, valid_xml
from circuitview.figures.figure import Curve, Figure, Group, Image, Item, Rect, Text
from circuitview.figures.raster import crisp, require_raster
from circuitview.figures.svg import HALO_SHARE, write_svg
from circuitview.gui.fonts import advance, ensure_gui_application, font
from circuitview.gui.pdf_info import with_info

CREATOR = "circuitview"
_PER_INCH = 96  # picture pixels
_PDF_RESOLUTION = 1200
_PDF_IMAGE_DENSITY = 3.0


def paint(figure: Figure | Iterable[Item], painter: QPainter) -> None:
    """Paint a figure with its background, or some items, with the painter's present transform."""
    painter.setRenderHints(
        QPainter.RenderHint.Antialiasing
        | QPainter.RenderHint.TextAntialiasing
        | QPainter.RenderHint.LosslessImageRendering
    )
    if isinstance(figure, Figure):
        if figure.background:
            whole = QRectF(0, 0, figure.width, figure.height)
            painter.fillRect(whole, QColor(figure.background))
        figure = figure.items
    for item in figure:
        _paint_item(item, painter)


def _paint_item(item: Item, painter: QPainter) -> None:
    match item:
        case Group():
            _paint_group(item, painter)
        case Rect():
            _set_pen_and_brush(item, painter)
            where = QRectF(item.x, item.y, item.width, item.height)
            if item.radius:
                radius = min(item.radius, item.width / 2, item.height / 2)
                painter.drawRoundedRect(where, radius, radius)
            else:
                painter.drawRect(where)
        case Curve():
            _set_pen_and_brush(item, painter)
            painter.drawPath(qpath(item))
        case Text():
            _paint_text(item, painter)
        case Image():
            _paint_image(item, painter)
        case _:
            raise TypeError(f"a figure can't hold a {type(item).__name__}")


def _paint_group(group: Group, painter: QPainter) -> None:
    if group.clip is None:
        for item in group.items:
            _paint_item(item, painter)
        return
    painter.save()
    outline = QPainterPath()
    where = QRectF(group.clip.x, group.clip.y, group.clip.width, group.clip.height)
    outline.addRoundedRect(where, group.clip.radius, group.clip.radius)
    painter.setClipPath(outline, Qt.ClipOperation.IntersectClip)
    for item in group.items:
        _paint_item(item, painter)
    painter.restore()


def qpath(curve: Curve) -> QPainterPath:
    """The QPainterPath of a curve."""
    path = QPainterPath()
    for command in curve.commands:
        match command:
            case ("M", x, y):
                path.moveTo(x, y)
            case ("L", x, y):
                path.lineTo(x, y)
            case ("C", x1, y1, x2, y2, x, y):
                path.cubicTo(x1, y1, x2, y2, x, y)
            case _:
                path.closeSubpath()
    return path


def pen(item: Rect | Curve) -> QPen:
    """The pen for an item's outline; never one of width 0, which would be a hairline on paper."""
    if not item.stroke or item.stroke_width <= 0:
        return QPen(Qt.PenStyle.NoPen)
    made = QPen(colour(item.stroke, item.opacity), item.stroke_width)
    made.setJoinStyle(Qt.PenJoinStyle.SvgMiterJoin)
    made.setCapStyle(Qt.PenCapStyle.FlatCap)
    if isinstance(item, Curve) and item.cap == "round":
        made.setCapStyle(Qt.PenCapStyle.RoundCap)
        made.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    if item.dash:
        # Qt counts dashes in pen widths, and in pairs.
        lengths = item.dash if len(item.dash) % 2 == 0 else item.dash * 2
        made.setDashPattern([length / item.stroke_width for length in lengths])
    return made


def colour(name: str, opacity: float = 1.0) -> QColor:
    """The QColor of "#rrggbb" at an opacity."""
    made = QColor(name)
    made.setAlphaF(min(max(opacity, 0.0), 1.0))
    return made


def _set_pen_and_brush(item: Rect | Curve, painter: QPainter) -> None:
    painter.setPen(pen(item))
    if item.fill:
        painter.setBrush(colour(item.fill, item.opacity))
    else:
        painter.setBrush(Qt.BrushStyle.NoBrush)


def _paint_text(text: Text, painter: QPainter) -> None:
    shown = drawable(text.text)
    # Qt's pixel sizes are whole numbers; the rest is a scale.
    pixels = max(1, round(text.size))
    made = font(pixels, text.bold)
    painter.save()
    painter.translate(text.x, text.y)
    if text.rotation:
        painter.rotate(text.rotation)
    if pixels != text.size:
        painter.scale(text.size / pixels, text.size / pixels)
    start = 0.0
    if text.anchor != "start":
        across = advance(shown, pixels, text.bold)
        start = -across / 2 if text.anchor == "middle" else -across
    if text.halo is not None:
        outline = QPainterPath()
        outline.addText(QPointF(start, 0), made, shown)
        rim = QPen(colour(text.halo, text.opacity), HALO_SHARE * pixels)
        rim.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.strokePath(outline, rim)
    painter.setFont(made)
    painter.setPen(colour(text.color, text.opacity))
    painter.drawText(QPointF(start, 0), shown)
    painter.restore()


def _paint_image(item: Image, painter: QPainter) -> None:
    on_paper = painter.paintEngine().type() == QPaintEngine.Type.Pdf
    rgba = crisp(item, _PDF_IMAGE_DENSITY) if on_paper else item.rgba
    high, wide, _ = rgba.shape
    # QImage borrows the bytes; copy() makes it their owner.
    raster = QImage(rgba.tobytes(), wide, high, 4 * wide, QImage.Format.Format_RGBA8888).copy()
    where = QRectF(item.x, item.y, item.width, item.height)
    if item.smooth and not on_paper:
        on_device = painter.deviceTransform().mapRect(where).size().toSize()
        if on_device.width() < wide or on_device.height() < high:
            # Averaging: drawing alone would pick single pixels and lose thin stripes.
            raster = raster.scaled(
                max(1, min(on_device.width(), wide)),
                max(1, min(on_device.height(), high)),
                Qt.AspectRatioMode.IgnoreAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, item.smooth)
    painter.drawImage(where, raster)


def image(figure: Figure, scale: float = 2.0, transparent: bool = False) -> QImage:
    """The figure as a raster, `scale` pixels for each pixel of the figure.

    Args:
        figure: what to paint.
        scale: 2 is right for a dense screen, 4 for print.
        transparent: leaves the background out.

    Raises:
        CircuitviewError: where the raster would be too large.
    """
    wide, high = require_raster(figure.width, figure.height, scale)
    keep = ensure_gui_application()
    raster = QImage(wide, high, QImage.Format.Format_ARGB32_Premultiplied)
    if raster.isNull():
        raise CircuitviewError(
            f"there is no memory for a PNG of {wide} x {high} pixels; choose another scale"
        )
    raster.setDevicePixelRatio(scale)
    raster.fill(Qt.GlobalColor.transparent)
    if figure.background and not transparent:
        # The whole raster, the rounded-up rim included.
        raster.fill(QColor(figure.background))
    painter = QPainter(raster)
    try:
        paint(figure.items, painter)
    finally:
        painter.end()  # Qt must not lose a raster that is still painted on
    per_metre = round(_PER_INCH * scale / 0.0254)
    raster.setDotsPerMeterX(per_metre)
    raster.setDotsPerMeterY(per_metre)
    raster.setText("Software", CREATOR)
    if figure.title:
        raster.setText("Title", valid_xml(figure.title))
    if figure.description:
        raster.setText("Description", valid_xml(figure.description))
    del keep
    return raster


def write_png(
    figure: Figure, path: FilePath, scale: float = 2.0, transparent: bool = False
) -> None:
    """Put the figure at `path` as a PNG, its title and description as text in the file.

    Raises:
        CircuitviewError: where it would be too large or can't be written.
    """
    raster = image(figure, scale, transparent)
    # Into memory: Qt knows no file names that are not UTF-8, and does not tell of a full disk.
    content = QBuffer()
    if not QImageWriter(content, QByteArray(b"PNG")).write(raster):
        raise CircuitviewError(f"can't make {path}; export SVG instead")
    write_bytes_whole(path, bytes(content.data().data()))


def write_pdf(figure: Figure, path: FilePath, transparent: bool = False) -> None:
    """Put the figure at `path` as a PDF of one page, its fonts embedded and its text selectable.

    Raises:
        CircuitviewError: where it can't be written.
    """
    write_bytes_whole(path, _pdf(figure, transparent))


def _pdf(figure: Figure, transparent: bool) -> bytes:
    keep = ensure_gui_application()
    # Qt rounds pages to whole points; rounding up cuts nothing off.
    points = [math.ceil(side * 72 / _PER_INCH - 1e-6) for side in (figure.width, figure.height)]
    page = QPageSize(
        QSizeF(*points), QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch
    )
    content = QBuffer()  # in memory, for the reasons above
    content.open(QBuffer.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(content)
    writer.setResolution(_PDF_RESOLUTION)
    writer.setPageSize(page)
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    writer.setTitle(figure.title)
    painter = QPainter()
    if not painter.begin(writer):
        raise CircuitviewError("Qt can't make a PDF here; export SVG instead")
    painter.scale(_PDF_RESOLUTION / _PER_INCH, _PDF_RESOLUTION / _PER_INCH)
    try:
        if figure.background and not transparent:
            paper = QRectF(0, 0, points[0] * _PER_INCH / 72, points[1] * _PER_INCH / 72)
            painter.fillRect(paper, QColor(figure.background))
        paint(figure.items, painter)
    finally:
        painter.end()
    del writer, keep  # the writer closes its buffer
    title, subject = valid_xml(figure.title), valid_xml(figure.description)
    return with_info(bytes(content.data().data()), title, subject, CREATOR)


def write_figure(
    figure: Figure, path: FilePath, scale: float = 2.0, transparent: bool = False
) -> None:
    """Put the figure at `path`, as what its ending says: .svg, .pdf or .png.

    Raises:
        CircuitviewError: for another ending, or where the file can't be written.
    """
    bare = replace(figure, background=None) if transparent else figure
    writers: dict[str, Callable[[], None]] = {
        ".svg": lambda: write_svg(bare, path),
        ".pdf": lambda: write_pdf(bare, path),
        ".png": lambda: write_png(bare, path, scale),
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise CircuitviewError(f"{path.name}: can't tell the format; end it in .svg, .pdf or .png")
    write()
