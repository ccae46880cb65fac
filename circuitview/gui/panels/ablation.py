"""Ablation: zero each head on this prompt; what it contributes beside what taking it away does."""

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.names import Head
from circuitview.figures.ablation import ablation_figure
from circuitview.figures.compose import provenance, run_line
from circuitview.figures.figure import Figure
from circuitview.figures.scatter import ScatterPoint, ScatterText, scatter_figure
from circuitview.figures.theme import Theme, theme
from circuitview.gui.ablation_run import AblationRun, Measured
from circuitview.gui.document import Document
from circuitview.gui.jobs import JobProgress
from circuitview.gui.panels.panel import Panel
from circuitview.gui.segments import Segments
from circuitview.gui.tables.ablation_model import (
    ABLATED,
    CONTRIBUTION,
    EFFECT,
    HEAD,
    AblationModel,
)
from circuitview.gui.tables.amount_delegate import AmountDelegate
from circuitview.gui.tables.csv_text import csv_text
from circuitview.gui.tables.table_view import TableView
from circuitview.session import numbers
from circuitview.session.state import Snapshot

if TYPE_CHECKING:
    from circuitview.gui.plots.scatter import ScatterView

NOTE = (
    "contribution is bookkeeping, effect is an experiment: "
    "they differ where later heads and norms react"
)
_FREE, _FROZEN = range(2)
_PATTERNS = ("patterns free", "frozen")
_PATTERN_HINTS = (
    "everything after the head is computed anew: later heads and norms react",
    "later patterns and all norm scales stay: the effect is exactly minus the contribution",
)
_WORDS = ScatterText(
    title="Zeroing each head",
    note=NOTE,
    x="contribution (logits)",
    y="effect",
    diagonal="effect = −contribution",
)
_SELECT_ROW = (
    QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
)
_LOW = 300  # pixels: below, the status has one line
_UPRIGHT_BELOW = 480  # pixels: below, the plot stands under the table instead of beside it


