"""A scatter plot that can be panned and zoomed; what it shows is figures/scatter's."""

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip

from circuitview.figures.figure import Box, Group, Item, Text, bounds
from circuitview.figures.scatter import (
    Scale,
    ScatterPoint,
    ScatterText,
    fitted,
    scatter_items,
)
from circuitview.figures.theme import Theme
from circuitview.gui.plots.view import PlotView

_LEFT, _TOP, _RIGHT, _BOTTOM = 64, 8, 14, 44  # pixels around the plot, for its axes
_REACH = 9.0  # pixels from a point within which the mouse is on it


class ScatterView(PlotView):
    """Signals: clicked(the label of a point)."""

    clicked = Signal(str)

    def __init__(self, words: ScatterText) -> None:
        super().__init__(downwards=False)
        self._words = words
        self.box.setAspectLocked(bool(words.diagonal))
        self._points: tuple[ScatterPoint, ...] = ()
        self._everything_shown = True
        self.scene().sigMouseClicked.connect(self._scene_clicked)
        self.box.sigRangeChangedManually.connect(self._moved)

    def show_words(self, words: ScatterText) -> None:
        """Call the axes and the diagonal so; all points come into view again."""
        if words != self._words:
            self._words = words
            self.box.setAspectLocked(bool(words.diagonal))
            self.reset_range()

    def show_points(self, points: tuple[ScatterPoint, ...], theme: Theme) -> None:
        """Draw the points; the range in view follows them until the user moves it."""
        self.set_theme(theme)
        if points != self._points:
            self._points = points
            if self._everything_shown:
                self.reset_range()
            self.redraw()

    def reset_range(self) -> None:
        self._everything_shown = True
        scale = fitted(self._points, self.box_area(), bool(self._words.diagonal))
        self.box.setRange(
            xRange=(scale.low_x, scale.high_x),
            yRange=(scale.low_y, scale.high_y),
            padding=0,
            disableAutoRange=True,
        )
        self.redraw()

    def area(self, wide: float, high: float) -> Box:
        return Box(_LEFT, _TOP, max(wide - _RIGHT, _LEFT + 1), max(high - _BOTTOM, _TOP + 1))

    def place(self) -> None:
        super().place()
        if self._everything_shown:
            self.reset_range()

    def items_in_view(self) -> Iterator[Item]:
        area = self.box_area()
        if not self._points:
            middle = (area.left + area.right) / 2, (area.top + area.bottom) / 2
            yield Text(*middle, self._words.empty, 12, self.theme.muted, "middle")
        elif area.right - area.left > 40 and area.bottom - area.top > 40:
            yield from scatter_items(self._points, self._words, self.theme, self._scale())

    def _scale(self) -> Scale:
        area = self.box_area()
        (low_x, high_x), (low_y, high_y) = self.box.viewRange()
        across = (area.right - area.left) / max(high_x - low_x, 1e-300)
        if self._words.diagonal:  # one scale on both axes
            return Scale(area, low_x, low_y, across)
        return Scale(area, low_x, low_y, across, (area.bottom - area.top) / (high_y - low_y))

    def point_at(self, where: QPointF) -> Group | None:
        """The point under the mouse."""
        near: list[tuple[float, Group]] = []
        for item in self.painted_items():
            box = bounds(item) if isinstance(item, Group) and item.data is not None else None
            if box is not None and isinstance(item, Group):
                x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
                near.append((max(abs(x - where.x()), abs(y - where.y())), item))
        distance, point = min(near, key=_first, default=(_REACH, None))
        return point if distance < _REACH else None

    def _scene_clicked(self, event: object) -> None:
        if event.button() != Qt.MouseButton.LeftButton:  # type: ignore[attr-defined]
            return
        point = self.point_at(event.scenePos())  # type: ignore[attr-defined]
        if point is not None:
            self.clicked.emit(point.data)

    def _moved(self) -> None:
        self._everything_shown = False

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            point = self.point_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), (point.title or "") if point else "", self)
            return True
        return bool(super().viewportEvent(event))


def _first(pair: tuple[float, Group]) -> float:
    return pair[0]
