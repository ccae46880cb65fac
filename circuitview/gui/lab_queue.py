"""The runs of the ablation lab: one after the other in the worker, each with a model of its own.

A run keeps the model that was open when it was asked for: another model in the window neither stops
nor changes it, and nothing has to be opened again for it. What it finds stays labelled with its own
model and prompt. What fails or is cancelled is one entry of the list; the others go on.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal

from circuitview.core.ablation.sites import Site
from circuitview.core.progress import Progress
from circuitview.gui.jobs import Failure, Job, JobProgress, JobRunner
from circuitview.session.lab import Question, Run, run_question
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import State

if TYPE_CHECKING:  # torch is loaded in the worker
    from circuitview.core.ablation.table import OrderRow, Row
    from circuitview.core.model import Model

RunState = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass(eq=False, slots=True)
class LabRun:
    """One entry of the queue; it changes until it has ended.

    Attributes:
        question: what is measured.
        model_name: short name of its model.
        state: where it stands.
        done, total: units of work; total is 0 while that is not known.
        seconds_left: how much longer at the rate measured so far; None while nothing is.
        rows: what is known of each site, in the order in which it came.
        fresh: those that the last report brought.
        run: all that was found, once it is done.
        failure: why it failed, in one line; `details` for a report.
        opened: whether it comes from a file.
        outdated: whether the weights of its model are not there any more, or others by now.
        model: the open model that it will be measured on, until it has ended; None where it is
            opened for the run.
    """

    question: Question
    model_name: str
    state: RunState = "waiting"
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    rows: "dict[Site, Row | OrderRow]" = field(default_factory=dict)
    fresh: "tuple[Row | OrderRow, ...]" = ()
    run: Run | None = None
    failure: str = ""
    details: str = ""
    opened: bool = False
    outdated: bool = False
    model: "Model | None" = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.state not in ("waiting", "running")


class LabQueue(QObject):
    """All runs since the window was opened, oldest first.

    Signals:
        listed: a run has come or gone.
        changed: a LabRun has moved on: its state, its progress or its rows.
    """

    listed = Signal()
    changed = Signal(object)

    def __init__(self, jobs: JobRunner, pipeline: Pipeline, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._models = _Models(pipeline)
        self._job: Job | None = None
        self._current: LabRun | None = None
        self._pace = _Pace()
        self.runs: list[LabRun] = []

    @property
    def current(self) -> LabRun | None:
        """The run that is in the worker."""
        return self._current

    @property
    def waiting(self) -> list[LabRun]:
        return [run for run in self.runs if run.state == "waiting"]

    def submit(self, question: Question, model_name: str) -> LabRun:
        """Line up a run; it begins when those before it have ended."""
        entry = LabRun(question, model_name, model=self._models.open_now(question))
        self.runs.append(entry)
        self.listed.emit()
        self._begin_next()
        return entry

    def add_opened(self, run: Run, outdated: bool = False) -> LabRun:
        """List a run that was read from a file; see LabRun for `outdated`."""
        rows = {row.site: row for row in run.table.rows}
        entry = LabRun(
            run.question,
            run.model_name,
            "done",
            rows=rows,
            run=run,
            opened=True,
            outdated=outdated,
        )
        self.runs.append(entry)
        self.listed.emit()
        return entry

    def cancel(self, entry: LabRun) -> None:
        """Stop a run after the forward pass that it is in; what it has measured stays."""
        if entry is self._current and self._job is not None:
            self._job.cancel()
        elif entry.state == "waiting":
            entry.state, entry.model = "cancelled", None
            self.changed.emit(entry)

    def remove(self, entry: LabRun) -> None:
        """Take a run off the list; one that goes on is stopped first."""
        self.cancel(entry)
        if entry in self.runs:
            self.runs.remove(entry)
            self.listed.emit()

    def clear_ended(self) -> None:
        """Take all that have ended off the list."""
        self.runs = [run for run in self.runs if not run.ended]
        self.listed.emit()

    # --- in the worker, one after the other ------------------------------------------------------

    def _begin_next(self) -> None:
        if self._job is not None:
            return
        entry = next(iter(self.waiting), None)
        if entry is None:
            self._models.forget()
            return
        entry.state = "running"
        self._current, self._pace = entry, _Pace()
        job = self._jobs.start(partial(_steps, self._models, entry.model, entry.question))
        job.progressed.connect(self._on_progress)
        job.finished.connect(self._on_finished)
        job.failed.connect(self._on_failed)
        job.cancelled.connect(self._on_cancelled)
        self._job = job
        self.changed.emit(entry)

    def _on_progress(self, progress: JobProgress) -> None:
        entry = self._current
        assert entry is not None
        entry.done, entry.total = progress.done, progress.total
        entry.seconds_left = self._pace.seconds_left(progress.done, progress.total)
        # What is no tuple are words on what is being done.
        found = [rows for rows in progress.partials if isinstance(rows, tuple)]
        entry.fresh = tuple(row for rows in found for row in rows)
        entry.rows.update((row.site, row) for row in entry.fresh)
        self.changed.emit(entry)

    def _on_finished(self, run: Run) -> None:
        assert self._current is not None
        self._current.run = run
        self._current.model_name = run.model_name
        # The last rows that came are those of the table; ten thousand are not to be gone through
        # again while the window waits.
        self._current.fresh = ()
        if len(self._current.rows) < len(run.table.rows):
            self._current.fresh = run.table.rows
            self._current.rows = {row.site: row for row in run.table.rows}
        self._end("done")

    def _on_failed(self, failure: Failure) -> None:
        assert self._current is not None
        self._current.failure, self._current.details = failure.text, failure.details
        self._end("failed")

    def _on_cancelled(self, _nothing: object) -> None:
        self._end("cancelled")

    def _end(self, state: RunState) -> None:
        entry, self._current, self._job = self._current, None, None
        assert entry is not None
        entry.state, entry.seconds_left, entry.model = state, None, None
        self._begin_next()
        self.changed.emit(entry)


class _Pace:
    """How fast a run goes, from its first measured unit on."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._total = 0
        self._first: tuple[float, int] | None = None

    def seconds_left(self, done: int, total: int) -> float | None:
        """How much longer [s]; None before a second report has come."""
        now = self._clock()
        if total != self._total or self._first is None:  # another part of the work has begun
            self._total, self._first = total, (now, done)
            return None
        began, before = self._first
        if done <= before:
            return None
        return (now - began) / (done - before) * (total - done)


