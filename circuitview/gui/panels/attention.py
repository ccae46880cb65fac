"""Attention: the heatmap of one head or of a chain of heads, and which head the panels show."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.names import AttentionMode, Head
from circuitview.figures.compose import attention_figure, chain_name
from circuitview.figures.figure import Figure
from circuitview.figures.heatmap import cell_colours, is_signed, levels
from circuitview.figures.theme import Theme, theme
from circuitview.gui.colour_bar import ColourBar
from circuitview.gui.document import Document
from circuitview.gui.panels.panel import Panel
from circuitview.gui.segments import Segments
from circuitview.session import numbers
from circuitview.session.expansions import B_MINUS_A
from circuitview.session.state import Snapshot

if TYPE_CHECKING:
    from circuitview.core.config import ModelConfig
    from circuitview.gui.plots.heatmap import HeatmapView

_MODES: tuple[AttentionMode, ...] = ("pattern", "scores", "value-weighted")
_HINTS = {
    "pattern": "attention weights: each row, a dest, shares out 1 among its sources",
    "scores": "before softmax",
    "value-weighted": "weight × norm of what is moved, in the stream's unit",
}
_NO_SCORES = (
    "{name} has no scores of its own:\nits pattern is the product of its heads' patterns.\n"
    "Choose pattern or value-weighted, or one head."
)
_NOTHING = "Nothing is computed yet."
_HELP = "A click on a cell makes its row the dest; with shift it marks its column as the source."


class AttentionPanel(Panel):
    """The heatmap with its head chooser, modes, and a line that says what is shown."""

    NAME = "attention"
    TITLE = "Attention"
    AREA = "right"
    ORDER = 0

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        # Made when it is first shown, since pyqtgraph is slow to load.
        self.plot: HeatmapView | None = None
        # What is drawn: the values, the theme, and the colours made of the two.
        self._values: npt.NDArray[np.float64] | None = None
        self._theme: Theme | None = None
        self._colours: npt.NDArray[np.uint8] | None = None
        self._chains: tuple[tuple[Head, ...] | None, ...] = ()
        self._hovered: tuple[int, int] | None = None
        self._snapshot = Snapshot()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(6)
        layout.addLayout(self._head_row())
        self.modes = Segments(_MODES, [_HINTS[mode] for mode in _MODES])
        self.modes.chosen.connect(self._choose_mode)
        layout.addWidget(self.modes)
        self._stack_holder = QWidget()
        self._stack = QStackedLayout(self._stack_holder)
        self.message = QLabel(_NOTHING)
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.message.setWordWrap(True)
        self._stack.addWidget(self.message)
        layout.addWidget(self._stack_holder, 1)
        layout.addLayout(self._readout_row())

    # --- parts -----------------------------------------------------------------------------------

    def _head_row(self) -> QHBoxLayout:
        self.chooser = QComboBox()
        self.chooser.setToolTip("which head, or virtual head, the panels show")
        self.chooser.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.chooser.activated.connect(self._choose)
        self.previous = QToolButton()
        self.previous.setArrowType(Qt.ArrowType.LeftArrow)
        self.next = QToolButton()
        self.next.setArrowType(Qt.ArrowType.RightArrow)
        self.previous.clicked.connect(self._go_back)
        self.next.clicked.connect(self._go_on)
        self._shortcuts = (
            QShortcut(QKeySequence("Ctrl+["), self, self._go_back),
            QShortcut(QKeySequence("Ctrl+]"), self, self._go_on),
        )
        for button, shortcut, words in zip(
            (self.previous, self.next), self._shortcuts, ("previous", "next"), strict=True
        ):
            keys = shortcut.key().toString(QKeySequence.SequenceFormat.NativeText)
            button.setToolTip(f"{words} head ({keys})")
            button.setAccessibleName(f"{words} head")
        self.reset = QToolButton()
        self.reset.setText("Fit")
        self.reset.setToolTip("show the whole heatmap; the wheel zooms, dragging moves")
        self.reset.clicked.connect(self._fit)
        row = QHBoxLayout()
        row.addWidget(self.chooser, 1)
        for widget in (self.previous, self.next, self.reset):
            row.addWidget(widget)
        return row

    def _readout_row(self) -> QHBoxLayout:
        self.readout = QLabel()
        self.readout.setToolTip(_HELP)
        self.readout.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.bar = ColourBar()
        row = QHBoxLayout()
        row.addWidget(self.readout, 1)
        row.addWidget(self.bar)
        return row

    # --- drawing a snapshot ----------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        state, results = snapshot.state, snapshot.results
        self._show_choices(snapshot)
        place = _MODES.index(state.heatmap_mode)
        self.modes.show_choice(place, theme(state.theme))
        if results.expansion is None or results.heatmap is None:
            self._show_message(snapshot)
            return
        self._draw(snapshot, results.heatmap)
        self._tell()

    def _show_message(self, snapshot: Snapshot) -> None:
        chain = snapshot.results.chain
        no_scores = snapshot.results.expansion is not None and len(chain) > 1
        words = _NO_SCORES.format(name=chain_name(chain)) if no_scores else _NOTHING
        # What does not add up is not drawn, and this says why.
        self.message.setText((snapshot.failure or words) if snapshot.refused else words)
        self._stack.setCurrentWidget(self.message)
        self.bar.hide()
        self.readout.setText("")

    def _draw(self, snapshot: Snapshot, values: npt.NDArray[np.float64]) -> None:
        from circuitview.gui.plots.heatmap import HeatmapContent, HeatmapView

        if self.plot is None:
            self.plot = HeatmapView()
            self.plot.hovered.connect(self._hover)
            self.plot.clicked.connect(self._click)
            self._stack.addWidget(self.plot)
        expansion = snapshot.results.expansion
        assert expansion is not None
        state, colours = snapshot.state, theme(snapshot.state.theme)
        if values is not self._values or colours is not self._theme:
            self._values, self._theme = values, colours
            between = expansion.between is not None
            low, high = levels(values, state.heatmap_mode, between)
            self._colours = coloured(values, state.heatmap_mode, colours, high, between)
            self.bar.show_levels(low, high, colours)
        assert self._colours is not None
        self.bar.show()
        self._stack.setCurrentWidget(self.plot)
        content = HeatmapContent(
            values=values,
            rgba=self._colours,
            labels=expansion.recording.prompt.labels,
            dest=expansion.target.dest,
            source=state.selection.source,
            is_weight=state.heatmap_mode == "pattern",
        )
        self.plot.show_content(content, colours)

    def _show_choices(self, snapshot: Snapshot) -> None:
        """Fill the chooser: the strongest head, every head, and the chain in view if it is none."""
        model, chain = snapshot.results.model, snapshot.results.chain
        for widget in (self.chooser, self.previous, self.next):
            widget.setEnabled(model is not None)
        if model is None:
            return
        chains = _choices(model.config, chain)
        automatic = snapshot.state.opened is None and len(chain) == 1
        name = "most changed head" if _is_difference(snapshot) else "strongest head"
        strongest = f"{name}: {chain[0]}" if automatic else name
        if chains != self._chains:
            self._chains = chains
            self.chooser.clear()
            self.chooser.addItems([_choice_name(choice) for choice in chains])
        if self.chooser.itemText(0) != strongest:
            self.chooser.setItemText(0, strongest)
        place = 0 if automatic else chains.index(chain) if chain in chains else 0
        if self.chooser.currentIndex() != place:
            self.chooser.setCurrentIndex(place)

    # --- what the user does ----------------------------------------------------------------------

    def _choose(self, place: int) -> None:
        chain = self._chains[place]
        if chain != self.document.state.opened:
            self.document.open_chain(chain)

    def _go_back(self) -> None:
        self._step(-1)

    def _go_on(self) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        """Open the head before or after the one in view; from a virtual head, its last one's."""
        chain, model = self._snapshot.results.chain, self._snapshot.results.model
        if not chain or model is None:
            return
        n_heads = model.config.n_heads
        place = chain[-1].layer * n_heads + chain[-1].head
        layer, head = divmod((place + by) % (model.config.n_layers * n_heads), n_heads)
        self.document.open_chain((Head(layer, head),))

    def _choose_mode(self, place: int) -> None:
        mode = _MODES[place]
        if mode != self.document.state.heatmap_mode:
            self.document.edit(lambda state: replace(state, heatmap_mode=mode))

    def _fit(self) -> None:
        if self.plot is not None:
            self.plot.reset_range()

    def _click(self, dest: int, src: int, shift: bool) -> None:
        if shift:
            if src != self.document.state.selection.source:
                self.document.select_source(src)
        elif dest != self._snapshot_dest():
            self.document.edit(lambda state: replace(state, dest=dest))

    def _snapshot_dest(self) -> int | None:
        expansion = self._snapshot.results.expansion
        return None if expansion is None else expansion.target.dest

    def _hover(self, cell: tuple[int, int] | None) -> None:
        if cell != self._hovered:
            self._hovered = cell
            self._tell()

    def _tell(self) -> None:
        """Say what is pointed at."""
        results = self._snapshot.results
        if self._hovered is None or results.heatmap is None or results.expansion is None:
            mode = self._snapshot.state.heatmap_mode
            what = _what(mode, len(results.chain))
            if _is_difference(self._snapshot):  # beside a wide bar of colours
                what = f"{mode}, {B_MINUS_A}"
            self.readout.setText(f"{chain_name(results.chain)}: {what}")
            return
        dest, src = self._hovered
        labels = results.expansion.recording.prompt.labels
        if dest >= len(labels):
            return
        value = results.heatmap[dest, src]
        between = _is_difference(self._snapshot)
        signed = is_signed(self._snapshot.state.heatmap_mode, between)
        text = f"{numbers.logits(value, signed)}  dest {dest} {labels[dest]} ← {src} {labels[src]}"
        self.readout.setText(text)

    # --- export ----------------------------------------------------------------------------------

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        results, state = snapshot.results, snapshot.state
        if results.expansion is None or results.heatmap is None:
            return Figure(width, height, theme.background, (), self.TITLE)
        return attention_figure(
            results.expansion,
            results.chain,
            state.heatmap_mode,
            theme=theme,
            width=width,
            height=height,
            source=state.selection.source,
            values=results.heatmap,
        )


