"""What one run of the lab has found: its table, and a plot of the same rows beside it.

A run is always labelled with its own model and what it was run on; where that is not what the
window shows, it is painted pale and nothing in it is marked as selected.
"""

from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QLabel,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.ablation.sites import Site
from circuitview.figures.ablation import lab_points, lab_words
from circuitview.figures.effect_words import with_unit
from circuitview.figures.scatter import ScatterPoint, ScatterText
from circuitview.figures.theme import theme
from circuitview.gui.elided_label import FittedLabel
from circuitview.gui.figure_plot import FigurePlot
from circuitview.gui.lab_figures import bare_figure
from circuitview.gui.lab_head import LabHead
from circuitview.gui.lab_match import same_model, same_question, site_of
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_switches import LabSwitches
from circuitview.gui.lab_table import LabTable
from circuitview.gui.lab_words import clean_words, every_prompt, measured, ran
from circuitview.session.lab import Question
from circuitview.session.state import Snapshot

if TYPE_CHECKING:
    from circuitview.core.ablation.table import Row
    from circuitview.gui.plots.scatter import ScatterView

_WHOLE = ("orders", "pairs")  # what has a picture of all rows together
_NOTHING, _NOTHING_CAME = "nothing measured yet", "nothing was measured"
_UPRIGHT_BELOW = 400  # pixels of width; below, the plot stands under the table
_LOW = 300  # pixels of height; below, they stand side by side however narrow
_LEAST_WHOLE = 170  # pixels of height; below, bars and matrices leave the room to the table
_WIDE_PLOT = 420  # pixels; below, the axis of a text's contributions has a short name
_MEAN = "mean contribution (logits)"
_PLOT_EVERY = 0.3  # seconds, while rows arrive
_MANY = 1500  # rows; of more, the plot waits until all have come: it would hold up the window


