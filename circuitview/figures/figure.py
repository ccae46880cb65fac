"""The display list: what a picture consists of, as frozen values in pure Python.

Items are painted in order, later ones over earlier ones. Coordinates are pixels of 1/96 inch from
the top left corner, y downwards. A colour is "#rrggbb"; None means that part is not painted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from circuitview.figures.text_width import ASCENT, DESCENT, width

Anchor = Literal["start", "middle", "end"]
Cap = Literal["butt", "round"]
Command = (
    tuple[Literal["M", "L"], float, float]
    | tuple[Literal["C"], float, float, float, float, float, float]
    | tuple[Literal["Z"]]
)


class Box(NamedTuple):
    """An upright rectangle by its four sides."""

    left: float
    top: float
    right: float
    bottom: float

    def contains(self, other: "Box", slack: float = 0.0) -> bool:
        """Whether `other` lies inside, up to `slack` pixels."""
        return (
            other.left >= self.left - slack
            and other.top >= self.top - slack
            and other.right <= self.right + slack
            and other.bottom <= self.bottom + slack
        )

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle, its corners rounded by `radius`; `dash` is the stroke's on and off lengths."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    radius: float = 0.0
    dash: tuple[float, ...] = ()
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A path of moves, lines and cubic curves, like (("M", 0, 0), ("L", 5, 0), ("Z",))."""

    commands: tuple[Command, ...]
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    dash: tuple[float, ...] = ()
    cap: Cap = "butt"
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text with its baseline at `y`.

    `rotation` is in degrees clockwise about (x, y); `halo` is the colour of a rim that keeps the
    text readable on top of other things.
    """

    x: float
    y: float
    text: str
    size: float
    color: str
    anchor: Anchor = "start"
    bold: bool = False
    rotation: float = 0.0
    halo: str | None = None
    opacity: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A raster of uint8 RGBA [h, w, 4], stretched over a rectangle.

    `smooth` is for rasters with more pixels than the picture; otherwise each pixel is a sharp cell.
    """

    x: float
    y: float
    width: float
    height: float
    rgba: npt.NDArray[np.uint8]
    smooth: bool = False

    def __post_init__(self) -> None:
        if self.rgba.dtype != np.uint8 or self.rgba.ndim != 3 or self.rgba.shape[2] != 4:
            raise ValueError(f"rgba is {self.rgba.dtype} {self.rgba.shape}, not uint8 [h, w, 4]")


@dataclass(frozen=True, slots=True)
class Group:
    """Items that belong together.

    Attributes:
        items: in painting order.
        id: a name for programs that read the exported file, or None.
        title: what a reader sees when pointing at the group, or None.
        clip: nothing is painted outside of it.
        data: what the group stands for, like a Path; never painted, never exported.
    """

    items: "tuple[Item, ...]"
    id: str | None = None
    title: str | None = None
    clip: Rect | None = None
    data: Any = None


Item = Rect | Curve | Text | Image | Group


@dataclass(frozen=True, slots=True)
class Figure:
    """A whole picture.

    Attributes:
        background: the paper, or None for none.
        title: one line; the exported file's title.
        description: where the numbers come from: model, prompt, dtype, error. It travels in the
            exported file and is not painted.
    """

    width: float
    height: float
    background: str | None
    items: tuple[Item, ...]
    title: str = ""
    description: str = ""


def segment(x1: float, y1: float, x2: float, y2: float) -> tuple[Command, ...]:
    """The commands of a straight line."""
    return ("M", x1, y1), ("L", x2, y2)


def walk(items: Figure | Iterable[Item]) -> Iterator[Item]:
    """Every item in painting order, groups just before what they hold."""
    for item in items.items if isinstance(items, Figure) else items:
        yield item
        if isinstance(item, Group):
            yield from walk(item.items)


def groups(items: Figure | Iterable[Item]) -> Iterator[Group]:
    """Every group, outer before inner."""
    return (item for item in walk(items) if isinstance(item, Group))


def texts(items: Figure | Iterable[Item]) -> tuple[str, ...]:
    """The text of every Text, in painting order."""
    return tuple(item.text for item in walk(items) if isinstance(item, Text))


def bounds(item: Item | Iterable[Item]) -> Box | None:
    """The box around what is painted, strokes included; None for an empty group."""
    match item:
        case Rect():
            spare = item.stroke_width / 2 if item.stroke else 0.0
            return _box([item.x, item.x + item.width], [item.y, item.y + item.height], spare)
        case Image():
            return _box([item.x, item.x + item.width], [item.y, item.y + item.height], 0.0)
        case Curve():
            xs, ys = _extremes(item.commands)
            spare = item.stroke_width / 2 if item.stroke else 0.0
            return _box(xs, ys, spare) if xs else None
        case Text():
            return _text_bounds(item)
        case Group():
            inner = _union(item.items)
            if inner is None or item.clip is None:
                return inner
            clip = _box(
                [item.clip.x, item.clip.x + item.clip.width],
                [item.clip.y, item.clip.y + item.clip.height],
                0.0,
            )
            left, top = max(inner.left, clip.left), max(inner.top, clip.top)
            right, bottom = min(inner.right, clip.right), min(inner.bottom, clip.bottom)
            return Box(left, top, right, bottom) if left <= right and top <= bottom else None
        case _:
            return _union(item)


