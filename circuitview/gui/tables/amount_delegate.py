"""A cell with a number of logits and a bar on one scale for the whole column.

Negative amounts have a minus, run to the left of the zero line and are hatched, so that the sign is
seen without colour.
"""

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from circuitview.figures.signed_bar import signed_bar
from circuitview.figures.theme import LIGHT, Theme, amount_colour
from circuitview.gui.paint import paint
from circuitview.session import numbers

AMOUNT_ROLE = Qt.ItemDataRole.UserRole + 1  # float (logits)
BAR_ROLE = Qt.ItemDataRole.UserRole + 2  # bool: whether the cell has a bar
_PAD, _GAP = 6, 8
_LEAST_BAR = 24
_PALE = 0.4  # opacity of a bar in a row that steps back
_ROW_SPARE = 5  # pixels of air in a row


@dataclass(frozen=True, slots=True)
class BarScale:
    """What a column must hold (logits).

    Attributes:
        low, high: the smallest and the largest amount that have a bar.
        widest: the largest size of any amount, with a bar or without.
    """

    low: float = 0.0
    high: float = 0.0
    widest: float = 0.0


class AmountDelegate(QStyledItemDelegate):
    """Paints amounts; `scale` and `digits` are set by whoever fills the table."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.scale = BarScale()
        self.digits = 2
        self.theme: Theme = LIGHT

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)  # background, selection, focus; the model has no text
        amount: Any = index.data(AMOUNT_ROLE)
        if amount is None:
            return
        painter.save()
        text = numbers.logits(amount, signed=True, digits=self.digits)
        font = QFont(index.data(Qt.ItemDataRole.FontRole) or option.font)
        room = self._number_width(font)
        where = QRect(option.rect.left() + _PAD, option.rect.top(), room, option.rect.height())
        painter.setFont(font)
        brush = index.data(Qt.ItemDataRole.ForegroundRole)  # set where a row is to step back
        painter.setPen(brush.color() if brush else QColor(amount_colour(text, self.theme)))
        align = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(where, align, text)
        if index.data(BAR_ROLE):
            painter.setOpacity(_PALE if brush else 1.0)
            self._bar(painter, option.rect, where.right() + _GAP, amount)
        painter.restore()

    def _bar(self, painter: QPainter, cell: QRect, left: int, amount: float) -> None:
        right = cell.right() - _PAD
        low, high = min(self.scale.low, 0.0), max(self.scale.high, 0.0)
        if right - left < _LEAST_BAR or high <= low:
            return
        factor = (right - left) / (high - low)
        zero = left - low * factor
        thick = min(10.0, cell.height() * 0.5)
        top = cell.center().y() + 0.5 - thick / 2
        if low < 0:
            painter.setPen(QColor(self.theme.remainder))
            painter.drawLine(round(zero), cell.top(), round(zero), cell.bottom())
        paint(signed_bar(zero, amount * factor, top, thick, self.theme), painter)

    def _number_width(self, font: QFont) -> int:
        text = numbers.logits(-max(self.scale.widest, 10.0), digits=self.digits)
        return QFontMetrics(font).horizontalAdvance(text) + 4

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        hint = super().sizeHint(option, index)
        return QSize(
            self._number_width(option.font) + 2 * _PAD + _GAP + 70, hint.height() + _ROW_SPARE
        )
