"""The document: what is asked, what is shown, and the only way from one to the other.

    document.edit(change) -> State -> pipeline in the worker -> Snapshot -> `changed` -> views

`state` is what was asked last, `snapshot` what can be shown: results with the very state that they
belong to. While the worker computes, views keep the last snapshot; visual fields (selection, floor,
theme) apply at once. Answers to a question that is no longer asked are dropped.
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Literal

from PySide6.QtCore import QObject, Signal

from circuitview.core.memory import TooLargeError
from circuitview.core.names import Head, ImbalanceError, IncomparableError
from circuitview.core.path import Path
from circuitview.core.progress import Progress
from circuitview.gui.file_writer import FileWriter
from circuitview.gui.jobs import Failure, Job, JobProgress, JobRunner
from circuitview.gui.lab_effects import LabEffects
from circuitview.gui.lab_queue import LabQueue
from circuitview.session.opening import Answer, opening_steps
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import Results, Selection, Snapshot, State

# What can fail; "run or file" is a run of the lab, and a file that is read or written. The next
# success of the same act takes the message of its failure away.
Act = Literal["analysis", "run or file", "other"]


class Document(QObject):
    """One analysis, shared by all views.

    Signals:
        changed: (the new Snapshot, the one before). Compare the two to draw only what differs.
        asked: the new State, before anything is computed; for fields that show what was asked.
        computing_changed: what is being done, or "" when all is.
        told: a short confirmation of what the user has done.
        too_large: (a State, why): its model does not fit into what memory is free; to be asked for
            again with even_if_large.
    """

    changed = Signal(object, object)
    asked = Signal(object)
    computing_changed = Signal(str)
    told = Signal(str)
    too_large = Signal(object, str)

    def __init__(
        self, jobs: JobRunner, state: State | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.jobs = jobs
        self.pipeline = Pipeline()
        self.lab = LabQueue(jobs, self.pipeline, self)
        self.effects = LabEffects(self.lab, self)
        self.files = FileWriter(jobs, self)
        self.files.written.connect(self._on_written)
        self.files.failed.connect(self._on_unwritten)
        self._state = state or State()
        self._snapshot = Snapshot(self._state)
        self._good = self._snapshot  # the last that could be computed
        self._job: Job | None = None
        self._doing = ""
        self._fallback: State | None = None
        self._carried: tuple[str, str] | None = None
        self._failed: Act = "analysis"

    @property
    def failed_act(self) -> Act:
        """What the failure of the snapshot is of, where it has one."""
        return self._failed

    @property
    def state(self) -> State:
        """What was asked last."""
        return self._state

    @property
    def snapshot(self) -> Snapshot:
        """What is shown."""
        return self._snapshot

    @property
    def computing(self) -> bool:
        return self._job is not None

    @property
    def doing(self) -> str:
        """What is being computed, or ""."""
        return self._doing

    def start(self, fallback: State | None = None) -> None:
        """Compute the first state; where that fails, say so and compute `fallback`."""
        self._fallback = fallback
        self.asked.emit(self._state)
        self._ask()

    def edit(self, change: Callable[[State], State]) -> None:
        """Ask for `change` of what was asked last."""
        self.set(change(self._state))

    def set(self, state: State) -> None:
        """Ask for `state`."""
        before, self._state = self._state, state
        if state == before:
            return
        self.asked.emit(state)
        if state.asks_the_same(before):
            self._draw_as(state)
        elif state.asks_the_same(self._snapshot.state) and not self._snapshot.failure:
            # Back to what is on the screen before the other answer came.
            self._drop_job()
            self._say("")
            self._draw_as(state)
        else:
            self._ask()

    def select_path(self, path: Path | None) -> None:
        """Pick out one path, or nothing."""
        self.edit(lambda state: replace(state, selection=_picked(state.selection, path, None)))

    def select_head(self, head: Head | None) -> None:
        """Pick out all paths through a head, or nothing."""
        self.edit(lambda state: replace(state, selection=_picked(state.selection, None, head)))

    def select_source(self, source: int | None) -> None:
        """Mark a source position, or none."""
        self.edit(lambda state: replace(state, selection=replace(state.selection, source=source)))

    def open_chain(self, heads: tuple[Head, ...] | None) -> None:
        """Show a chain of heads in the panels; None the strongest head."""
        self.edit(lambda state: replace(state, opened=heads or None))

    def report(self, text: str, details: str | None = None, act: Act = "other") -> None:
        """Tell the user of a failure outside the pipeline; what is shown stays.

        Args:
            act: what has failed; `settle` of the same takes the failure away.
        """
        if self._snapshot.refused:  # the reason for the refusal has to stay readable
            text = f"{self._snapshot.failure}; {text}"
        self._failed = act
        self._show(replace(self._snapshot, failure=text, details=details or text))

    def tell(self, text: str) -> None:
        """Confirm what the user has done."""
        self.told.emit(text)

    def settle(self, act: Act) -> None:
        """What failed before has been done now, or is not wanted any more."""
        if self._snapshot.failure is not None and self._failed == act:
            self.dismiss()

    def _on_written(self, path: FilePath) -> None:
        self.settle("run or file")
        self.tell(f"Saved to {path}")

    def _on_unwritten(self, failure: Failure) -> None:
        self.report(failure.text, failure.details, "run or file")

    def dismiss(self) -> None:
        """Take the failure away. A refusal stays: its numbers are not to be trusted."""
        shown = self._snapshot
        if (shown.failure or shown.notice) and not shown.refused:
            self._show(replace(shown, failure=None, details=None, notice=None))

    def cancel(self) -> None:
        """Ask for nothing more; what is shown is again what is asked."""
        if self._job is None or self._good.results.model is None:
            return
        self._drop_job()
        self._say("")
        self._state = self._good.state.drawn_as(self._state)
        self.asked.emit(self._state)
        self._show(replace(self._good, state=self._state))

    # --- asking and hearing ----------------------------------------------------------------------

    def _draw_as(self, state: State) -> None:
        drawn = self._snapshot.state.drawn_as(state)
        self._good = replace(self._good, state=self._good.state.drawn_as(state))
        if drawn != self._snapshot.state:
            self._show(replace(self._snapshot, state=drawn))

    def _ask(self) -> None:
        self._drop_job()
        pipeline, state = self.pipeline, self._state
        known = self._good.results.model is not None
        opens = not known or not state.opens_the_same(self._good.state)

        def steps() -> Generator[Progress, None, Answer]:
            if opens:
                return (yield from opening_steps(pipeline, state))
            return Answer(state, (yield from pipeline.steps(state)))

        job = self.jobs.start(steps, urgent=True)
        job.progressed.connect(self._on_progress)
        job.finished.connect(self._on_finished)
        job.failed.connect(self._on_failed)
        self._job = job
        self._say("computing")

    def _drop_job(self) -> None:
        if self._job is not None:
            self._job.progressed.disconnect(self._on_progress)
            self._job.finished.disconnect(self._on_finished)
            self._job.failed.disconnect(self._on_failed)
            self._job.cancel()
            self._job = None

    def _on_progress(self, progress: JobProgress) -> None:
        if progress.partials:
            self._say(str(progress.partials[-1]))

    def _on_finished(self, answer: Answer) -> None:
        results, why = answer.results, answer.why_prompt
        if why is not None and self._good.results.model is None:
            # At the start the prompt was asked for by name; later the field shows the change.
            self._carried = self._carried or (why, why)
        # Selected and scrolled meanwhile: visual fields are those of now.
        state = answer.state.drawn_as(self._state)
        state = replace(state, selection=state.selection.within(results))
        self._state, self._job = state, None
        self._good = Snapshot(state, results)
        text, details = self._carried or (None, None)
        self._carried = self._fallback = None
        self._failed = "analysis"
        self._say("")
        shown = replace(self._good, failure=text, details=details, notice=answer.notice)
        self._show(shown)

    def _on_failed(self, failure: Failure) -> None:
        self._job = None
        self._failed = "analysis"
        self._say("")
        if issubclass(failure.kind, ImbalanceError):
            # The refused model's own name: the numbers in the message are not the last one's.
            model = self.pipeline.facts_of(self._state) or self._good.results.model
            facts = Results(model=model)
            self._show(Snapshot(self._state, facts, failure.text, failure.details, refused=True))
            return
        if issubclass(failure.kind, IncomparableError):
            # Both prompts were read, and what was typed stays: each can be looked at alone.
            facts = Results(model=self.pipeline.facts_of(self._state))
            self._good = Snapshot(self._state, facts, failure.text, failure.details, refused=True)
            self._carried = self._fallback = None
            self._show(self._good)
            return
        if issubclass(failure.kind, TooLargeError):
            self.too_large.emit(self._state, failure.text)
        if self._good.results.expansion is None and self._fallback is not None:
            self._carried = failure.text, failure.details
            self._state, self._fallback = self._fallback.drawn_as(self._state), None
            self.asked.emit(self._state)
            self._ask()
            return
        # What was asked can't be had; what is shown is again what is asked.
        if issubclass(failure.kind, TooLargeError) and self._good.results.model is not None:
            self._state = self._good.state.drawn_as(self._state)
            self._show(replace(self._good, state=self._state))
            return
        text, details = failure.text, failure.details
        if self._carried is not None:
            text, details = f"{self._carried[0]}; {text}", f"{self._carried[1]}\n{details}"
        self._carried = None
        self._state = self._good.state.drawn_as(self._state)
        self._show(replace(self._good, state=self._state, failure=text, details=details))

    def _say(self, doing: str) -> None:
        if doing != self._doing:
            self._doing = doing
            self.computing_changed.emit(doing)

    def _show(self, snapshot: Snapshot) -> None:
        before, self._snapshot = self._snapshot, snapshot
        self.effects.show_snapshot(snapshot)
        self.changed.emit(snapshot, before)


def _picked(selection: Selection, path: Path | None, head: Head | None) -> Selection:
    return replace(selection, path=path, head=head)
