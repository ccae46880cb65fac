"""The key to a heatmap's colours: a ramp with its first and last value."""

import numpy as np
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from circuitview.figures.theme import LIGHT, Theme, diverging, sequential
from circuitview.session import numbers

_RAMP, _HEIGHT, _GAP = 72, 10, 5


class ColourBar(QWidget):
    """Two numbers with the ramp of colours between them."""

    def __init__(self) -> None:
        super().__init__()
        self._theme: Theme = LIGHT
        self._low, self._high = 0.0, 1.0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_levels(self, low: float, high: float, theme: Theme) -> None:
        """Show the colours from `low` to `high`; a negative `low` means a signed scale."""
        if (low, high, theme) != (self._low, self._high, self._theme):
            self._low, self._high, self._theme = low, high, theme
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        words = sum(metrics.horizontalAdvance(text) for text in self._words())
        return QSize(words + _RAMP + 2 * _GAP, metrics.height())

    def _words(self) -> tuple[str, str]:
        signed = self._low < 0
        return _short(self._low, signed), _short(self._high, signed)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002 - Qt's signature
        painter = QPainter(self)
        low, high = self._words()
        metrics = self.fontMetrics()
        baseline = (self.height() + metrics.ascent() - metrics.descent()) / 2
        left = metrics.horizontalAdvance(low) + _GAP
        painter.setPen(QColor(self._theme.muted))
        painter.drawText(0, round(baseline), low)
        painter.drawText(left + _RAMP + _GAP, round(baseline), high)
        where = QRectF(left, (self.height() - _HEIGHT) / 2, _RAMP, _HEIGHT)
        painter.drawImage(where, self._ramp())
        painter.end()

    def _ramp(self) -> QImage:
        if self._low < 0:
            rgba = diverging(np.linspace(-1.0, 1.0, _RAMP), self._theme, 1.0)
        else:
            rgba = sequential(np.linspace(0.0, 1.0, _RAMP), self._theme)
        # QImage borrows the bytes; copy() makes it their owner.
        image = QImage(rgba.tobytes(), _RAMP, 1, 4 * _RAMP, QImage.Format.Format_RGBA8888)
        return image.copy()


def _short(value: float, signed: bool) -> str:
    return f"{value:.0f}" if value in (0.0, 1.0) else numbers.logits(value, signed)
