"""What a shell sees of work that takes a while, on stderr, and how it is stopped."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

from circuitview.cli.outcome import StoppedError
from circuitview.core.progress import Progress

_LIVE_SECONDS = 0.2  # between two states of a line that is rewritten
_QUIET_SECONDS = 30.0  # between two lines where stderr is no terminal
_BAR = 24  # characters

Result = TypeVar("Result")


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that a step ends whole; a second one interrupts."""
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def duration(seconds: float) -> str:
    """How long, in whole seconds: "1 h 5 min", "12 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def finished(
    steps: Generator[Progress, None, Result],
    units: str,
    note: Callable[[Progress], None],
    stopped: Callable[[], str],
) -> Result:
    """The result of `steps`, with a bar on stderr meanwhile.

    Args:
        units: what they count, as in "720 of 1,600 runs".
        note: is told of each Progress.
        stopped: what to say where Ctrl-C ends them.

    Raises:
        StoppedError: after the step in which Ctrl-C came.
    """
    bar = _Bar(units)
    with asked_to_stop() as stop:
        try:
            while True:
                progress = next(steps)
                note(progress)
                bar.show(progress)
                if stop.is_set():
                    raise StoppedError(stopped())
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            steps.close()
            bar.end()


class _Bar:
    """Progress on stderr: one line, rewritten, on a terminal; a line now and then elsewhere."""

    def __init__(self, units: str) -> None:
        self._units = units
        self._live = sys.stderr.isatty()
        self._total = 0
        self._begun_at, self._begun = 0, time.monotonic()
        self._shown = time.monotonic() if not self._live else 0.0
        self._width = 0

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.total != self._total:  # another part of the work
            self._total, self._begun_at, self._begun = progress.total, progress.done, now
        if now - self._shown < (_LIVE_SECONDS if self._live else _QUIET_SECONDS):
            return
        self._shown = now
        line = self._line(progress, now)
        if self._live:
            sys.stderr.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def _line(self, progress: Progress, now: float) -> str:
        share = progress.done / max(progress.total, 1)
        full = round(_BAR * share)
        line = f"[{'#' * full}{'.' * (_BAR - full)}] {share:.0%}"
        if isinstance(progress.partial, str):  # what is being done before the first unit
            line += f", {progress.partial}"
        else:
            line += f", {progress.done:,} of {progress.total:,} {self._units}"
        done = progress.done - self._begun_at
        if done > 0:
            left = (now - self._begun) / done * (progress.total - progress.done)
            line += f", {duration(left)} left"
        return line

    def end(self) -> None:
        """Wipe the line that is being rewritten."""
        if self._live and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
