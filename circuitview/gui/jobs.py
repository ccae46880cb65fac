"""Work off the main thread: one worker thread, jobs that report and can be cancelled.

A job is a plain function or one that returns a generator of core.progress.Progress; between its
yields it can be cancelled, and jobs marked urgent (the analysis behind a click) are served first,
so a long run never makes the window wait. Those that are not urgent take turns: a short one need
not wait for the end of a long one. Only plain values cross between the threads, by one queued
signal; a Job lives on the main thread and its signals fire there.
"""

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from inspect import isgenerator
from typing import Any, cast

from PySide6.QtCore import QObject, Qt, Signal

from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress

log = logging.getLogger(__name__)

Work = Callable[[], Any]
_REPORT_EVERY = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed.

    Attributes:
        text: one line for the user.
        details: for a report; where the program is at fault, the traceback.
        kind: the exception's class. The exception itself would keep alive all that its frames hold.
    """

    text: str
    details: str
    kind: type[BaseException]

    @property
    def expected(self) -> bool:
        """Whether the user can mend it."""
        return issubclass(self.kind, CircuitviewError)


def failure_of(error: BaseException) -> Failure:
    """`error` as data."""
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, CircuitviewError):
        return Failure(str(error), str(error), type(error))
    name = type(error).__name__
    return Failure(f"something went wrong in the program: {name}: {error}", trace, type(error))


@dataclass(frozen=True, slots=True)
class JobProgress:
    """`done` of `total` units; `partials` are the results since the last report, in order."""

    done: int
    total: int
    partials: tuple[Any, ...] = ()


class Job(QObject):
    """A running job, seen from the main thread.

    Signals, each with one object; exactly one of the last three ends it:
        progressed: a JobProgress, at most ten times a second; no partial result is left out.
        finished: what the function returned.
        failed: a Failure.
        cancelled: None.
    """

    progressed = Signal(object)
    finished = Signal(object)
    failed = Signal(object)
    cancelled = Signal(object)

    def __init__(self, task: "_Task") -> None:
        super().__init__()
        self._task = task
        self.running = True

    def cancel(self) -> None:
        """Stop at the next yield. Nothing but `cancelled` is heard from the job any more."""
        self._task.cancelled = True


@dataclass(eq=False, slots=True)
class _Task:
    """The worker's side of a job: no Qt object, so it may die on any thread."""

    work: Work | None
    steps: Generator[Any, None, Any] | None = None
    cancelled: bool = False
    done: int = 0
    total: int = 0
    unreported: list[Any] = field(default_factory=list)
    reported_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Message:
    task: _Task
    kind: str  # the name of the Job's signal
    content: Any = None


class JobRunner(QObject):
    """Owner of the worker thread. Make it on the main thread; call shutdown() before it goes."""

    _posted = Signal(object)

    def __init__(
        self,
        around: Callable[[], AbstractContextManager[Any]] = nullcontext,
        parent: QObject | None = None,
    ) -> None:
        """Args: around: entered around every step in the worker, like worker_context."""
        super().__init__(parent)
        self._around = around
        self._jobs: dict[_Task, Job] = {}
        self._lock = threading.Lock()
        self._urgent: deque[_Task] = deque()
        self._patient: deque[_Task] = deque()
        self._closed = False
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="circuitview-worker")
        self._posted.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def start(self, work: Work, urgent: bool = False) -> Job:
        """Begin `work`: a function without arguments that returns its result, or a generator that
        yields Progress and returns it.

        Args:
            work: what to run in the worker.
            urgent: serve it before all that is not, even in the middle of a long job.
        """
        if self._closed:
            raise RuntimeError("the job runner is shut down")
        task = _Task(work)
        job = Job(task)
        self._jobs[task] = job
        with self._lock:
            (self._urgent if urgent else self._patient).append(task)
        self._executor.submit(self._serve)
        return job

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def shutdown(self) -> None:
        """Cancel everything, wait for the step that runs, let the thread go. No signal follows."""
        self._closed = True
        for task in self._jobs:
            task.cancelled = True
        self._executor.shutdown(wait=True)
        for job in self._jobs.values():
            job.running = False
        self._jobs.clear()

    # --- in the worker -------------------------------------------------------------------------

    def _serve(self) -> None:
        """Step what is most urgent until nothing is left. Each start() calls for one serving."""
        while True:
            with self._lock:
                queue = self._urgent or self._patient
                if not queue:
                    return
                task = queue[0]
            ended = self._step(task)
            with self._lock:
                if ended:
                    queue.popleft()
                elif queue is self._patient:
                    queue.rotate(-1)

    def _step(self, task: _Task) -> bool:
        """Do one piece of the task; whether it has ended."""
        if task.cancelled:
            return self._end(task, "cancelled")
        try:
            with self._around():
                if task.work is not None:
                    work, task.work = task.work, None
                    made = work()
                    if not isgenerator(made):
                        return self._end(task, "finished", made)
                    task.steps = cast(Generator[Any, None, Any], made)
                    return False
                assert task.steps is not None
                progress = next(task.steps)
        except StopIteration as end:
            return self._end(task, "finished", end.value)
        except BaseException as error:  # errors become data, faults of Rust code (no Exception) too
            failure = failure_of(error)
            if not failure.expected:
                log.error("a job failed", exc_info=error)
            return self._end(task, "failed", failure)
        self._report(task, progress)
        return False

    def _report(self, task: _Task, progress: Progress) -> None:
        if progress.partial is not None:
            task.unreported.append(progress.partial)
        task.done, task.total = progress.done, progress.total
        if time.monotonic() - task.reported_at >= _REPORT_EVERY:
            self._flush(task)

    def _flush(self, task: _Task) -> None:
        task.reported_at = time.monotonic()
        partials, task.unreported = tuple(task.unreported), []
        self._post(task, "progressed", JobProgress(task.done, task.total, partials))

    def _end(self, task: _Task, kind: str, content: Any = None) -> bool:
        if task.steps is not None and kind == "cancelled":
            try:
                with self._around():
                    task.steps.close()
            except BaseException as error:  # noqa: BLE001 - a faulty clean-up is told, not lost
                kind, content = "failed", failure_of(error)
        if task.unreported:
            self._flush(task)
        # The worker keeps nothing of a task that has ended.
        task.steps = task.work = None
        self._post(task, kind, content)
        return True

    def _post(self, task: _Task, kind: str, content: Any) -> None:
        if not self._closed:
            self._posted.emit(_Message(task, kind, content))

    # --- on the main thread --------------------------------------------------------------------

    def _deliver(self, message: _Message) -> None:
        job = self._jobs.get(message.task)
        if job is None:
            return
        kind, content = message.kind, message.content
        if kind == "progressed":
            if not message.task.cancelled:
                job.progressed.emit(content)
            return
        del self._jobs[message.task]
        job.running = False
        if message.task.cancelled and kind == "finished":
            kind, content = "cancelled", None  # it ended before it heard
        getattr(job, kind).emit(content)


def worker_context() -> AbstractContextManager[Any]:
    """Torch for the worker: no gradients, one core left for the window. Imports torch."""
    import os

    import torch

    wanted = max(1, (os.cpu_count() or 2) - 1)
    if torch.get_num_threads() != wanted:
        torch.set_num_threads(wanted)
    return torch.inference_mode()
