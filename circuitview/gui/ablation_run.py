"""A run of the ablation experiment in the worker, and what its rows are about."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from circuitview.gui.document import Document
from circuitview.gui.jobs import Failure, Job, JobProgress

if TYPE_CHECKING:
    from circuitview.core.ablation.zero_heads import AblationTable
    from circuitview.core.expansion import Expansion
    from circuitview.core.progress import Progress


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """What was asked of a run.

    Attributes:
        expansion: the prompt and target.
        frozen: whether patterns and norm scales were held.
        complete: whether all heads are measured.
    """

    expansion: "Expansion"
    frozen: bool
    complete: bool = False

    def is_of(self, expansion: "Expansion | None") -> bool:
        """Whether `expansion` is of the same run of the model and the same target."""
        mine = self.expansion
        return expansion is not None and (
            expansion.recording is mine.recording and expansion.target == mine.target
        )

    @property
    def held(self) -> str:
        """How it was measured, in words."""
        return "patterns and norm scales frozen" if self.frozen else "patterns free"


class AblationRun(QObject):
    """The last run, or the one that is going on.

    Signals:
        advanced: a JobProgress whose partials are AblationRows.
        ended: finished, cancelled or failed; a failure is reported to the document.
    """

    advanced = Signal(object)
    ended = Signal()

    def __init__(self, document: Document, parent: QObject) -> None:
        super().__init__(parent)
        self._document = document
        self._job: Job | None = None
        self.measured: Measured | None = None

    @property
    def running(self) -> bool:
        return self._job is not None

    def start(self, expansion: "Expansion", frozen: bool) -> None:
        """Measure every head for `expansion`'s prompt and target."""
        recording, target = expansion.recording, expansion.target

        def steps() -> "Generator[Progress, None, AblationTable]":
            from circuitview.core.ablation.zero_heads import zero_each_head

            return zero_each_head(recording, target, frozen)

        self.measured = Measured(expansion, frozen)
        job = self._document.jobs.start(steps)
        job.progressed.connect(self._on_progress)
        job.finished.connect(self._on_finished)
        job.failed.connect(self._on_failed)
        job.cancelled.connect(self._on_cancelled)
        self._job = job

    def cancel(self) -> None:
        """Stop after the head that is being measured; what is measured stays."""
        if self._job is not None:
            self._job.cancel()

    def _on_progress(self, progress: JobProgress) -> None:
        self.advanced.emit(progress)

    def _on_finished(self, table: Any) -> None:  # noqa: ARG002 - its rows have arrived one by one
        assert self.measured is not None
        self.measured = replace(self.measured, complete=True)
        self._end()

    def _on_failed(self, failure: Failure) -> None:
        self._end()
        self._document.report(failure.text, failure.details)

    def _on_cancelled(self, nothing: Any) -> None:  # noqa: ARG002 - the signal's content
        self._end()

    def _end(self) -> None:
        self._job = None
        self.ended.emit()
