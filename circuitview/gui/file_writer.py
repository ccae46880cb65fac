"""Files that are written in the worker: the window goes on meanwhile, and says when one is there.

What was asked for is not lost: a window that closes first writes what still waits, and stays open
where that can't be done.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path as FilePath

from PySide6.QtCore import QObject, Signal

from circuitview.gui.jobs import Failure, JobRunner, failure_of

log = logging.getLogger(__name__)


class _File:
    """One file, written once by whoever comes first: the worker, or a window that closes."""

    def __init__(self, path: FilePath, write: Callable[[], None]) -> None:
        self.path = path
        self.failure: Failure | None = None
        self._write: Callable[[], None] | None = write
        self._lock = threading.Lock()

    def write(self) -> "_File":
        """Write it; where that fails `failure` says why."""
        with self._lock:
            write, self._write = self._write, None
            if write is not None:
                try:
                    write()
                except Exception as error:
                    self.failure = failure_of(error)
                    if not self.failure.expected:
                        log.exception("%s can't be written", self.path)
        return self


class FileWriter(QObject):
    """Signals: written(the path of a file that is there now), failed(a Failure)."""

    written = Signal(object)
    failed = Signal(object)

    def __init__(self, jobs: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._waiting: list[_File] = []

    def write(self, path: FilePath, write: Callable[[], None]) -> None:
        """Have `write` write what is to be at `path`; it is called once, in the worker as a rule.

        Args:
            path: for the message.
            write: raises where it can't.
        """
        file = _File(path, write)
        self._waiting.append(file)
        self._jobs.start(file.write, urgent=True).finished.connect(self._on_done)

    def finish(self) -> bool:
        """Write what waits, now; whether everything that was asked for is there."""
        done = [file.write() for file in tuple(self._waiting)]
        for file in done:
            self._on_done(file)
        return all(file.failure is None for file in done)

    def _on_done(self, file: _File) -> None:
        if file in self._waiting:  # else it has been told
            self._waiting.remove(file)
            if file.failure is None:
                self.written.emit(file.path)
            else:
                self.failed.emit(file.failure)
