"""Ctrl+C in the terminal ends the program as closing its window does.

Python runs a signal's handler only between two of its own instructions, and Qt's event loop may not
come back to Python for long. So the signal also writes to a socket that Qt listens to.
"""

import signal
import socket
from collections.abc import Callable
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier


class Interrupt(QObject):
    """Calls `leave` on SIGINT and SIGTERM, until stop()."""

    def __init__(self, leave: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._leave = leave
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._woken = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._leave()

    def _drain(self) -> None:
        try:
            self._read.recv(64)
        except BlockingIOError:
            return

    def stop(self) -> None:
        """Put the handlers back that were there before."""
        self._notifier.setEnabled(False)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken)
        self._read.close()
        self._write.close()