def coloured(
    values: npt.NDArray[np.float64],
    mode: AttentionMode,
    theme: Theme,
    limit: float,
    difference: bool = False,
) -> npt.NDArray[np.uint8]:
    """The cells' colours [dest, src, 4]; what lies in the future is transparent."""
    rgba = cell_colours(values, is_signed(mode, difference), limit, theme)
    # Alpha alone: black in the future would darken the edge where a long prompt is averaged.
    rgba[(*np.triu_indices(len(values), 1), 3)] = 0
    return rgba


def _is_difference(snapshot: Snapshot) -> bool:
    """Whether what is shown is one prompt minus another."""
    expansion = snapshot.results.expansion
    return expansion is not None and expansion.between is not None


def _what(mode: AttentionMode, n_heads: int) -> str:
    """What the cells hold."""
    match mode:
        case "pattern":
            return "attention pattern" if n_heads == 1 else "product of its heads' patterns"
        case "scores":
            return "scores before softmax"
    return "pattern × norm of what is moved"


def _choices(config: "ModelConfig", chain: tuple[Head, ...]) -> tuple[tuple[Head, ...] | None, ...]:
    """None for the strongest head, each head alone, and `chain` where it is a virtual head."""
    single = [
        (Head(layer, head),) for layer in range(config.n_layers) for head in range(config.n_heads)
    ]
    return (None, *([chain] if len(chain) > 1 else []), *single)


def _choice_name(chain: tuple[Head, ...] | None) -> str:
    return "" if chain is None else chain_name(chain)


PANEL = AttentionPanel