class _Models:
    """The models that runs are of. `steps` is for the worker; `forget` for when no run is there."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._kept: tuple[State, Model] | None = None

    def open_now(self, question: Question) -> "Model | None":
        """The window's model, where it is that of the question."""
        return self._pipeline.model_of(_state_of(question))

    def steps(self, question: Question) -> "Generator[Progress, None, Model]":
        """The window's model where it is that of the question, else one that is opened for it.

        Raises:
            CircuitviewError: where it can't be opened, or does not fit into what memory is free.
        """
        model, state = self.open_now(question), _state_of(question)
        if model is not None:
            return model
        if self._kept is not None and self._kept[0] == state:
            return self._kept[1]
        self._kept = None
        yield Progress(0, 0)
        from circuitview.core.checkpoint import open_model
        from circuitview.core.memory import memory_need

        memory_need(question.model, question.dtype).require_free()
        given = dict(question.given)
        model = open_model(
            question.model, question.device, given, question.tokenizer, question.dtype
        )
        self._kept = state, model
        return model

    def forget(self) -> None:
        self._kept = None


def _state_of(question: Question) -> State:
    """What of a State decides on the model."""
    return State(
        model=question.model,
        device=question.device,
        given=question.given,
        tokenizer=question.tokenizer,
        dtype=question.dtype,
    )


def _steps(
    models: _Models, model: "Model | None", question: Question
) -> Generator[Progress, None, Run]:
    if model is None:
        model = yield from models.steps(question)
    return (yield from run_question(model, question))
