"""Ablation: a laboratory. What is taken away, what that does, beside what the books say."""

from pathlib import Path as FilePath

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.ablation.sites import Site
from circuitview.figures.ablation import lab_words
from circuitview.figures.figure import Figure
from circuitview.figures.scatter import scatter_figure
from circuitview.figures.theme import Theme, theme
from circuitview.gui.document import Document
from circuitview.gui.lab_figures import run_figure
from circuitview.gui.lab_form import LabForm
from circuitview.gui.lab_match import same_model, same_question, site_of
from circuitview.gui.lab_menu import LabMenu
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_results import LabResults
from circuitview.gui.lab_runs import LabRuns
from circuitview.gui.lab_words import state_words
from circuitview.gui.panels.panel import Panel
from circuitview.gui.segments import Segments
from circuitview.gui.tables.csv_text import csv_text
from circuitview.session.lab import Question
from circuitview.session.run_text import as_csv
from circuitview.session.state import Snapshot

_ASK, _RUNS, _RESULT = range(3)
_PAGES = ("Ask", "Runs", "Result")
_PAGE_HINTS = ("what is to be measured", "what runs, waits and has ended", "table and plot")
_WIDE = 740  # pixels; from here on the results stand beside the form
_TALL = 560  # pixels; from here on they stand under it
_LOW = 220  # pixels; below, one of the pages has all the room
_ROOM = 14  # lines: nine rows of the table, its header, what is over it, and the rims
_LINE = 5  # pixels that a row has beside its text
_ANY = 16_777_215  # pixels: Qt's own limit
_NAMES = ("contribution", "effect", "value", "stderr", "n")  # as in the command line's CSV
_ORDER_NAMES = (*_NAMES[:-1], "marginal", "marginal_stderr", "n")
_LEAST = QSize(260, 112)
_GROWS, _FIXED = QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed
_SIDE = 0.32, 236, 320  # share of the width for the form, and its least and most pixels
_TOP_SHARE = 0.4


