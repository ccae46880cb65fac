"""Freezing: what is linear once patterns are held. Linearity, a token swapped, one row compared."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.names import CircuitviewError
from circuitview.core.path import Path
from circuitview.figures.figure import Figure
from circuitview.figures.freezing.bars import lines
from circuitview.figures.freezing.finding import FORMER, finding_figure, height_for
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.theme import Theme, theme
from circuitview.gui.document import Document
from circuitview.gui.field_marks import mark_wrong
from circuitview.gui.figure_view import FigureView
from circuitview.gui.freezing_form import FreezingForm, subject_of
from circuitview.gui.jobs import Failure, Job, JobProgress
from circuitview.gui.panels.panel import Panel
from circuitview.gui.segments import Segments
from circuitview.gui.tables.freezing_export import freezing_csv
from circuitview.session.freezing import EXPERIMENTS, Experiment, FreezingQuestion, run_freezing
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import Snapshot, State

if TYPE_CHECKING:
    from collections.abc import Generator

    from circuitview.core.progress import Progress
    from circuitview.session.freezing import Finding

_ORDER: tuple[Experiment, ...] = tuple(EXPERIMENTS)
_HINTS = (
    "frozen, the logits are linear in the token embeddings; free they are not",
    "another token at one position: frozen, foretold by its paths, and free",
    "the same row of a head under two prompts: scores, weights, what changed",
)
_ADVICE = "type one token, or choose one from the list"
_WIDE = 560  # pixels; from here on the figure stands beside the fields
_SIDE = 0.32, 250, 340  # share of the width for the fields, and its least and most pixels
_LEAST = 320  # pixels across a figure; in less room it is drawn smaller
_RIM = 12  # pixels that the view adds above and below
_ROOM = 17  # lines: for most of a figure
_SMALLEST = 240, 120  # pixels
_HINT_LINES = 6
_NO_TOKEN = "new token"  # what a refusal of what was typed as one begins with
_ANY = 16_777_215  # pixels: Qt's own limit


@dataclass(frozen=True, eq=False, slots=True)
class Answered:
    """A question and what it has found."""

    question: FreezingQuestion
    found: "Finding"


class FreezingPanel(Panel):
    """Fields on one side, the figure of what was found on the other."""

    NAME = "freezing"
    TITLE = "Freezing"
    AREA = "bottom"
    ORDER = 1
    TABBED = True

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._snapshot = document.snapshot
        self._experiment: Experiment = "linearity"
        self.answers: dict[Experiment, Answered] = {}
        self._failures: dict[Experiment, str] = {}
        self._job: Job | None = None
        self._looking: Job | None = None  # whether what was typed is a token
        self._asked: FreezingQuestion | None = None
        self._drawn: tuple[object, ...] = ()
        self.experiments = Segments(tuple(EXPERIMENTS.values()), _HINTS)
        self.experiments.chosen.connect(self._choose)
        self.form = FreezingForm()
        self.form.entered.connect(self.run)
        self.form.token_kept.connect(self._look_up)
        self.form.token_edited.connect(self._forget_token)
        self.form.prompt_edited.connect(self._compare)
        self.run_button, self.cancel_button = QPushButton("Run"), QPushButton("Cancel")
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self.cancel_button.hide()
        self.told = QLabel()
        self.told.setTextFormat(Qt.TextFormat.PlainText)
        self.told.setWordWrap(True)
        self.told.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.view = FigureView()
        self.view.clicked.connect(self._pick)
        self.scroll_area = QScrollArea()
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setWidget(self.view)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._lay_out()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        buttons.addWidget(self.run_button)
        buttons.addWidget(self.cancel_button)
        buttons.addStretch(1)
        self.side = QWidget()
        column = QVBoxLayout(self.side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.experiments)
        column.addWidget(self.form)
        column.addWidget(self.told)
        column.addLayout(buttons)
        column.addStretch(1)
        self._layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._layout.setContentsMargins(6, 6, 6, 6)
        self._layout.setSpacing(8)
        self._layout.addWidget(self.side)
        self._layout.addWidget(self.scroll_area, 1)
        self._arrange()

    # --- drawing ---------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._drop_other_models()
        self.form.show_snapshot(snapshot)
        colours = theme(snapshot.state.theme)
        self.experiments.show_choice(_ORDER.index(self._experiment), colours)
        self._tell()
        self._draw()

    def _drop_other_models(self) -> None:
        """What another model has said is not shown beside this one."""
        state = self._snapshot.state
        self.answers = {
            name: answer
            for name, answer in self.answers.items()
            if answer.question.about.opens_the_same(state)
        }
        if self._asked is not None and not self._asked.about.opens_the_same(state):
            self.cancel()
            self._failures.clear()

    def _former(self, snapshot: Snapshot) -> bool:
        """Whether what is shown is of another prompt, target or precision than `snapshot`; or of
        another head or prompt B than the fields."""
        answer = self.answers.get(self._experiment)
        if answer is None:
            return False
        about = subject_of(snapshot, self._experiment)
        if _subject(answer.question.about) != _subject(about):
            return True
        asked = self.form.question() if self._experiment == "row" else answer.question
        return (asked.head, asked.other) != (answer.question.head, answer.question.other)

    def _tell(self) -> None:
        running = self._job is not None
        self.run_button.setVisible(not running)
        self.run_button.setEnabled(self._snapshot.results.expansion is not None)
        self.cancel_button.setVisible(running)
        failure = self._failures.get(self._experiment, "")
        former = self._former(self._snapshot)
        text = failure or (f"{FORMER}run again" if former else "")
        self.told.setText("running" if running else text)
        self.told.setToolTip(text)
        self.told.setVisible(bool(self.told.text()))
        noted = bool(text) and not running
        self.told.setForegroundRole(
            QPalette.ColorRole.Link if noted else QPalette.ColorRole.WindowText
        )

    def _draw(self) -> None:
        """Make the figure anew where what it shows, the theme or the room has changed."""
        colours = theme(self._snapshot.state.theme)
        size = self.scroll_area.maximumViewportSize()
        answer = self.answers.get(self._experiment)
        drawn = (answer, self._experiment, colours, size, self._former(self._snapshot))
        if drawn == self._drawn:
            return
        self._drawn = drawn
        if size.width() < 2:
            return
        bar = self.scroll_area.verticalScrollBar().sizeHint().width()
        wide, high = max(size.width(), _LEAST), float(size.height() - _RIM)
        if answer is not None:
            needed = height_for(answer.question, answer.found, wide - bar)
            if needed > high:
                wide, high = max(wide - bar, _LEAST), needed
        figure = self._figure(self._snapshot, colours, wide, high, pale=True)
        self.view.show_items(figure.items, colours, (0, wide), min(wide, size.width()))

    def minimumSizeHint(self) -> QSize:
        # What the fields have beside the figure must not keep the window from being made small.
        return QSize(*_SMALLEST)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
        if self._drawn:  # a panel that was hidden may be laid out before it is given a snapshot
            self._layout.activate()
            self._draw()

    def _arrange(self) -> None:
        """The figure beside the fields, or under them."""
        beside = self.width() >= _WIDE
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
        share, least, most = _SIDE
        side = min(max(int(share * self.width()), least), most)
        self.side.setMaximumWidth(side if beside else _ANY)
        self.side.setMinimumWidth(side if beside else 0)
        self.side.setMaximumHeight(_ANY if beside else 150)

    # --- running ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Run what the fields ask."""
        if self._job is not None or self._snapshot.results.expansion is None:
            return
        question = self.form.question()
        self.room_asked.emit(_ROOM * self.fontMetrics().lineSpacing())
        self._failures.pop(self._experiment, None)
        self._asked = question
        job = self.document.jobs.start(partial(_steps, self.document.pipeline, question))
        job.progressed.connect(self._on_progress)
        job.finished.connect(self._on_finished)
        job.failed.connect(self._on_failed)
        job.cancelled.connect(self._on_cancelled)
        self._job = job
        self._tell()

    def _look_up(self, text: str) -> None:
        """Say at once what is no single token of the model, and not only when it is run."""
        about = subject_of(self._snapshot, "swap")
        job = self.document.jobs.start(partial(_token, self.document.pipeline, about, text), True)
        job.failed.connect(self._on_no_token)
        self._looking = job

    def _on_no_token(self, failure: Failure) -> None:
        if failure.expected:
            self._refuse_token(failure.text)
            self._tell()

    def _refuse_token(self, text: str) -> None:
        self._failures["swap"] = f"{text}; {_ADVICE}"
        mark_wrong(self.form.token, True)

    def _forget_token(self) -> None:
        """Another token is typed: what was said of the former one does not hold of it."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        mark_wrong(self.form.token, False)
        if self._failures.pop("swap", None) is not None:
            self._tell()

    def cancel(self) -> None:
        """Stop after the forward pass that is being made; what was found before stays."""
        if self._job is not None:
            self._job.cancel()

    def _on_progress(self, progress: JobProgress) -> None:
        if progress.total > 1:
            self.told.setText(f"running: {progress.done} of {progress.total}")

    def _on_finished(self, found: Any) -> None:
        assert self._asked is not None
        self.answers[self._asked.experiment] = Answered(self._asked, found)
        self._end()

    def _on_failed(self, failure: Failure) -> None:
        assert self._asked is not None
        self._failures[self._asked.experiment] = failure.text
        if (
            failure.expected
            and failure.text.startswith(_NO_TOKEN)
            and self._asked == self.form.question()
        ):
            self._refuse_token(failure.text)
        if not failure.expected:
            self.document.report(failure.text, failure.details)
        self._end()

    def _on_cancelled(self, _nothing: object) -> None:
        self._end()

    def _end(self) -> None:
        self._job = self._asked = None
        self._drop_other_models()
        self._tell()
        if self.isVisible():
            self._draw()

    def _compare(self) -> None:
        """Say whether the answer is still that of the fields."""
        self._tell()
        self._draw()

    def _choose(self, place: int) -> None:
        self._experiment = _ORDER[place]
        self.form.show_experiment(self._experiment)
        self.show_snapshot(self._snapshot)

    def _pick(self, picked: Path | int) -> None:
        """Select what a row of the figure stands for, as far as it is in what is shown."""
        expansion = self._snapshot.results.expansion
        if expansion is None or self._former(self._snapshot):
            return
        if isinstance(picked, int):
            self.document.select_source(picked)
        elif picked in expansion.place:
            self.document.select_path(picked)

    # --- export ----------------------------------------------------------------------------------

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """What the experiment in view has found."""
        return self._figure(snapshot, theme, width, height)

    def _figure(
        self, snapshot: Snapshot, theme: Theme, width: float, height: float, *, pale: bool = False
    ) -> Figure:
        """The same, on the screen `pale` where it is of another question."""
        answer = self.answers.get(self._experiment)
        if answer is None:
            place = _ORDER.index(self._experiment)
            head, top = heading(EXPERIMENTS[self._experiment], "", theme, width)
            room = width - 2 * MARGIN
            words = lines(MARGIN, top + 2, _HINTS[place], room, theme.muted, _HINT_LINES)
            return Figure(width, height, theme.background, (head, *words), self.TITLE)
        former = self._former(snapshot)
        return finding_figure(
            answer.question,
            answer.found,
            theme=theme,
            width=width,
            height=height,
            former=former,
            pale=former and pale,
        )

    def subject(self, snapshot: Snapshot) -> str:
        """The prompt that the answer is of; of a difference that is A."""
        answer = self.answers.get(self._experiment)
        asked = subject_of(snapshot, self._experiment) if answer is None else answer.question.about
        return asked.prompt

    def csv(self, snapshot: Snapshot) -> str | None:  # noqa: ARG002 - Panel's signature
        """The numbers of the experiment in view."""
        answer = self.answers.get(self._experiment)
        return None if answer is None else freezing_csv(answer.question, answer.found)


def _subject(state: State) -> tuple[object, ...]:
    """What of a state an answer is about."""
    return (state.prompt, state.prepend_bos, state.dest, state.target, state.versus, state.dtype)


def _steps(pipeline: Pipeline, question: FreezingQuestion) -> "Generator[Progress, None, Finding]":
    model = pipeline.model_of(question.about)
    if model is None:
        raise CircuitviewError("another model was opened meanwhile: run again")
    return (yield from run_freezing(model, question))


def _token(pipeline: Pipeline, about: State, text: str) -> int:
    model = pipeline.model_of(about)
    if model is None:
        raise CircuitviewError("another model was opened meanwhile")
    return model.tokenizer.token_id(text, "new token")


PANEL = FreezingPanel