def _union(items: Iterable[Item]) -> Box | None:
    boxes = [box for item in items if (box := bounds(item)) is not None]
    if not boxes:
        return None
    return Box(
        min(box.left for box in boxes),
        min(box.top for box in boxes),
        max(box.right for box in boxes),
        max(box.bottom for box in boxes),
    )


def _box(xs: list[float], ys: list[float], spare: float) -> Box:
    return Box(min(xs) - spare, min(ys) - spare, max(xs) + spare, max(ys) + spare)


def _text_bounds(text: Text) -> Box:
    across = width(text.text, text.size, text.bold)
    start = {"start": 0.0, "middle": -across / 2, "end": -across}[text.anchor]
    turn = np.deg2rad(text.rotation)
    xs, ys = [], []
    for dx in (start, start + across):
        for dy in (-ASCENT * text.size, DESCENT * text.size):
            xs.append(float(text.x + dx * np.cos(turn) - dy * np.sin(turn)))
            ys.append(float(text.y + dx * np.sin(turn) + dy * np.cos(turn)))
    return _box(xs, ys, 0.0)


def _extremes(commands: tuple[Command, ...]) -> tuple[list[float], list[float]]:
    """The x and the y among which a path's smallest and largest are found."""
    xs: list[float] = []
    ys: list[float] = []
    x = y = 0.0
    for command in commands:
        match command:
            case ("M" | "L", end_x, end_y):
                pass
            case ("C", x1, y1, x2, y2, end_x, end_y):
                xs += _turns(x, x1, x2, end_x)
                ys += _turns(y, y1, y2, end_y)
            case _:
                continue
        x, y = float(end_x), float(end_y)
        xs.append(x)
        ys.append(y)
    return xs, ys


def _turns(p0: float, p1: float, p2: float, p3: float) -> list[float]:
    """Values of a cubic Bezier coordinate where it turns round, strictly between its ends."""
    a, b, c = p3 - 3 * p2 + 3 * p1 - p0, 2 * (p2 - 2 * p1 + p0), p1 - p0
    if abs(a) < 1e-12:
        roots = [] if abs(b) < 1e-12 else [-c / b]
    elif (square := b * b - 4 * a * c) < 0:
        roots = []
    else:
        roots = [(-b + sign * square**0.5) / (2 * a) for sign in (1, -1)]
    return [
        (1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t * t * p2 + t**3 * p3
        for t in roots
        if 0 < t < 1
    ]


def dump(figure: Figure) -> str:
    """The figure as plain text, one item a line, children indented: for tests and for diffing."""
    lines = [f"figure {_number(figure.width)} x {_number(figure.height)} {figure.title!r}"]
    _dump(figure.items, 1, lines)
    return "\n".join(lines) + "\n"


def _dump(items: tuple[Item, ...], depth: int, lines: list[str]) -> None:
    for item in items:
        lines.append("  " * depth + _line(item))
        if isinstance(item, Group):
            _dump(item.items, depth + 1, lines)


def _line(item: Item) -> str:
    match item:
        case Rect():
            size = f"{_number(item.width)} x {_number(item.height)}"
            return f"rect {_number(item.x)},{_number(item.y)} {size}{_paint(item)}"
        case Curve():
            steps = " ".join(
                command[0] + ",".join(_number(value) for value in command[1:])
                for command in item.commands
            )
            return f"curve {steps}{_paint(item)}"
        case Text():
            marks = "".join(
                [
                    f" {item.anchor}" if item.anchor != "start" else "",
                    " bold" if item.bold else "",
                    f" turned {_number(item.rotation)}" if item.rotation else "",
                ]
            )
            place = f"{_number(item.x)},{_number(item.y)}"
            return f"text {place} {item.text!r} {_number(item.size)}px {item.color}{marks}"
        case Image():
            high, wide, _ = item.rgba.shape
            size = f"{_number(item.width)} x {_number(item.height)}"
            return f"image {_number(item.x)},{_number(item.y)} {size} of {wide} x {high} pixels"
        case Group():
            clip = "" if item.clip is None else " clipped"
            return f"group {item.id or '-'} {item.title or ''!r}{clip}"


def _paint(item: Rect | Curve) -> str:
    return "".join(
        [
            f" fill {item.fill}" if item.fill else "",
            f" stroke {item.stroke} {_number(item.stroke_width)}" if item.stroke else "",
            " dashed" if item.dash else "",
            f" opacity {_number(item.opacity)}" if item.opacity != 1 else "",
        ]
    )


def _number(value: float) -> str:
    # Adding 0.0 turns −0.0 into 0.0.
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