class AblationPanel(Panel):
    """Controls and table on one side, the scatter plot on the other."""

    NAME = "ablation"
    TITLE = "Ablation"
    AREA = "bottom"
    ORDER = 0

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._snapshot = document.snapshot
        self.experiment = AblationRun(document, self)
        self.experiment.advanced.connect(self._on_advanced)
        self.experiment.ended.connect(self._on_ended)
        # Not left to show_snapshot, which a hidden panel is spared.
        document.changed.connect(self._drop_former_run)
        self._words = NOTE
        self._wanted: Head | None = None  # what the view's selection was last set to
        self.plot: ScatterView | None = None
        self.model = AblationModel(self)
        self.view = TableView(self.model)
        self._set_up_view()
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(self._controls())
        column.addWidget(self.view, 1)
        self.place = QLabel(_WORDS.empty)
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.splitter = QSplitter()
        self.splitter.addWidget(left)
        self.splitter.addWidget(self.place)
        self.splitter.setChildrenCollapsible(False)
        self.place.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.place.setMinimumWidth(1)  # or its words would keep the window from being made small
        self._halve()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(4)
        layout.addWidget(self.splitter, 1)
        layout.addWidget(self._status_line())

    def _controls(self) -> QHBoxLayout:
        self.patterns = Segments(_PATTERNS, _PATTERN_HINTS)
        self.patterns.chosen.connect(self._choose_patterns)
        self._frozen = False
        self.run_button = QPushButton("Zero each head")
        self.run_button.setToolTip("one forward pass a head, in the background")
        self.run_button.clicked.connect(self.run)
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.clicked.connect(self.cancel)
        self.cancel_button.hide()
        row = QHBoxLayout()
        row.addWidget(self.patterns, 1)
        row.addWidget(self.run_button)
        row.addWidget(self.cancel_button)
        return row

    def _status_line(self) -> QWidget:
        self.status = QLabel()
        self.status.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.bar = QProgressBar()
        self.bar.setFormat("%v of %m heads")
        holder = QWidget()
        self._line = QStackedLayout(holder)
        self._line.addWidget(self.status)
        self._line.addWidget(self.bar)
        holder.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        return holder

    def _set_up_view(self) -> None:
        self.delegate = AmountDelegate(self.view)
        for column in (CONTRIBUTION, EFFECT):
            self.view.setItemDelegateForColumn(column, self.delegate)
        self.view.setRootIsDecorated(False)
        header = self.view.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.sortIndicatorChanged.connect(self._sort)
        metrics = self.fontMetrics()
        header.setMinimumSectionSize(24)
        for column in (CONTRIBUTION, EFFECT):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        header.resizeSection(HEAD, metrics.horizontalAdvance("head ▾") + 16)
        header.resizeSection(ABLATED, metrics.horizontalAdvance("ablated ▾") + 16)
        self.view.selectionModel().selectionChanged.connect(self._on_selected)
        self.view.opened.connect(self._open)
        self.view.cleared.connect(self._clear_selection)

    # --- drawing a snapshot ----------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        colours = theme(snapshot.state.theme)
        self.patterns.show_choice(_FROZEN if self._frozen else _FREE, colours)
        self.delegate.theme = colours
        self.model.show_as(colours, stale=not self._is_current())
        self._show_selection(snapshot.state.selection.head)
        self._draw_points()
        self._tell()

    def _drop_former_run(self, snapshot: Snapshot, _before: Snapshot) -> None:
        measured = self.experiment.measured
        if measured is not None and not measured.is_of(snapshot.results.expansion):
            self.experiment.cancel()  # nobody waits for it any more

    def _is_current(self) -> bool:
        measured = self.experiment.measured
        return measured is not None and measured.is_of(self._snapshot.results.expansion)

    def _show_selection(self, head: Head | None) -> None:
        if head == self._wanted:
            return
        self._wanted = head
        self._select_wanted()

    def _select_wanted(self) -> None:
        chosen, index = self.view.selectionModel(), self.model.index_of(self._wanted)
        if not index.isValid():
            chosen.clear()
        elif self._sole_head() != self._wanted:
            chosen.setCurrentIndex(index, _SELECT_ROW)
            self.view.scrollTo(index)

    def _sole_head(self) -> Head | None:
        rows = self.view.selectionModel().selectedRows()
        return self.model.head_at(rows[0]) if len(rows) == 1 else None

    def _draw_points(self) -> None:
        """Put the rows into the plot, which is made with the first of them: pyqtgraph is slow."""
        if self.plot is None:
            if not self.model.rows:
                return
            from circuitview.gui.plots.scatter import ScatterView

            self.plot = ScatterView(_WORDS)
            self.plot.clicked.connect(self._click_point)
            self.splitter.replaceWidget(1, self.plot)
            self.place.deleteLater()
        self.plot.set_faded(not self._is_current())
        colours = theme(self._snapshot.state.theme)
        self.plot.show_points(self._points(), colours)

    def _points(self) -> tuple[ScatterPoint, ...]:
        head = self._snapshot.state.selection.head
        rows = sorted(self.model.rows, key=_head_of)
        return tuple(
            ScatterPoint(str(row.head), row.contribution, row.effect, row.head == head)
            for row in rows
        )

    def _tell(self) -> None:
        """Say what the rows are about; never let them pass for what they are not."""
        running, expansion = self.experiment.running, self._snapshot.results.expansion
        self.run_button.setEnabled(expansion is not None)
        self.run_button.setVisible(not running)
        self.cancel_button.setVisible(running)
        self.patterns.setEnabled(not running)
        self._line.setCurrentWidget(self.bar if running else self.status)
        measured = self.experiment.measured
        former = measured is not None and not self._is_current()
        self._words = NOTE if measured is None else f"{self._described(measured)} · {NOTE}"
        self._fit_status()
        role = QPalette.ColorRole.Link if former else QPalette.ColorRole.WindowText
        self.status.setForegroundRole(role)

    def _described(self, measured: Measured) -> str:
        of = measured.expansion
        clean = numbers.logits(of.logit)
        text = f"{measured.held.capitalize()} · {of.target} {clean}"
        if not measured.complete:
            text += f", {len(self.model.rows)} heads so far"
        if not self._is_current():
            return f"Of a former question: run again. {text} at dest {of.target.dest}"
        return text

    # --- running ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Measure every head for what is asked now."""
        expansion = self._snapshot.results.expansion
        if expansion is None or self.experiment.running:
            return
        self.model.clear()
        self.bar.setRange(0, 0)
        self.experiment.start(expansion, self._frozen)
        self.show_snapshot(self._snapshot)

    def cancel(self) -> None:
        """Stop after the head that is being measured; what is measured stays."""
        self.experiment.cancel()

    def _on_advanced(self, progress: JobProgress) -> None:
        if progress.total:
            self.bar.setRange(0, progress.total)
            self.bar.setValue(progress.done)
        self.model.add(progress.partials)
        self.delegate.scale = self.model.scale()
        self.view.viewport().update()
        self._draw_points()

    def _on_ended(self) -> None:
        self.model.sort_rows()
        self._select_wanted()
        self.show_snapshot(self._snapshot)

    # --- what the user does ----------------------------------------------------------------------

    def _choose_patterns(self, place: int) -> None:
        self._frozen = place == _FROZEN
        self.patterns.show_choice(place, theme(self._snapshot.state.theme))

    def _sort(self, column: int, order: Qt.SortOrder) -> None:
        if column >= 0:
            self.model.order_by(column, order == Qt.SortOrder.DescendingOrder)
            self._select_wanted()

    def _on_selected(self) -> None:
        head = self._sole_head()
        if head is not None and head != self.document.state.selection.head:
            self._wanted = head
            self.document.select_head(head)

    def _click_point(self, label: str) -> None:
        head = Head.parse(label)
        if head != self.document.state.selection.head:
            self.document.select_head(head)

    def _open(self) -> None:
        head = self.model.head_at(self.view.currentIndex())
        if head is not None:
            self.document.open_chain((head,))

    def _clear_selection(self) -> None:
        self.view.selectionModel().clear()
        if self.document.state.selection.anything:
            self.document.select_head(None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        upright = self.width() < max(_UPRIGHT_BELOW, self.height())
        wanted = Qt.Orientation.Vertical if upright else Qt.Orientation.Horizontal
        self._fit_status()
        if self.splitter.orientation() != wanted:
            self.splitter.setOrientation(wanted)
            self._halve()

    def _fit_status(self) -> None:
        """Cut the status line to one line where the panel is low; else it may take several."""
        low = self.height() < _LOW
        self.status.setWordWrap(not low)
        room = self.status.width()
        elided = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, room)
        text = elided if low else self._words
        if text != self.status.text():
            self.status.setText(text)
            self.status.setToolTip(self._words)

    def _halve(self) -> None:
        """Give table and plot the same room."""
        self.splitter.setSizes([1000, 1000])  # Qt takes them as shares

    # --- export ----------------------------------------------------------------------------------

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """Table and scatter plot of what is measured, with the run that it is of."""
        measured = self.experiment.measured
        if measured is None:
            return scatter_figure((), _WORDS, theme, (width, height))
        of = measured.expansion
        former = "" if measured.is_of(snapshot.results.expansion) else " (of a former question)"
        words = ScatterText(
            f"Zeroing each head, {measured.held}{former}",
            f"{run_line(of)}; {NOTE}",
            _WORDS.x,
            "effect = ablated − clean (logits)",
            _WORDS.diagonal,
        )
        return ablation_figure(
            self.model.rows,
            of.logit,
            words,
            theme=theme,
            width=width,
            height=height,
            marked=snapshot.state.selection.head,
            description=f"{provenance(of)}\nzeroed heads: {measured.held}",
        )

    def csv(self, snapshot: Snapshot) -> str | None:  # noqa: ARG002 - Panel's signature
        """One row a head: ablated = clean + effect."""
        measured = self.experiment.measured
        if measured is None:
            return None
        patterns = "frozen" if measured.frozen else "free"
        rows = [
            (
                str(row.head),
                row.contribution,
                row.effect,
                row.value,
                row.value - row.effect,
                patterns,
            )
            for row in self.model.rows
        ]
        header = ("head", "contribution", "effect", "ablated", "clean", "patterns")
        return csv_text(header, rows)


def _head_of(row: Any) -> Head:
    head: Head = row.head
    return head


PANEL = AblationPanel
