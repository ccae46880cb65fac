"""The diagram as a view of the document: draws snapshots, turns clicks into edits."""

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QCursor
from PySide6.QtWidgets import QLabel, QMenu, QVBoxLayout, QWidget

from circuitview.core.names import Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.figures.diagram import Diagram, MeasuredEffects, diagram_figure, path_title
from circuitview.figures.diagram.geometry import AllLayers, Elsewhere, LayerHeading, SourceToken
from circuitview.figures.diagram.picture import Picture, picture_of
from circuitview.figures.diagram.shown import is_deep
from circuitview.figures.figure import Figure, Text
from circuitview.figures.text_width import width as text_width
from circuitview.figures.theme import Theme, theme
from circuitview.gui.diagram.canvas import Canvas
from circuitview.gui.diagram.marks import Mark
from circuitview.gui.document import Document
from circuitview.session.state import Selection, Snapshot, State


class DiagramView(QWidget):
    """The residual-stream diagram, and beside the pointer the readout of what it points at.

    Signals:
        layer_shown: the layer of a deep model that is shown alone, or None for all.
    """

    NAME = "diagram"
    TITLE = "Diagram"

    layer_shown = Signal(object)

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.document = document
        self.canvas = Canvas(self)
        self.canvas.setAccessibleName("Residual-stream diagram")
        self.canvas.setAccessibleDescription(
            "In deep models the arrow keys pick a layer, Enter shows it alone, Escape all again"
        )
        self._readout = QLabel(self.canvas)
        self._readout.setObjectName("readout")
        self._readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._readout.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.canvas)
        self._snapshot = Snapshot()
        self._drawn: tuple[object, ...] = ()
        self._diagram: Diagram | None = None
        self._diagram_of: tuple[object, ...] = ()
        self._room = QSize()
        self._layer: int | None = None  # the one shown alone
        self._focus: int | None = None  # the one that the keyboard is at
        self.canvas.clicked.connect(self._on_clicked)
        self.canvas.opened.connect(self._on_opened)
        self.canvas.asked.connect(self._on_asked)
        self.canvas.pointed.connect(self._on_pointed)
        self.canvas.stepped.connect(self._on_stepped)
        self.canvas.entered.connect(self._on_entered)
        self.canvas.left.connect(self._on_left)
        self.canvas.resized.connect(self._redraw)
        document.effects.changed.connect(self._redraw)

    # --- drawing ---------------------------------------------------------------------------------

    def expect(self, snapshot: Snapshot) -> None:
        """What show_snapshot will be given next; a change of size before draws it already."""
        self._take(snapshot)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw `snapshot`; does nothing where the picture would be the same."""
        self._take(snapshot)
        self._redraw()

    def _take(self, snapshot: Snapshot) -> None:
        before, self._snapshot = self._snapshot, snapshot
        if snapshot.state.model != before.state.model or not self._has_layer(self._layer):
            self._focus = None
            self._set_layer(None)

    @property
    def shown_effects(self) -> MeasuredEffects | None:
        """What colours the picture on the screen, where that is not contributions."""
        return None if self._diagram is None else self._diagram.effects

    @property
    def n_layers(self) -> int:
        """How many layers can be shown alone: none in a model of few."""
        expansion = self._snapshot.results.expansion
        if expansion is None or not is_deep(expansion.recording.weights.config):
            return 0
        return expansion.recording.weights.config.n_layers

    def _has_layer(self, layer: int | None) -> bool:
        return layer is None or 0 <= layer < self.n_layers

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """The picture for export: with the prompt and the balance under it."""
        expansion = snapshot.results.expansion
        if snapshot.refused or expansion is None:
            return _empty_figure(_reason(snapshot), theme, width, height)
        return diagram_figure(
            expansion,
            theme=theme,
            width=width,
            height=height,
            floor=snapshot.state.floor,
            selection=snapshot.state.selection,
            captioned=True,
            layer=self._layer,
            effects=self.document.effects.effects_for(snapshot),
        )

    def _redraw(self) -> None:
        snapshot = self._snapshot
        state, room = snapshot.state, self.canvas.size()
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
            self._layer,
            self.document.effects.effects_for(snapshot),
        )
        if wanted != self._drawn and room.width() > 0 and room.height() > 0:
            self.canvas.show_picture(self._picture(snapshot, room))
            self._readout.setStyleSheet(_readout_style(theme(state.theme)))
            self._drawn, self._room = wanted, room
            self._on_pointed(None)
            self._ring()

    def _picture(self, snapshot: Snapshot, room: QSize) -> Picture:
        """The picture of a snapshot; the layout is kept while only the selection changes."""
        state, expansion = snapshot.state, snapshot.results.expansion
        colours, width, height = theme(state.theme), room.width(), room.height()
        if snapshot.refused or expansion is None:
            self._diagram, self._diagram_of = None, ()
            return picture_of(_empty_figure(_reason(snapshot), colours, width, height))
        effects = self.document.effects.effects_for(snapshot)
        wanted = (expansion, width, height, state.floor, self._layer)
        if self._diagram is not None and wanted == self._diagram_of:
            if self._diagram.theme is not colours:
                self._diagram = self._diagram.in_theme(colours)
            if self._diagram.effects is not effects:
                self._diagram = self._diagram.with_effects(effects)
        else:
            self._diagram = Diagram(
                expansion,
                theme=colours,
                width=width,
                height=height,
                floor=state.floor,
                titled=False,
                layer=self._layer,
                effects=effects,
            )
            self._diagram_of = wanted
        return self._diagram.picture(state.selection)

    # --- one layer alone -------------------------------------------------------------------------

    @property
    def layer(self) -> int | None:
        """The layer that is shown alone; None while all are shown."""
        return self._layer

    def show_layer(self, layer: int | None) -> None:
        """Show one layer of a deep model alone, with what enters and leaves it; None shows all."""
        if layer != self._layer and self._has_layer(layer):
            self._focus = self._layer if layer is None else layer
            self._set_layer(layer)
            if self.canvas.zoom != 1.0:
                self.canvas.fit()
            self._redraw()

    def _set_layer(self, layer: int | None) -> None:
        if layer != self._layer:
            self._layer = layer
            self.layer_shown.emit(layer)

    def _ring(self) -> None:
        alone = self._focus is None or self._layer is not None
        self.canvas.ring(None if alone or self._focus is None else LayerHeading(self._focus))

    def _on_stepped(self, step: int) -> None:
        if not self.n_layers:
            return
        if self._layer is not None:
            self.show_layer(min(max(self._layer + step, 0), self.n_layers - 1))
            return
        at = self._focus
        first = 0 if step > 0 else self.n_layers - 1
        self._focus = first if at is None else min(max(at + step, 0), self.n_layers - 1)
        self._ring()

    def _on_entered(self) -> None:
        if self._focus is not None and self._layer is None:
            self.show_layer(self._focus)

    def _on_left(self) -> None:
        """Escape: back to all layers, then to no selection."""
        if self._layer is not None:
            self.show_layer(None)
        elif self._focus is not None:
            self._focus = None
            self._ring()
        else:
            self._on_clicked(None)

    def _on_asked(self, thing: Any, where: QPoint) -> None:
        layer = _layer_of(thing)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if self._layer is not None:
            menu.addAction("Show all layers").setData(AllLayers())
        if self.n_layers and layer is not None and layer != self._layer:
            menu.addAction(f"Show layer {layer} alone").setData(LayerHeading(layer))
        if menu.isEmpty():
            menu.deleteLater()
            return
        menu.triggered.connect(self._on_chosen)
        menu.popup(where)

    def _on_chosen(self, action: QAction) -> None:
        thing = action.data()
        self.show_layer(thing.layer if isinstance(thing, LayerHeading) else None)

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
            case AllLayers():
                self.show_layer(None)
            case LayerHeading(layer) if self.n_layers and self._layer is None:
                self._focus = layer
                self._ring()
            case None:
                self.document.edit(_nothing_selected)

    def _on_opened(self, thing: Any) -> None:
        match thing:
            case Path() if thing.heads:
                self.document.open_chain(thing.heads)
            case Head():
                self.document.open_chain((thing,))
            case AllLayers():
                self.show_layer(None)
            case _:
                layer = _layer_of(thing)
                if layer is not None and self.n_layers:
                    self.show_layer(layer)

    def _title_of(self, mark: Mark) -> str:
        """The readout of a mark; a path's is put together only when it is pointed at."""
        expansion = self._snapshot.results.expansion
        if isinstance(mark.thing, Path) and expansion is not None:
            title, effects = path_title(expansion, mark.thing), self.shown_effects
            return title if effects is None else f"{title}, {effects.words(mark.thing)}"
        return mark.title

    def _on_pointed(self, mark: Mark | None) -> None:
        title = "" if mark is None else self._title_of(mark)
        self._readout.setVisible(bool(title))
        if title:
            self._readout.setText(title)
            self._readout.adjustSize()
            at = self.canvas.mapFromGlobal(QCursor.pos()) + QPoint(14, 16)
            room = self.canvas.size() - self._readout.size()
            x, y = min(at.x(), room.width() - 4), min(at.y(), room.height() - 4)
            self._readout.move(max(x, 4), max(y, 4))


def _layer_of(thing: Any) -> int | None:
    """The layer that a thing of the picture belongs to."""
    match thing:
        case LayerHeading(layer) | Head(layer, _) | Mlp(layer):
            return layer
        case Source(_, layer) if layer >= 0:
            return layer
        case Elsewhere(_, int(layer)):
            return layer
    return None


def _reason(snapshot: Snapshot) -> str | None:
    return snapshot.failure if snapshot.refused else None


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
