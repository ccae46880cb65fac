"""What is exported and how: one value, turned into a figure, a file or clipboard content."""

import re
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Protocol

from PySide6.QtCore import QMimeData, QSize
from PySide6.QtGui import QGuiApplication

from circuitview.core.files import write_bytes_whole
from circuitview.core.names import CircuitviewError
from circuitview.figures.figure import Figure
from circuitview.figures.svg import svg
from circuitview.figures.theme import Theme, theme
from circuitview.gui.paint import image, write_figure
from circuitview.session.settings import ExportChoices
from circuitview.session.state import Snapshot

SIZES = {"slide": (1280, 720), "full-hd": (1920, 1080)}


class Exportable(Protocol):
    """A panel or the diagram: whatever gives its picture as a Figure."""

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str: ...

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure: ...

    def size(self) -> QSize: ...


@dataclass(frozen=True, slots=True)
class ExportJob:
    """One picture of one snapshot, under the choices of the dialog."""

    what: Exportable
    snapshot: Snapshot
    choices: ExportChoices

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in picture pixels."""
        if self.choices.size in SIZES:
            return SIZES[self.choices.size]
        if self.choices.size == "custom":
            return self.choices.width, self.choices.height
        shown = self.what.size()
        return max(shown.width(), 200), max(shown.height(), 150)

    @property
    def colours(self) -> Theme:
        chosen = self.choices.theme
        return theme(self.snapshot.state.theme if chosen == "window" else chosen)

    def figure(self) -> Figure:
        """The picture, without its paper where that is to be transparent."""
        drawn = self.what.figure(self.snapshot, self.colours, *self.size)
        return replace(drawn, background=None) if self.choices.transparent else drawn

    def csv(self) -> str | None:
        """The numbers, where the thing has a table."""
        made = getattr(self.what, "csv", None)
        text = None if made is None else made(self.snapshot)
        return text if text is None or isinstance(text, str) else str(text)

    def write(self, path: FilePath) -> None:
        """Put it at `path`, whole or not at all.

        Raises:
            CircuitviewError: where it can't be drawn or written.
        """
        if self.choices.format == "csv":
            write_bytes_whole(path, self._needed_csv().encode())
        else:
            write_figure(self.figure(), path, self.choices.scale)

    def copy(self) -> None:
        """Put it on the clipboard: a raster that every program takes, and the drawing as SVG.

        Raises:
            CircuitviewError: where it can't be drawn, or has no table.
        """
        board = QGuiApplication.clipboard()
        if self.choices.format == "csv":
            board.setText(self._needed_csv())
            return
        figure, content = self.figure(), QMimeData()
        content.setImageData(image(figure, self.choices.scale))
        content.setData("image/svg+xml", svg(figure).encode())
        board.setMimeData(content)

    def _needed_csv(self) -> str:
        text = self.csv()
        if text is None:
            raise CircuitviewError(f"{self.what.TITLE} has no table; choose SVG, PDF or PNG")
        return text

    def file_name(self) -> str:
        """A name made of the prompt and the thing: "i-like-green-tea-diagram.svg"."""
        of = getattr(self.what, "subject", None)
        title = self.snapshot.state.title if of is None else str(of(self.snapshot))
        words = re.findall(r"[^\W_]+", title.lower())[:5]
        start = "-".join([*words, self.what.NAME])[:60]
        return f"{start}.{self.choices.format}"


def let_go_of_clipboard() -> None:
    """Leave on the clipboard only what outlives Python.

    A QMimeData made in Python ends the process with a crash when Qt deletes it after Python has
    gone; an image or text handed over as such does not.
    """
    board = QGuiApplication.clipboard()
    if board.ownsClipboard():
        content = board.mimeData()
        if content.hasImage():
            board.setImage(board.image())
        elif content.hasText():
            board.setText(board.text())