class AblationPanel(Panel):
    """Form and list of runs on one side, table and plot of one run on the other."""

    NAME = "ablation"
    TITLE = "Ablation"
    AREA = "bottom"
    ORDER = 0

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.queue = document.lab
        self._snapshot = document.snapshot
        self._page = _ASK
        self._were_both = False
        self.form, self.runs = LabForm(), LabRuns(self.queue)
        self.results = LabResults(document.effects.action)
        self.pages = Segments(_PAGES, _PAGE_HINTS)
        self.pages.chosen.connect(self._turn_to)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.form)
        self.stack.addWidget(self.runs)
        self.why = QLabel()  # what the form asks can't be run
        self.why.setTextFormat(Qt.TextFormat.PlainText)
        self.why.setWordWrap(True)
        self.why.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._top = QHBoxLayout()
        self._top.setSpacing(5)
        self._top.addWidget(self.pages)
        self._top.addStretch()
        self._top.addWidget(self.form.run_button)
        self.menu = LabMenu(document, self)
        self._top.addWidget(self.menu.button)
        self.side = QWidget()
        column = QVBoxLayout(self.side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(self._top)
        column.addWidget(self.stack, 1)
        column.addWidget(self.why)
        self._layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._layout.setContentsMargins(6, 6, 6, 6)
        self._layout.setSpacing(8)
        self._layout.addWidget(self.side)
        self._layout.addWidget(self.results, 1)
        self.form.asked.connect(self._run)
        self.form.judged.connect(self._tell_why)
        self.runs.picked.connect(self._show_run)
        self.queue.changed.connect(self._on_changed)
        self.queue.listed.connect(self._count)
        self.results.stopped.connect(self.queue.cancel)
        self.results.site_chosen.connect(self._select)
        self._show_run(self.runs.chosen)
        self._count()
        self._arrange()

    # --- drawing ---------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.form.show_snapshot(snapshot)
        self.pages.show_choice(self._page, theme(snapshot.state.theme))
        self.results.show_snapshot(snapshot)

    def _tell_why(self, reason: str, wrong: bool) -> None:
        """Why Run can't be pressed, under the fields: a tool tip alone is hard to find."""
        known = self._snapshot.results.model is not None
        role = QPalette.ColorRole
        self.why.setForegroundRole(role.BrightText if wrong else role.PlaceholderText)
        self.why.setText(reason if known else "")
        self._show_why()

    def _show_why(self) -> None:
        self.why.setVisible(bool(self.why.text()) and self._page == _ASK)

    def _on_changed(self, entry: LabRun) -> None:
        self._count()
        if entry is self.results.entry:
            self.results.advance()

    def _show_run(self, entry: LabRun | None) -> None:
        self.results.show_entry(entry)
        self.document.effects.look_at(entry)

    @property
    def shown_run(self) -> LabRun | None:
        """The run whose results are shown."""
        return self.results.entry

    def show_run(self, entry: LabRun) -> None:
        """Show the results of a run that is listed."""
        self._ask_room()
        self.runs.choose(entry)
        self._turn_to_results()

    def _ask_room(self) -> None:
        self.room_asked.emit(_ROOM * (self.fontMetrics().lineSpacing() + _LINE))

    def _turn_to_results(self) -> None:
        self._turn_to(_RUNS if self._both_shown else _RESULT)

    def _count(self) -> None:
        n = len(self.queue.runs)
        self.pages.button(_RUNS).setText(f"Runs {n}" if n else "Runs")
        self.pages.fit()

    # --- running ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Run what the form asks."""
        self.form.ask()

    def _run(self, question: Question, model_name: str) -> None:
        self.document.settle("run or file")
        self._ask_room()  # while nothing runs yet: it takes the window a moment
        entry = self.queue.submit(question, model_name)
        if not self._working_before(entry):
            self.runs.choose(entry)
        self._turn_to_results()

    def _working_before(self, entry: LabRun) -> bool:
        """Whether another run goes on, whose results are being watched."""
        current = self.queue.current
        return current is not None and current is not entry and self.runs.chosen is current

    def _select(self, site: Site) -> None:
        """Select a site's head or path everywhere, where the run is of the model that is open."""
        if not self.results.is_of_model():
            return
        expansion = self._snapshot.results.expansion
        if len(site.heads) == 1 and site == Site(heads=site.heads):
            self.document.select_head(site.heads[0])
        elif len(site.paths) == 1 and site == Site(paths=site.paths):
            path = site.paths[0]
            if expansion is not None and path in expansion.place:
                self.document.select_path(path)

    # --- room ------------------------------------------------------------------------------------

    @property
    def _beside(self) -> bool:
        return self.width() >= _WIDE and self.height() >= _LOW

    @property
    def _both_shown(self) -> bool:
        return self._beside or self.height() >= _TALL

    def minimumSizeHint(self) -> QSize:
        # Not what the present arrangement needs: a smaller panel is arranged in another way.
        return _LEAST

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _turn_to(self, page: int) -> None:
        self._page = page
        self._arrange()

    def _arrange(self) -> None:
        """Form and results side by side, one over the other, or one at a time."""
        beside, both = self._beside, self._both_shown
        if both and self._page == _RESULT:
            self._page = _RUNS
        elif self._were_both and not both and self._page == _RUNS and self.results.entry:
            self._page = _RESULT  # one page is left, and what was looked at is the run
        self._were_both = both
        self.pages.button(_RESULT).setVisible(not both)
        self.pages.show_choice(self._page, theme(self._snapshot.state.theme))
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
        if self._page != _RESULT:
            self.stack.setCurrentIndex(self._page)
        self.stack.setVisible(self._page != _RESULT)
        self._show_why()
        self.results.setVisible(both or self._page == _RESULT)
        self._place_head(both)
        share, least, most = _SIDE
        side = min(max(int(share * self.width()), least), most)
        self.side.setMaximumWidth(side if beside else _ANY)
        self.side.setMinimumWidth(side if beside else 0)
        over = both and not beside
        self.side.setMaximumHeight(int(_TOP_SHARE * self.height()) if over else _ANY)
        alone = self._page == _RESULT
        self.side.setSizePolicy(_GROWS, _FIXED if alone else _GROWS)
        self._layout.setStretch(0, 0 if alone or both else 1)

    def _place_head(self, both: bool) -> None:
        """What the results are of: over them, or, where they have the page, among the buttons."""
        head = self.results.head
        if both:
            self.results.take_head()
        elif head.parentWidget() is not self.side:
            self._top.insertWidget(1, head, 1)
        head.stand_under(not both)
        self.results.switches.show_compact(not both)
        head.setVisible(both or self._page == _RESULT)

    # --- export ----------------------------------------------------------------------------------

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """The run that is shown, with its rows in the order of the table."""
        entry = self.results.entry
        if entry is None:
            return scatter_figure((), lab_words("logit", False, "Ablation"), theme, (width, height))
        marked = site_of(snapshot.state.selection) if same_model(entry, snapshot) else None
        return run_figure(
            entry,
            self.results.table.rows.rows,
            theme,
            width,
            height,
            marked=marked,
            former=not same_question(entry, snapshot),
            pairs=self.results.switches.value,
            state=state_words(entry),
        )

    def subject(self, snapshot: Snapshot) -> str:
        """What was run, which need not be what is open now."""
        entry = self.results.entry
        if entry is None:
            return snapshot.alone.prompt
        asked = entry.question
        return FilePath(asked.text).stem if asked.text else " ".join(asked.prompts[:1])

    def csv(self, snapshot: Snapshot) -> str | None:  # noqa: ARG002 - Panel's signature
        """The rows of the run that is shown, in the order of the table; of one that has not ended
        those that have come."""
        entry = self.results.entry
        if entry is None or not entry.rows:
            return None
        shown = self.results.table.rows.rows
        if entry.run is not None:
            return as_csv(entry.run, shown)
        names = _ORDER_NAMES if entry.question.what == "orders" else _NAMES
        rows = [(str(row.site), *(getattr(row, name) for name in names)) for row in shown]
        return csv_text(("what", *names), rows)


PANEL = AblationPanel
