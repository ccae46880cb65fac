"""Files that figures go into: what they may be called, how large, and writing them.

What can't be written is refused before a run begins, where that can be known.
"""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from circuitview.cli.window import has_display
from circuitview.core.names import CircuitviewError

if TYPE_CHECKING:  # numpy is loaded when something is drawn
    from circuitview.figures.figure import Figure
    from circuitview.session.lab import Run

FORMATS = ("svg", "pdf", "png")
ThemeName = Literal["light", "dark"]
_LISTS = ("table", "json", "csv")  # what --format means to `circuitview paths`
_SIDES = 240, 8192  # pixels: below, no figure is readable; above, no PNG at --scale 2 is possible
_SCALES = 0.1, 8.0  # dots a pixel
_SIZE = "1280x720"

FigureOption = Annotated[
    FilePath | None,
    typer.Option(
        "--figure",
        metavar="FILE",
        help="Draw the run into FILE.svg, FILE.pdf or FILE.png too: contribution against effect, "
        "or bars of the effects; bars for --what orders, a matrix for pairs.",
    ),
]
SizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="WxH",
        help=f"Of the figure, in pixels of 1/96 inch. Default: {_SIZE}.",
    ),
]
ScaleOption = Annotated[
    float | None,
    typer.Option(
        "--scale",
        metavar="X",
        help="For PNG: dots a pixel, 0.1 to 8; 2 for dense screens. Default: 1.",
    ),
]
ThemeOption = Annotated[
    ThemeName | None,
    typer.Option("--theme", help="Colours of the figure. Default: light.", show_default=False),
]
TransparentOption = Annotated[
    bool, typer.Option("--transparent", help="Leave the figure's background out.")
]


@dataclass(frozen=True, slots=True)
class FigureFile:
    """Where the figure of a run goes, and how it looks.

    Attributes:
        path: ends in .svg, .pdf or .png.
        width, height: pixels of 1/96 inch.
        scale: of a PNG, dots a pixel.
    """

    path: FilePath
    width: int
    height: int
    scale: float
    theme: ThemeName
    transparent: bool

    @classmethod
    def asked(
        cls,
        path: FilePath | None,
        size: str | None,
        scale: float | None,
        theme: ThemeName | None,
        transparent: bool,
    ) -> "FigureFile | None":
        """The file that the options name; None where they name none.

        Raises:
            CircuitviewError: where it can't be drawn or written, as far as is known before.
        """
        if path is None:
            alien = {"size": size, "scale": scale, "theme": theme, "transparent": transparent}
            for name, value in alien.items():
                if value:
                    raise CircuitviewError(f"--{name} goes with --figure FILE")
            return None
        if path == FilePath():  # what an empty text becomes
            raise CircuitviewError("--figure names no file: give one, like run.svg")
        if path.suffix.lower().removeprefix(".") not in FORMATS:
            raise CircuitviewError(f"--figure {path}: end it in .svg, .pdf or .png")
        width, height = parse_size(size or _SIZE)
        scale = 1.0 if scale is None else scale
        require_scale(scale)
        if path.suffix.lower() == ".png":
            from circuitview.figures.raster import require_raster

            require_raster(width, height, scale)
        require_place(path)
        return cls(path, width, height, scale, theme or "light", transparent)

    def require_beside(self, folder: FilePath) -> None:
        """Pass only where `folder`, which is not there yet, is another place.

        Raises:
            CircuitviewError: where it is the same, however it is spelt.
        """
        if os.path.realpath(folder) == os.path.realpath(self.path):
            raise CircuitviewError(
                f"--save and --figure both name {self.path}; give the folder another name"
            )

    def write(self, run: "Run") -> None:
        """Put the figure of `run` there, whole or not at all.

        Raises:
            CircuitviewError: where it can't be written.
        """
        from circuitview.figures.run_figure import run_figure
        from circuitview.figures.theme import theme

        figure = run_figure(run, theme(self.theme), float(self.width), float(self.height))
        write(figure, self.path, self.scale, self.transparent)


def require_place(path: FilePath) -> None:
    """Pass only where a file can be put at `path`.

    Raises:
        CircuitviewError: where that is a folder, or is in none that can be written to.
    """
    try:
        place = FilePath(os.path.realpath(path))
        if place.is_dir():
            raise CircuitviewError(f"{path} is a folder; name a file in it")
        if not place.parent.is_dir():
            raise CircuitviewError(f"can't write {path}: there is no such folder; make it first")
    except ValueError:  # a NUL in the name
        raise CircuitviewError(f"{str(path)!r} is no name of a file; name another") from None
    except OSError as error:  # too long a name
        reason = error.strerror or str(error)
        raise CircuitviewError(f"can't write {path}: {reason}; choose another name") from None
    if not os.access(place.parent, os.W_OK):
        raise CircuitviewError(
            f"can't write {path}: the folder is not yours to write to; choose another folder"
        )


def named_for(out: FilePath, form: str | None) -> FilePath:
    """`out` with an ending that names its format; `form` gives one where there is none.

    Raises:
        CircuitviewError: where neither tells the format, or they contradict each other.
    """
    ending = out.suffix.lower().removeprefix(".")
    if form is None:
        if ending not in FORMATS:
            raise CircuitviewError(
                f"{out}: can't tell the format; end it in .svg, .pdf or .png, or give --format"
            )
        return out
    if form in _LISTS:
        raise CircuitviewError(
            f"--format {form} lists numbers, as `circuitview paths` does; a figure is svg, pdf "
            "or png"
        )
    if form not in FORMATS:
        raise CircuitviewError(f"--format {form!r} is none of svg, pdf and png")
    if not ending and out.name:
        return out.with_name(f"{out.name.rstrip('.')}.{form}")
    if ending != form:
        raise CircuitviewError(f"{out} does not end in .{form}, as --format {form} asks")
    return out


def parse_size(text: str) -> tuple[int, int]:
    """Width and height of "1280x720" in pixels.

    Raises:
        CircuitviewError: where `text` is no such size, or one that can't be drawn.
    """
    match = re.fullmatch(r"(\d{1,6})[x×](\d{1,6})", text.strip().lower(), re.ASCII)
    least, most = _SIDES
    sides = [int(group) for group in match.groups()] if match else []
    if len(sides) != 2 or not all(least <= side <= most for side in sides):
        raise CircuitviewError(
            f"size {text!r} is not WIDTHxHEIGHT with sides from {least} to {most}, like 1280x720"
        )
    return sides[0], sides[1]


def require_scale(scale: float) -> None:
    """Pass only a number of dots a pixel that can be drawn.

    Raises:
        CircuitviewError: with those that can.
    """
    least, most = _SCALES
    if not least <= scale <= most:  # nor what is no number
        raise CircuitviewError(f"--scale {scale:g}: choose {least:g} to {most:g} dots a pixel")


def write(figure: "Figure", out: FilePath, scale: float, transparent: bool) -> None:
    """Put `figure` at `out`; SVG without Qt, the others with Qt off screen.

    Raises:
        CircuitviewError: where it can't be written.
    """
    if out.suffix.lower() == ".svg":
        from circuitview.figures.svg import write_svg

        write_svg(replace(figure, background=None) if transparent else figure, out)
        return
    if not has_display():
        # Whatever platform is set, there is no screen for it: Qt would abort.
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from circuitview.gui.paint import write_figure

    write_figure(figure, out, scale, transparent)
