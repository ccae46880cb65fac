"""A diagram in the parts that a window keeps: what is selected changes only some of them.

The bands of a deep model take long to paint and don't depend on the selection but for how strong
they are; a window may keep them as they were painted. An exported file has everything in one list.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from circuitview.figures.figure import Curve, Figure, Group, Item


class Bands(Sequence[Group]):
    """The bands of a picture, each made when it is first asked for: making thousands of them at
    once would hold a window up.

    Args:
        count: how many there are.
        make: the band at a place.
    """

    def __init__(self, count: int, make: Callable[[int], Group]) -> None:
        self._make = make
        self._made: list[Group | None] = [None] * count

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Group: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Group, ...]: ...
    def __getitem__(self, place: int | slice) -> Group | tuple[Group, ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(len(self))))
        made = self._made[place]
        if made is None:
            made = self._made[place] = self._make(place % len(self))
        return made

    def __iter__(self) -> Iterator[Group]:
        return (self[place] for place in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """One diagram.

    Attributes:
        under: what lies under the bands: the lane, the strands of the source tokens.
        bands: one group with one curve for each path, remainder and b_U, lowest first; the same
            object for every selection.
        strength: the opacity of all bands is multiplied by this.
        picked: the selected bands once more, as they stand out.
        over: what lies on top: nodes and words.
        strong_on_top: whether thick bands lie over thin ones; else under.
        thickness, picked_thickness: how thick each band really is (pixels): hairs are drawn thicker
            than they are until one zooms in.
    """

    width: float
    height: float
    background: str
    title: str
    description: str
    under: tuple[Item, ...]
    bands: Sequence[Group]
    strength: float
    picked: Sequence[Group]
    over: tuple[Item, ...]
    strong_on_top: bool = False
    thickness: tuple[float, ...] = ()
    picked_thickness: tuple[float, ...] = ()

    @property
    def figure(self) -> Figure:
        """All of it, each band once."""
        again = {group.data for group in self.picked}
        bands = (band for band in self.bands if band.data not in again)
        return Figure(
            self.width,
            self.height,
            self.background,
            (
                *self.under,
                *(_weaker(band, self.strength) for band in bands),
                *self.picked,
                *self.over,
            ),
            self.title,
            self.description,
        )


def picture_of(figure: Figure) -> Picture:
    """A figure without bands, as a picture."""
    paper = figure.background or "#ffffff"
    return Picture(
        figure.width,
        figure.height,
        paper,
        figure.title,
        figure.description,
        under=(),
        bands=(),
        strength=1.0,
        picked=(),
        over=figure.items,
    )


def _weaker(band: Group, strength: float) -> Group:
    if strength == 1.0:
        return band
    return replace(
        band,
        items=tuple(
            replace(item, opacity=item.opacity * strength) if isinstance(item, Curve) else item
            for item in band.items
        ),
    )
