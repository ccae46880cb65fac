"""A Figure as an SVG file: real text, one named group per path, the same bytes every time.

Only what common viewers agree on is used: presentation attributes, text-anchor, clip paths, images
as PNG. The text names the font but does not carry it; where it is missing, another sans-serif steps
in.
"""

import base64
import math
import re
from collections.abc import Iterable
from pathlib import Path as FilePath

from circuitview.core.files import write_bytes_whole
from circuitview.figures.drawable import drawable, valid_xml
from circuitview.figures.figure import Curve, Figure, Group, Image, Item, Rect, Text
from circuitview.figures.raster import crisp, png

FAMILIES = "'Circuitview Sans', Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
FEATURES = "'tnum','cv05','calt' 0"  # what makes Inter look like the bundled font
# xml.sax.saxutils would do, but it loads an HTTP client, which the window's start would wait for.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
HALO_SHARE = 0.28  # width of a text's rim, of its size


def write_svg(figure: Figure, path: FilePath) -> None:
    """Put `figure` at `path`, whole or not at all.

    Raises:
        CircuitviewError: where the folder can't be written to.
    """
    write_bytes_whole(path, svg(figure).encode())


def svg(figure: Figure) -> str:
    """The SVG document of `figure`."""
    writer = _Writer()
    writer.items(figure.items, 1)
    size = f"{_number(figure.width)} {_number(figure.height)}"
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{_number(figure.width)}" height="{_number(figure.height)}" '
        f'viewBox="0 0 {size}" role="img" font-family="{FAMILIES}" '
        f'style="font-feature-settings:{FEATURES}">'
    )
    head = ['<?xml version="1.0" encoding="UTF-8"?>', root]
    if figure.title:
        head.append(f"  <title>{_escape(valid_xml(figure.title))}</title>")
    if figure.description:
        head.append(f"  <desc>{_escape(valid_xml(figure.description))}</desc>")
    if writer.clips:
        head += ["  <defs>", *writer.clips, "  </defs>"]
    if figure.background:
        paper = Rect(0, 0, figure.width, figure.height, fill=figure.background)
        head.append("  " + _rect(paper))
    return "\n".join([*head, *writer.lines, "</svg>", ""])


class _Writer:
    """Collects the lines of the body, and what has to be unique in the document."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.clips: list[str] = []
        self._ids: set[str] = set()

    def items(self, items: Iterable[Item], depth: int) -> None:
        for item in items:
            match item:
                case Group():
                    self._group(item, depth)
                case Rect():
                    self.lines.append("  " * depth + _rect(item))
                case Curve():
                    self.lines.append("  " * depth + _curve(item))
                case Text():
                    self.lines += ["  " * depth + line for line in _text(item)]
                case Image():
                    self.lines.append("  " * depth + _image(item))
                case _:
                    raise TypeError(f"a figure can't hold a {type(item).__name__}")

    def _group(self, group: Group, depth: int) -> None:
        marks = ""
        if group.id is not None:
            marks += f' id="{self._unique(group.id)}"'
        if group.clip is not None:
            clip = self._unique(f"clip-{len(self.clips) + 1}")
            self.clips.append(f'    <clipPath id="{clip}">{_shape(group.clip)}/></clipPath>')
            marks += f' clip-path="url(#{clip})"'
        self.lines.append("  " * depth + f"<g{marks}>")
        if group.title:
            title = _escape(valid_xml(group.title))
            self.lines.append("  " * (depth + 1) + f"<title>{title}</title>")
        self.items(group.items, depth + 1)
        self.lines.append("  " * depth + "</g>")

    def _unique(self, wanted: str) -> str:
        """An id like `wanted` that is a valid XML name and not yet in the document."""
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", wanted).strip("-.")
        if not re.match(r"[A-Za-z_]", name):
            name = f"id-{name}" if name else "id"
        unique, count = name, 1
        while unique in self._ids:
            count += 1
            unique = f"{name}-{count}"
        self._ids.add(unique)
        return unique


def _number(value: float) -> str:
    """A coordinate, to a hundredth of a pixel and without idle zeros."""
    if not math.isfinite(value):
        raise ValueError(f"a coordinate is {value}")
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _painted(item: Rect | Curve) -> str:
    marks = f' fill="{item.fill or "none"}"'
    if item.stroke:
        marks += f' stroke="{item.stroke}"'
        if item.stroke_width != 1:
            marks += f' stroke-width="{_number(item.stroke_width)}"'
        if item.dash:
            marks += f' stroke-dasharray="{" ".join(_number(length) for length in item.dash)}"'
    if item.opacity != 1:
        # Not `opacity`, which viewers apply to fill and stroke together and painters one by one.
        if item.fill:
            marks += f' fill-opacity="{_number(item.opacity)}"'
        if item.stroke:
            marks += f' stroke-opacity="{_number(item.opacity)}"'
    return marks


def _shape(rect: Rect) -> str:
    marks = (
        f'<rect x="{_number(rect.x)}" y="{_number(rect.y)}" '
        f'width="{_number(rect.width)}" height="{_number(rect.height)}"'
    )
    return marks + (f' rx="{_number(rect.radius)}"' if rect.radius else "")


def _rect(rect: Rect) -> str:
    return f"{_shape(rect)}{_painted(rect)}/>"


def _curve(curve: Curve) -> str:
    steps = " ".join(
        command[0] + " ".join(_number(value) for value in command[1:]) for command in curve.commands
    )
    cap = "" if curve.cap == "butt" else f' stroke-linecap="{curve.cap}" stroke-linejoin="round"'
    return f'<path d="{steps}"{_painted(curve)}{cap}/>'


def _text(text: Text) -> list[str]:
    shown = drawable(text.text)
    marks = f'x="{_number(text.x)}" y="{_number(text.y)}" font-size="{_number(text.size)}"'
    if text.bold:
        marks += ' font-weight="600"'
    if text.anchor != "start":
        marks += f' text-anchor="{text.anchor}"'
    if text.rotation:
        about = f"{_number(text.x)} {_number(text.y)}"
        marks += f' transform="rotate({_number(text.rotation)} {about})"'
    if shown != shown.strip() or "  " in shown:
        # The attribute is for older viewers, the style for newer ones.
        marks += ' xml:space="preserve" style="white-space:pre"'
    if text.opacity != 1:
        marks += f' opacity="{_number(text.opacity)}"'
    lines = []
    if text.halo is not None:
        # A copy underneath: paint-order would spare it, but half of the viewers don't know that.
        lines.append(
            f'<text {marks} fill="{text.halo}" stroke="{text.halo}" '
            f'stroke-width="{_number(HALO_SHARE * text.size)}" stroke-linejoin="round" '
            f'aria-hidden="true">{_escape(shown)}</text>'
        )
    lines.append(f'<text {marks} fill="{text.color}">{_escape(shown)}</text>')
    return lines


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _image(image: Image) -> str:
    content = base64.b64encode(png(crisp(image))).decode()
    sharp = "" if image.smooth else ' style="image-rendering:pixelated"'
    link = f'"data:image/png;base64,{content}"'  # base64 needs no escaping
    return (
        f'<image x="{_number(image.x)}" y="{_number(image.y)}" '
        f'width="{_number(image.width)}" height="{_number(image.height)}" '
        f'preserveAspectRatio="none"{sharp} xlink:href={link}/>'
    )
