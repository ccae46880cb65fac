"""What can be pointed at in a picture, and finding it: what is drawn under the pointer, or nearest.

Bands run from left to right in cubic curves. All their pieces are held as one array, so that a
look-up is a comparison of boxes and a few hundred points, however many bands there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainterPath

from circuitview.figures.diagram.picture import Picture
from circuitview.figures.figure import Box, Curve, Group, Item, bounds
from circuitview.gui.paint import qpath

_REACH = 4.5  # pixels: so near to a band one points at it
_SAMPLES = 17  # points on each piece of a curve
_T = np.linspace(0.0, 1.0, _SAMPLES)
_BASIS = np.stack([(1 - _T) ** 3, 3 * (1 - _T) ** 2 * _T, 3 * (1 - _T) * _T**2, _T**3])


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """One thing that can be pointed at.

    Attributes:
        thing: what the figure says that it is.
        title: what is said of it.
        curve: of a band or strand; None for what is found by its box.
    """

    thing: Any
    title: str
    curve: Curve | None = None
    box: Box | None = None


class Marks:
    """The marks of some items, found by place. Built when first asked."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._built = False

    @property
    def all(self) -> list[Mark]:
        """Every mark, lowest first."""
        self._build()
        return self._marks

    def at(self, point: QPointF, reach: float = _REACH) -> Mark | None:
        """The topmost mark that is drawn at `point`, else the nearest band within `reach`."""
        self._build()
        x, y = point.x(), point.y()
        found: list[tuple[int, float]] = [
            (place, 0.0) for place in self._boxed if _inside(self._marks[place].box, x, y)
        ]
        found += [(place, 0.0) for place, path in self._filled if path.contains(point)]
        found += self._near(x, y, reach)
        if not found:
            return None
        drawn = [place for place, distance in found if distance <= 0.5]
        place = max(drawn) if drawn else min(found, key=lambda one: one[1])[0]
        return self._marks[place]

    def _near(self, x: float, y: float, reach: float) -> list[tuple[int, float]]:
        """Stroked bands within reach: which, and how far from their rim."""
        left, right, top, bottom, half = self._limits
        close = half + reach
        pieces = np.flatnonzero(
            (left - close <= x) & (x <= right + close) & (top - close <= y) & (y <= bottom + close)
        )
        if not len(pieces):
            return []
        points = self._pieces[pieces].transpose(0, 2, 1) @ _BASIS  # [piece, 2, sample]
        start, step = points[:, :, :-1], np.diff(points, axis=2)
        aim = np.array([x, y])[:, None] - start
        length = np.maximum((step**2).sum(1, keepdims=True), 1e-12)
        share = np.clip((aim * step).sum(1, keepdims=True) / length, 0.0, 1.0)
        distance = np.sqrt(((aim - share * step) ** 2).sum(1)).min(1) - half[pieces]
        best: dict[int, float] = {}
        for piece, far in zip(pieces.tolist(), distance.tolist(), strict=True):
            if far <= reach:
                place = int(self._owners[piece])
                best[place] = min(best.get(place, far), far)
        return list(best.items())

    def _build(self) -> None:
        if self._built:
            return
        self._built = True
        self._marks: list[Mark] = []
        self._boxed: list[int] = []
        self._filled: list[tuple[int, QPainterPath]] = []
        pieces: list[tuple[float, ...]] = []
        owners: list[int] = []
        halves: list[float] = []
        for item in self._items:
            if not isinstance(item, Group) or item.data is None:
                continue
            place, title = len(self._marks), item.title or ""
            only = item.items[0] if len(item.items) == 1 else None
            if not isinstance(only, Curve):
                box = bounds(item)
                if box is not None:
                    self._marks.append(Mark(item.data, title, box=box))
                    self._boxed.append(place)
                continue
            self._marks.append(Mark(item.data, title, only))
            if only.fill:
                path = qpath(only)
                self._filled.append((place, path))
            found = _pieces(only)
            pieces += found
            owners += [place] * len(found)
            halves += [only.stroke_width / 2 if only.stroke else 0.0] * len(found)
        self._pieces = np.array(pieces, dtype=np.float64).reshape(-1, 4, 2)
        self._owners = np.array(owners, dtype=np.intp)
        half = np.array(halves, dtype=np.float64)
        xs, ys = self._pieces[:, :, 0], self._pieces[:, :, 1]
        self._limits: tuple[npt.NDArray[np.float64], ...] = (
            (xs.min(1), xs.max(1), ys.min(1), ys.max(1), half)
            if len(pieces)
            else (np.zeros(0),) * 5
        )


def _inside(box: Box | None, x: float, y: float, margin: float = 2.0) -> bool:
    return (
        box is not None
        and box.left - margin <= x <= box.right + margin
        and box.top - margin <= y <= box.bottom + margin
    )


def _pieces(curve: Curve) -> list[tuple[float, ...]]:
    """Its lines and cubics, each as four points; of a filled band they are its rim."""
    found: list[tuple[float, ...]] = []
    at = (0.0, 0.0)
    for command in curve.commands:
        match command:
            case ("M", x, y):
                at = x, y
            case ("L", x, y):
                found.append((*at, *at, x, y, x, y))
                at = x, y
            case ("C", x1, y1, x2, y2, x, y):
                found.append((*at, x1, y1, x2, y2, x, y))
                at = x, y
    return found


class PictureMarks:
    """The marks of a picture: nodes over bands over the strands of the source tokens."""

    def __init__(self, picture: Picture, bands: Marks) -> None:
        self._layers = [Marks(picture.over), Marks(picture.picked), bands, Marks(picture.under)]

    def at(self, point: QPointF, reach: float = _REACH) -> Mark | None:
        """The topmost mark at `point`; where none is drawn there, the nearest band."""
        found = (layer.at(point, reach) for layer in self._layers)
        return next((mark for mark in found if mark is not None), None)

    @property
    def all(self) -> list[Mark]:
        """Every mark, lowest first."""
        return [mark for layer in reversed(self._layers) for mark in layer.all]
