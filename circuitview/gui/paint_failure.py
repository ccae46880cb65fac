"""What stands in the place of a picture that can't be painted: why, instead of a dead window.

An exception that is raised while Qt paints, below an event() of Python's, ends the process.
"""

import logging

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

log = logging.getLogger(__name__)


def paint_failure(widget: QWidget, error: Exception) -> None:
    """Write over `widget` what was raised; to be called in its paintEvent, with no painter."""
    log.error("a figure can't be painted", exc_info=error)
    painter = QPainter(widget)
    palette = widget.palette()
    painter.fillRect(widget.rect(), palette.color(widget.backgroundRole()))
    painter.setPen(palette.color(widget.foregroundRole()))
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    painter.drawText(widget.rect(), flags, f"{type(error).__name__}: {error}")
    painter.end()
