"""OV breakdown: one head, or a chain of heads, by source token."""

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QVBoxLayout

from circuitview.core.names import OVSense
from circuitview.figures.compose import chain_name, ov_figure
from circuitview.figures.figure import Figure, Group, Item, Text
from circuitview.figures.theme import Theme, theme
from circuitview.gui.document import Document
from circuitview.gui.figure_view import FigureView
from circuitview.gui.panels.panel import Panel
from circuitview.gui.segments import Segments
from circuitview.gui.tables.csv_text import csv_text
from circuitview.session import numbers
from circuitview.session.state import Snapshot

if TYPE_CHECKING:
    from circuitview.core.ov import OVBreakdown

_SENSES: tuple[OVSense, ...] = ("token", "everything")
_NAMES = ("token term", "everything carried")
_EXPLAINED = (
    "Its own embedding: the path token > {chain}.",
    "The whole stream: all paths ending in {chain}.",
)
# What the bars need, so that each source has a row: for all of it, and for each row.
_RIM, _ROW_HIGH, _ROW_LOW, _WIDE = 150, 40, 28, 720
_LEAST_WIDTH, _CROP = 384, 9
_OF_ONE = "Weight × value is of one prompt: show A or B."


class OVPanel(Panel):
    """The bars, in a scroll area; a click on a row marks that source everywhere."""

    NAME = "ov"
    TITLE = "OV breakdown"
    AREA = "right"
    ORDER = 1

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._snapshot = Snapshot()
        # What is drawn: the breakdown, the theme, the width.
        self._drawn: tuple[OVBreakdown | None, Theme | None, int] = (None, None, 0)
        self.senses = Segments(_NAMES, ("the source's own embedding alone", "the whole stream"))
        self.senses.chosen.connect(self._choose)
        self.explanation = QLabel()
        self.explanation.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.view = FigureView()
        self.view.clicked.connect(self._pick)
        self.view.stepped.connect(self._step)
        self.scroll_area = QScrollArea()
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setWidget(self.view)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.scroll_area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.total = QLabel()
        self.total.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        layout = self._column = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(6)
        layout.addWidget(self.senses)
        layout.addWidget(self.explanation)
        layout.addWidget(self.scroll_area, 1)
        layout.addWidget(self.total)

    # --- drawing a snapshot ----------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        state, breakdown = snapshot.state, snapshot.results.ov
        compared = breakdown is None and snapshot.results.expansion is not None
        colours = theme(state.theme)
        self.senses.show_choice(_SENSES.index(state.ov_sense), colours)
        self._draw()
        self.view.mark(state.selection.source)
        self._say_of_one(compared)
        if breakdown is None:
            self.explanation.setText(_OF_ONE if compared else "")
            self.explanation.setToolTip(self.explanation.text())
            self.total.setText("")
            return
        chain = " > ".join(map(str, breakdown.heads))
        words = _EXPLAINED[_SENSES.index(breakdown.sense)]
        self.explanation.setText(words.format(chain=chain))
        self.explanation.setToolTip(f"What counts at each source. {self.explanation.text()}")
        name = chain_name(breakdown.heads)
        self.total.setText(f"{name}: {numbers.logits(breakdown.total, signed=True)} logits")

    def _say_of_one(self, compared: bool) -> None:
        """Where two prompts are subtracted, nothing but a word why there are no bars."""
        for widget in (self.senses, self.scroll_area, self.total):
            widget.setHidden(compared)
        side = Qt.AlignmentFlag.AlignHCenter if compared else Qt.AlignmentFlag.AlignLeft
        self.explanation.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def _draw(self) -> None:
        """Make the figure anew where breakdown, theme or width have changed."""
        snapshot, colours = self._snapshot, theme(self._snapshot.state.theme)
        breakdown, wide = snapshot.results.ov, self.scroll_area.viewport().width()
        if self._drawn == (breakdown, colours, wide):
            return
        self._drawn = breakdown, colours, wide
        if breakdown is None:
            self.view.show_items((), colours, (0, wide), wide)
            return
        # Below the least width the figure is drawn smaller; its outer rim is not needed here, nor
        # its heading, whose words are in the widgets around.
        full = max(wide + 2 * _CROP, _LEAST_WIDTH)
        high = _RIM + (_ROW_LOW if full >= _WIDE else _ROW_HIGH) * len(breakdown.weight)
        figure = self.figure(snapshot, colours, full, high)
        items = [item for item in figure.items if not _is_heading(item)]
        self.view.show_items(items, colours, (_CROP, full - _CROP), wide)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # A panel that was hidden may be laid out before it is given a snapshot.
        if self._drawn[0] is not None:
            self._column.activate()
            self._draw()

    # --- what the user does ----------------------------------------------------------------------

    def _choose(self, place: int) -> None:
        sense = _SENSES[place]
        if sense != self.document.state.ov_sense:
            self.document.edit(lambda state: replace(state, ov_sense=sense))

    def _pick(self, source: int) -> None:
        # A second click takes the mark away.
        now = self.document.state.selection.source
        self.document.select_source(None if source == now else source)

    def _step(self, by: int) -> None:
        breakdown, now = self._snapshot.results.ov, self.document.state.selection.source
        if breakdown is None:
            return
        last = len(breakdown.weight) - 1
        source = (0 if by > 0 else last) if now is None else min(max(now + by, 0), last)
        if source != now:
            self.document.select_source(source)
            self._scroll_to_marked()

    def _scroll_to_marked(self) -> None:
        span = self.view.marked_span()
        if span is not None:
            top, bottom = span
            self.scroll_area.ensureVisible(0, (top + bottom) // 2, 0, bottom - top)

    # --- export ----------------------------------------------------------------------------------

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        results = snapshot.results
        if results.expansion is None or results.ov is None or results.model is None:
            words = () if results.expansion is None else _why_empty(theme, width, height)
            return Figure(width, height, theme.background, words, self.TITLE)
        return ov_figure(
            results.expansion,
            results.ov,
            results.model.labels,
            theme=theme,
            width=width,
            height=height,
        )

    def csv(self, snapshot: Snapshot) -> str | None:
        """One row a source; the contributions add up to the total."""
        expansion, breakdown, model = (
            snapshot.results.expansion,
            snapshot.results.ov,
            snapshot.results.model,
        )
        if expansion is None or breakdown is None or model is None:
            return None
        rows = [
            (
                src,
                label,
                float(breakdown.weight[src]),
                float(breakdown.value[src]),
                float(breakdown.contribution[src]),
                " ".join(model.labels[token] for token, _ in breakdown.raises[src]),
                " ".join(model.labels[token] for token, _ in breakdown.lowers[src]),
            )
            for src, label in enumerate(expansion.recording.prompt.labels)
        ]
        header = ("src", "token", "weight", "value", "contribution", "raises", "lowers")
        return csv_text(header, rows)


def _why_empty(theme: Theme, width: float, height: float) -> tuple[Item, ...]:
    return (Text(width / 2, height / 2, _OF_ONE, 14.0, theme.muted, "middle"),)


def _is_heading(item: Item) -> bool:
    return isinstance(item, Group) and item.id == "heading"


PANEL = OVPanel