class LabResults(QWidget):
    """Signals:
    site_chosen: a Site of the run that is shown.
    stopped: the LabRun that is shown is to go on no longer.
    """

    site_chosen = Signal(object)
    stopped = Signal(object)

    def __init__(self, colouring: QAction) -> None:
        """Args: colouring: the switch of the diagram's colours."""
        super().__init__()
        self._snapshot = Snapshot()
        self._drawn_at = 0.0
        self._roomy = True
        self.entry: LabRun | None = None
        self.plot: ScatterView | None = None
        self.of = FittedLabel()
        self.of.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.table = LabTable()
        self.table.site_chosen.connect(self.site_chosen)
        self.plots = QStackedWidget()
        self.plots.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.plots.setMinimumSize(120, 60)
        self.place = QLabel(_NOTHING)
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.place.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.place.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.plots.addWidget(self.place)
        self.whole = FigurePlot()
        self.whole.clicked.connect(self._click_part)
        self.plots.addWidget(self.whole)
        self.splitter = QSplitter()
        self.splitter.addWidget(self.table)
        self.splitter.addWidget(self.plots)
        self.splitter.setChildrenCollapsible(False)
        self.switches = LabSwitches(colouring)
        self.switches.value_chosen.connect(self._on_value)
        self.head = LabHead(self.switches)
        self.head.stop.clicked.connect(self._stop)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(3)
        self._column.addWidget(self.of)
        self._column.addWidget(self.splitter, 1)
        self.take_head()
        self._halve()

    # --- what is shown ---------------------------------------------------------------------------

    def show_entry(self, entry: LabRun | None) -> None:
        """Show another run, or none."""
        self.entry = entry
        self.switches.show_pairs(entry is not None and entry.question.what == "pairs")
        self.table.show_run(entry)
        self.show_snapshot(self._snapshot)

    def advance(self) -> None:
        """The run that is shown has moved on."""
        entry = self.entry
        if entry is None:
            return
        self.table.advance(entry)
        if entry.ended:
            self.table.settle()
            self.table.show_as(theme(self._snapshot.state.theme), stale=self._pale)
        self._tell()
        many = len(entry.rows) > _MANY and entry.question.what not in _WHOLE
        waits = many or monotonic() - self._drawn_at < _PLOT_EVERY
        if entry.ended or not waits:
            self._draw_plot()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Mark what is selected in `snapshot`, where the run is of its model."""
        self._snapshot = snapshot
        colours = theme(snapshot.state.theme)
        self.switches.show_theme(colours)
        self.table.show_as(colours, stale=self._pale)
        self.table.select(self._selected())
        self._tell()
        self._draw_plot()

    def is_of_model(self) -> bool:
        """Whether the run is of the model that is open."""
        return self.entry is not None and same_model(self.entry, self._snapshot)

    def is_current(self) -> bool:
        """Whether the run is of the model, the prompt and the target that are shown."""
        return self.entry is not None and same_question(self.entry, self._snapshot)

    def _selected(self) -> Site | None:
        return site_of(self._snapshot.state.selection) if self.is_of_model() else None

    @property
    def _pale(self) -> bool:
        """Whether what is shown is not the whole answer to what is asked now."""
        return not self.is_current() or (self.entry is not None and _cut_short(self.entry))

    def _tell(self) -> None:
        entry, role = self.entry, QPalette.ColorRole
        other = ""
        if entry is not None and not self.is_of_model():
            other = "of other weights" if entry.outdated else "of another model"
        elif entry is not None and not self.is_current():
            other = "of another question"
        self.head.show_run(entry, other)
        failed = entry is not None and entry.state == "failed"
        self.of.setForegroundRole(role.BrightText if failed else role.PlaceholderText)
        if entry is None:
            self.of.show_wordings("choose what to take away, and Run")
        elif failed:
            self.of.show_wordings(entry.failure)
        else:
            self._tell_of(entry)

    def _tell_of(self, entry: LabRun) -> None:
        """What is measured and its clean value come first: nothing can be read without them."""
        of, clean = ran(entry), clean_words(entry)
        facts = f"{measured(entry)}, {clean}" if clean else measured(entry)
        hint = f"{facts}\n{every_prompt(entry)}\n{entry.model_name}"
        full = f"{facts} · {of} · {entry.model_name}"
        short = clean or facts
        self.of.show_wordings(full, f"{facts} · {of}", facts, short, elastic=of, hint=hint)

    def _stop(self) -> None:
        if self.entry is not None:
            self.stopped.emit(self.entry)

    def take_head(self) -> None:
        """Say over the table what it is of; where height is short another layout has `head`."""
        if self.head.parentWidget() is not self:
            self._column.insertWidget(0, self.head)
            self.head.show()

    # --- the plot --------------------------------------------------------------------------------

    def _draw_plot(self) -> None:
        entry, points = self.entry, self.points()
        whole = entry is not None and bool(entry.rows) and entry.question.what in _WHOLE
        whole = whole and self._roomy
        # A table that has nothing to set beside it takes all the room: its bars are the plot.
        self.plots.setVisible(whole or bool(points) or entry is None or not entry.rows)
        if entry is not None and whole:
            self._draw_whole(entry)
        elif points:
            self._draw_points(points)
        else:
            ended = entry is not None and entry.ended
            self.place.setText(_NOTHING_CAME if ended else _NOTHING)
            self.plots.setCurrentWidget(self.place)
        self._drawn_at = monotonic()

    def _draw_whole(self, entry: LabRun) -> None:
        """The bars of orders, the matrix of pairs."""
        colours, marked = theme(self._snapshot.state.theme), self._selected()
        make = partial(bare_figure, entry, colours, marked=marked, pairs=self.switches.value)
        self.whole.show_figure(make, faded=self._pale)
        self.plots.setCurrentWidget(self.whole)

    def _on_value(self, _value: str) -> None:
        self.switches.show_theme(theme(self._snapshot.state.theme))
        self._draw_plot()

    def _draw_points(self, points: tuple[ScatterPoint, ...]) -> None:
        assert self.entry is not None
        asked = self.entry.question
        words = self._words(asked)
        if self.plot is None:  # made with the first points: pyqtgraph is slow to load
            from circuitview.gui.plots.scatter import ScatterView

            self.plot = ScatterView(words)
            self.plot.clicked.connect(self._click_point)
            self.plots.addWidget(self.plot)
        self.plots.setCurrentWidget(self.plot)
        self.plot.set_faded(self._pale)
        self.plot.show_words(words)
        self.plot.show_points(points, theme(self._snapshot.state.theme))

    def _words(self, asked: Question) -> ScatterText:
        # What is held stands over the table; here there may be little room.
        words = lab_words(asked.metric, asked.frozen, of_text=bool(asked.text))
        beside = self.splitter.orientation() == Qt.Orientation.Horizontal
        across = self.width() / (2 if beside else 1)
        if asked.text and across < _WIDE_PLOT:
            words = replace(words, x=_MEAN)
        return replace(words, y=with_unit("effect", asked.metric))

    def points(self) -> tuple[ScatterPoint, ...]:
        """Contribution against effect, one point a site that has both."""
        entry = self.entry
        if entry is None or entry.question.what in _WHOLE:
            return ()
        rows = cast("tuple[Row, ...]", tuple(entry.rows.values()))
        return lab_points(rows, entry.question.metric, self._selected())

    def _click_point(self, label: str) -> None:
        found = (site for site in (self.entry.rows if self.entry else ()) if str(site) == label)
        site = next(found, None)
        if site is not None:
            self._choose(site)

    def _click_part(self, data: Any) -> None:
        self._choose(data if isinstance(data, Site) else data.site)

    def _choose(self, site: Site) -> None:
        self.table.select(site)
        self.site_chosen.emit(site)

    # --- room ------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        roomy = self.height() >= _LEAST_WHOLE
        if roomy != self._roomy:
            self._roomy = roomy
            self._draw_plot()
        elif self.plot is not None and self.entry is not None:
            self.plot.show_words(self._words(self.entry.question))
        upright = self.width() < max(_UPRIGHT_BELOW, self.height()) and self.height() >= _LOW
        wanted = Qt.Orientation.Vertical if upright else Qt.Orientation.Horizontal
        if self.splitter.orientation() != wanted:
            self.splitter.setOrientation(wanted)
            self._halve()

    def _halve(self) -> None:
        """Give table and plot the same room."""
        self.splitter.setSizes([1000, 1000])  # Qt takes them as shares


def _cut_short(entry: LabRun) -> bool:
    """Whether a run has ended before all was measured."""
    return entry.state in ("cancelled", "failed")
