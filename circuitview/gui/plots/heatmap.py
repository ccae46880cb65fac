"""A heatmap [dest, src] that can be panned and zoomed: dest 0 on top, the future transparent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyqtgraph
from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QMouseEvent

from circuitview.figures.figure import Box, Item
from circuitview.figures.theme import Theme
from circuitview.gui.plots.heatmap_marks import (
    View,
    axes,
    cell_values,
    grid,
    margins,
    marks,
)
from circuitview.gui.plots.view import PlotView

_RIGHT = 28  # pixels to the right of the cells, where the axis is named
_LEAST_CELLS = 4  # in view, when zoomed in as far as it goes


@dataclass(frozen=True, eq=False, slots=True)
class HeatmapContent:
    """What a heatmap shows.

    Attributes:
        values: [dest, src].
        rgba: [dest, src, 4], its colours; the future has alpha 0.
        labels: the tokens.
        dest, source: the row that is outlined, the column that is marked.
        is_weight: whether values are attention weights, written without a sign.
    """

    values: npt.NDArray[np.float64]
    rgba: npt.NDArray[np.uint8]
    labels: Sequence[str]
    dest: int | None
    source: int | None
    is_weight: bool


class HeatmapView(PlotView):
    """The heatmap. It tells which cell is pointed at and which is clicked."""

    hovered = Signal(object)  # (dest, src) or None
    clicked = Signal(int, int, bool)  # dest, src, whether shift was held

    def __init__(self) -> None:
        super().__init__(downwards=True)
        self._content: HeatmapContent | None = None
        self._image = pyqtgraph.ImageItem(autoDownsample=True)
        self.box.addItem(self._image)
        self.setToolTip("")
        self.scene().sigMouseClicked.connect(self._scene_clicked)

    def show_content(self, content: HeatmapContent, theme: Theme) -> None:
        """Draw `content`; the range in view stays while the prompt is as long as before."""
        self.set_theme(theme)
        before, self._content = self._content, content
        if before is None or before.rgba is not content.rgba:
            self._image.setImage(content.rgba, autoLevels=False, levels=(0, 255))
        if before is None or before.labels is not content.labels:
            self.place()
        if before is None or len(before.labels) != len(content.labels):
            self.reset_range()
        self.redraw()

    def reset_range(self) -> None:
        if self._content is None:
            return
        count = len(self._content.labels)
        least = min(_LEAST_CELLS, count)
        self.box.setLimits(xMin=0, xMax=count, yMin=0, yMax=count, minXRange=least, minYRange=least)
        self.box.setRange(xRange=(0, count), yRange=(0, count), padding=0, disableAutoRange=True)
        self.redraw()

    def area(self, wide: float, high: float) -> Box:
        labels = self._content.labels if self._content else ()
        around = margins(labels, wide, high)
        side = max(min(wide - around.left - _RIGHT, high - around.bottom - 6), 8.0)
        left = around.left + max(wide - _RIGHT - around.left - side, 0) / 2
        return Box(left, 4, left + side, 4 + side)

    def view(self) -> View | None:
        """The cells in view, or None where nothing is shown."""
        if self._content is None:
            return None
        (src, last_src), (dest, _) = self.box.viewRange()
        box = self.box_area()
        side = (box.right - box.left) / max(last_src - src, 1e-9)
        return View(box, src, dest, side, len(self._content.labels))

    def items_in_view(self) -> Iterator[Item]:
        content, view = self._content, self.view()
        if content is None or view is None:
            return
        room = margins(content.labels, self.width(), self.height()).label
        yield from grid(view, self.theme)
        yield from cell_values(view, content.values, content.rgba, content.is_weight, self.theme)
        yield from axes(view, content.labels, content.dest, content.source, room, self.theme)
        yield marks(view, content.dest, content.source, self.theme)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        view = self.view()
        where = event.position()
        self.hovered.emit(None if view is None else view.at(where.x(), where.y()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.hovered.emit(None)

    def _scene_clicked(self, event: object) -> None:
        view = self.view()
        if view is None or event.button() != Qt.MouseButton.LeftButton:  # type: ignore[attr-defined]
            return
        where = event.scenePos()  # type: ignore[attr-defined]
        cell = view.at(where.x(), where.y())
        if cell is not None:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)  # type: ignore[attr-defined]
            self.clicked.emit(*cell, shift)
