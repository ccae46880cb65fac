"""Small labelled boxes in rows that wrap: the tokens of a prompt, the tokens a model predicts.

One widget paints them all, so that hundreds cost no more than a few, and answers to clicks, to the
arrow keys and to hovering.
"""

import math
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from circuitview.figures.drawable import drawable
from circuitview.figures.theme import LIGHT, Theme, readable_on

_GAP = 4.0
_PADDING = 6.0
_UNDER_SHARE = 0.86  # size of the value under a box, of the font's


@dataclass(frozen=True, slots=True)
class Chip:
    """One box.

    Attributes:
        text: in it; `under` is below it, or "".
        fill: its colour, "#rrggbb".
        outlined: it is the one that counts; `marked`: another is pointed at.
        under_color: of the text below.
        tip: shown on hovering, one fact a line.
    """

    text: str
    under: str
    fill: str
    under_color: str
    outlined: bool = False
    marked: bool = False
    tip: str = ""


class ChipFlow(QWidget):
    """Signals: chosen(index, shift held); stepped(-1 or 1) by the arrow keys; jumped to an end."""

    chosen = Signal(int, bool)
    stepped = Signal(int)
    jumped = Signal(int)  # 0, or -1 for the last
    left = Signal()  # Escape
    laid_out = Signal()

    def __init__(self, name: str, keyboard: bool = True) -> None:
        super().__init__()
        self.chips: tuple[Chip, ...] = ()
        self._boxes: list[QRectF] = []
        self._theme = LIGHT
        self._hovered = -1
        self._known: tuple[int, list[QRectF]] | None = None
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if keyboard else Qt.FocusPolicy.NoFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_chips(self, chips: tuple[Chip, ...], theme: Theme) -> None:
        """Show these."""
        if chips == self.chips and theme is self._theme:
            return
        moved = [(chip.text, chip.under) for chip in chips] != [
            (chip.text, chip.under) for chip in self.chips
        ]
        self.chips, self._theme = chips, theme
        if moved:
            self._known = None
            self._hovered = -1
            self._boxes = self._lay_out(self.width())
            self.updateGeometry()
        self.update()

    def box(self, index: int) -> QRectF:
        """Where a chip is, the value under it included."""
        return self._boxes[index] if index < len(self._boxes) else QRectF()

    def row_height(self) -> int:
        """The height of one row of chips, the gap below it included."""
        under = QFontMetricsF(self._under_font()).height() if self._has_under() else 0.0
        return math.ceil(self._chip_height() + under + _GAP)

    # --- layout ----------------------------------------------------------------------------------

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        boxes = self._lay_out(width)
        last = boxes[-1].top() if boxes else 0.0
        return int(last + self.row_height())  # whole rows, and the rim above the first

    def sizeHint(self) -> QSize:
        width = max(self.width(), 120)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.row_height())

    def _has_under(self) -> bool:
        return any(chip.under for chip in self.chips) or not self.chips

    def _under_font(self) -> QFont:
        smaller = QFont(self.font())
        smaller.setPointSizeF(self.font().pointSizeF() * _UNDER_SHARE)
        return smaller

    def _chip_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 6

    def _lay_out(self, width: int) -> list[QRectF]:
        """The place of each chip in a widget of that width; Qt asks often, so it is kept."""
        if self._known is None or self._known[0] != width:
            self._known = width, self._places(width)
        return self._known[1]

    def _places(self, width: int) -> list[QRectF]:
        inside, below = QFontMetricsF(self.font()), QFontMetricsF(self._under_font())
        high = self.row_height() - _GAP
        boxes: list[QRectF] = []
        x, y = _GAP / 2, _GAP / 2
        for chip in self.chips:
            wide = max(
                inside.horizontalAdvance(drawable(chip.text)) + 2 * _PADDING,
                below.horizontalAdvance(chip.under) + 4,
                self._chip_height(),
            )
            wide = min(wide, max(width - _GAP, 20.0))
            if boxes and x + wide > width - _GAP / 2:
                x, y = _GAP / 2, y + self.row_height()
            boxes.append(QRectF(x, y, wide, high))
            x += wide + _GAP
        return boxes

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._boxes = self._lay_out(self.width())
        super().resizeEvent(event)
        self.laid_out.emit()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._known = None
            self._boxes = self._lay_out(self.width())
        super().changeEvent(event)

    # --- painting --------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index, (chip, box) in enumerate(zip(self.chips, self._boxes, strict=False)):
            if box.intersects(QRectF(event.rect())):
                self._paint_chip(painter, index, chip, box)
        painter.end()

    def _paint_chip(self, painter: QPainter, index: int, chip: Chip, box: QRectF) -> None:
        theme = self._theme
        top = QRectF(box.left() + 0.5, box.top() + 0.5, box.width() - 1, self._chip_height() - 1)
        edge, wide = theme.faint, 1.0
        if index == self._hovered:
            edge = theme.muted
        if chip.marked:
            edge, wide = theme.accent, 2.0
        if chip.outlined:
            edge, wide = theme.text, 2.0
        painter.setPen(QPen(QColor(edge), wide))
        painter.setBrush(QColor(chip.fill))
        painter.drawRoundedRect(top, 4, 4)
        if chip.marked and chip.outlined:
            painter.setPen(QPen(QColor(theme.accent), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(top.adjusted(2.5, 2.5, -2.5, -2.5), 2.5, 2.5)
        if chip.outlined and self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 1.5, Qt.PenStyle.DotLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(top.adjusted(2.5, 2.5, -2.5, -2.5), 2.5, 2.5)
        painter.setFont(self.font())
        painter.setPen(QColor(readable_on(chip.fill, theme)))
        room = top.width() - _PADDING
        shown = QFontMetricsF(self.font()).elidedText(
            drawable(chip.text), Qt.TextElideMode.ElideRight, room
        )
        painter.drawText(top, Qt.AlignmentFlag.AlignCenter, shown)
        if chip.under:
            painter.setFont(self._under_font())
            painter.setPen(QColor(chip.under_color))
            below = QRectF(
                box.left() - 2, top.bottom(), box.width() + 4, box.bottom() - top.bottom()
            )
            painter.drawText(below, Qt.AlignmentFlag.AlignCenter, chip.under)

    # --- acting ----------------------------------------------------------------------------------

    def index_at(self, place: QPointF) -> int:
        """The chip at a place, or -1."""
        for index, box in enumerate(self._boxes):
            if box.adjusted(-_GAP / 2, 0, _GAP / 2, 0).contains(place):
                return index
        return -1

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.index_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and index >= 0:
            self.chosen.emit(index, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self.index_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        super().leaveEvent(event)

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            pointing = Qt.CursorShape.PointingHandCursor
            self.setCursor(pointing if index >= 0 else Qt.CursorShape.ArrowCursor)
            self.update()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.index_at(QPointF(event.pos()))
            if index >= 0:
                # A token may look like HTML: escaped, it is shown as it is.
                tip = "\n".join(drawable(line) for line in self.chips[index].tip.split("\n"))
                shown = f"<p style='white-space: pre'>{escape(tip)}</p>"
                QToolTip.showText(event.globalPos(), shown, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Left:
                self.stepped.emit(-1)
            case Qt.Key.Key_Right:
                self.stepped.emit(1)
            case Qt.Key.Key_Home:
                self.jumped.emit(0)
            case Qt.Key.Key_End:
                self.jumped.emit(-1)
            case Qt.Key.Key_Escape:
                self.left.emit()
            case _:
                super().keyPressEvent(event)
