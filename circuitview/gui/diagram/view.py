"""The diagram as a view of the document: draws snapshots, turns clicks into edits."""

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.figures.diagram import diagram_figure, path_title
from circuitview.figures.diagram.geometry import SourceToken
from circuitview.figures.figure import Figure, Text
from circuitview.figures.text_width import width as text_width
from circuitview.figures.theme import Theme, theme
from circuitview.gui.diagram.canvas import Canvas
from circuitview.gui.diagram.items import CurveItem, GroupItem
from circuitview.gui.document import Document
from circuitview.session.state import Selection, Snapshot, State


class DiagramView(QWidget):
    """The residual-stream diagram, and beside the pointer the readout of what it points at."""

    NAME = "diagram"
    TITLE = "Diagram"

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.document = document
        self.canvas = Canvas(self)
        self.canvas.setAccessibleName("Residual-stream diagram")
        self._readout = QLabel(self.canvas)
        self._readout.setObjectName("readout")
        self._readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._readout.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.canvas)
        self._snapshot = Snapshot()
        self._drawn: tuple[object, ...] = ()
        self._room = QSize()
        self.canvas.clicked.connect(self._on_clicked)
        self.canvas.opened.connect(self._on_opened)
        self.canvas.pointed.connect(self._on_pointed)
        self.canvas.resized.connect(self._redraw)

    # --- drawing ---------------------------------------------------------------------------------

    def expect(self, snapshot: Snapshot) -> None:
        """What show_snapshot will be given next; a change of size before draws it already."""
        self._snapshot = snapshot

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw `snapshot`; does nothing where the picture would be the same."""
        self._snapshot = snapshot
        self._redraw()

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """The picture for export: with the prompt and the balance under it."""
        return self._figure(snapshot, theme, width, height, captioned=True)

    def _redraw(self) -> None:
        snapshot = self._snapshot
        state, room = snapshot.state, self.canvas.viewport().size()
        if self.canvas.zoom != 1.0 and self._drawn:
            room = self._room  # zoomed in, the picture keeps its size
        wanted = (
            room,
            snapshot.results.expansion,
            snapshot.refused,
            snapshot.failure if snapshot.refused else None,
            state.floor,
            state.selection,
            state.theme,
        )
        if wanted != self._drawn and room.width() > 0 and room.height() > 0:
            figure = self._figure(
                snapshot, theme(state.theme), room.width(), room.height(), captioned=False
            )
            # The first figure and mere looks are smooth at once; new numbers may come in a row.
            # With another theme the whole window is painted anew, which is slow enough as it is.
            rough = bool(self._drawn) and (
                self._drawn[1] is not snapshot.results.expansion or self._drawn[-1] != state.theme
            )
            self.canvas.show_figure(figure, rough)
            self._readout.setStyleSheet(_readout_style(theme(state.theme)))
            self._drawn, self._room = wanted, room
            self._on_pointed(None)

    def _figure(
        self, snapshot: Snapshot, theme: Theme, width: float, height: float, captioned: bool
    ) -> Figure:
        expansion = snapshot.results.expansion
        if snapshot.refused or expansion is None:
            reason = snapshot.failure if snapshot.refused else None
            return _empty_figure(reason, theme, width, height)
        return diagram_figure(
            expansion,
            theme=theme,
            width=width,
            height=height,
            floor=snapshot.state.floor,
            selection=snapshot.state.selection,
            captioned=captioned,
            titled=captioned,
        )

    # --- zoom, for the menu ----------------------------------------------------------------------

    def fit(self) -> None:
        self.canvas.fit()

    def zoom_in(self) -> None:
        self.canvas.zoom_in()

    def zoom_out(self) -> None:
        self.canvas.zoom_out()

    # --- acts ------------------------------------------------------------------------------------

    def _on_clicked(self, thing: Any) -> None:
        match thing:
            case Path():
                self.document.select_path(thing)
            case Head():
                self.document.select_head(thing)
            case SourceToken(position):
                self.document.select_source(position)
            case None:
                self.document.edit(_nothing_selected)

    def _on_opened(self, thing: Any) -> None:
        match thing:
            case Path() if thing.heads:
                self.document.open_chain(thing.heads)
            case Head():
                self.document.open_chain((thing,))

    def _title_of(self, item: CurveItem | GroupItem) -> str:
        """The readout of an item; a path's is put together only when it is pointed at."""
        expansion = self._snapshot.results.expansion
        if isinstance(item.thing, Path) and expansion is not None:
            return path_title(expansion, item.thing)
        return item.title

    def _on_pointed(self, item: CurveItem | GroupItem | None) -> None:
        title = "" if item is None else self._title_of(item)
        self._readout.setVisible(bool(title))
        if title:
            self._readout.setText(title)
            self._readout.adjustSize()
            at = self.canvas.mapFromGlobal(QCursor.pos()) + QPoint(14, 16)
            room = self.canvas.size() - self._readout.size()
            x, y = min(at.x(), room.width() - 4), min(at.y(), room.height() - 4)
            self._readout.move(max(x, 4), max(y, 4))


def _readout_style(colours: Theme) -> str:
    return (
        f"background: {colours.panel}; color: {colours.text}; border: 1px solid {colours.faint};"
        "border-radius: 4px; padding: 4px 8px;"
    )


def _nothing_selected(state: State) -> State:
    return replace(state, selection=Selection())


def _empty_figure(reason: str | None, theme: Theme, width: float, height: float) -> Figure:
    """What stands in the diagram's place: the reason why nothing may be drawn, or nothing yet."""
    size = 15.0
    lines = (
        ["Nothing to draw yet"] if reason is None else ["Not drawn", *_folded(reason, width, size)]
    )
    top = height / 2 - len(lines) * size * 0.8
    items = tuple(
        Text(
            width / 2,
            top + place * size * 1.6,
            line,
            size * (1.3 if reason and place == 0 else 1.0),
            theme.negative_text if reason and place == 0 else theme.muted,
            "middle",
            bold=bool(reason) and place == 0,
        )
        for place, line in enumerate(lines)
    )
    return Figure(width, height, theme.background, items, title=lines[0])


def _folded(text: str, room: float, size: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > 0.8 * room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
