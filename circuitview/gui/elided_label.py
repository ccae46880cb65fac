"""A line of text that is cut with an ellipsis where there is no room; its tooltip has all of it."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

_LEAST = 70  # pixels; a part that would have less is cut no further, but left out


class ElidedLabel(QLabel):
    """Shows `text()` as far as it fits."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def setText(self, text: str) -> None:
        if text != self.text():
            super().setText(text)
            self.setToolTip(text)

    def shown_text(self) -> str:
        """What there is room for."""
        return self._cut(self.text(), self.contentsRect().width())

    def _cut(
        self, text: str, room: int, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> str:
        return self.fontMetrics().elidedText(text, mode, room)

    def minimumSizeHint(self) -> QSize:
        return QSize(10, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002 - Qt's signature
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), self.alignment(), self.shown_text())
        painter.end()


class FittedLabel(ElidedLabel):
    """Shows the fullest of several wordings that there is room for; `text()` is the first."""

    def __init__(self) -> None:
        super().__init__()
        self._wordings: tuple[str, ...] = ("",)
        self._elastic = ""

    def show_wordings(self, *wordings: str, elastic: str = "", hint: str = "") -> None:
        """Show one of `wordings`, which get shorter and shorter.

        Args:
            elastic: a part of them that may be cut, in its middle, before the next is taken.
            hint: the tool tip; "" for the first wording.
        """
        if (wordings, elastic) != (self._wordings, self._elastic):
            self._wordings, self._elastic = wordings, elastic
            self.setText(wordings[0])
            self.updateGeometry()
            self.update()
        self.setToolTip(hint or wordings[0])

    def shown_text(self) -> str:
        room, elastic = self.contentsRect().width(), self._elastic
        for text in self._wordings:
            if self._wide(text) <= room:
                return text
            if elastic and elastic in text:
                left = room - self._wide(text.replace(elastic, "", 1))
                if left >= _LEAST:
                    middle = self._cut(elastic, left, Qt.TextElideMode.ElideMiddle)
                    return text.replace(elastic, middle, 1)
        return self._cut(self._wordings[-1], room)

    def sizeHint(self) -> QSize:
        return QSize(self._wide(self._wordings[0]), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self._wide(self._wordings[-1]), super().minimumSizeHint().height())

    def _wide(self, text: str) -> int:
        return self.fontMetrics().horizontalAdvance(text)
