"""One run of the window in a process of its own, timed from outside; prints JSON.

Run as: python window_run.py WHAT, with the start time of the process in the variable STARTED.
WHAT: bare-window, bare-import, window.
"""

import json
import os
import sys
import threading
import time

from tests.benchmarks.heartbeat import Heartbeat

STARTED = float(os.environ["STARTED"])
PROMPT = " ".join(["I like green tea, so I drink green"] * 8)
N_TOKENS = 64
CHANGES = 24


def say(**figures: object) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def bare_window() -> None:
    """What no program of this kind can be faster than: the imports, and an empty window."""
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"
    import pyqtgraph  # noqa: F401
    from PySide6.QtWidgets import QApplication, QWidget

    app = QApplication([])

    class Window(QWidget):
        def paintEvent(self, event):
            say(first_paint=time.time() - STARTED)
            app.quit()

    window = Window()
    window.resize(1440, 900)
    window.show()
    app.exec()


def bare_import() -> None:
    """An event loop beside a thread that imports torch."""
    from PySide6.QtWidgets import QApplication, QWidget

    app = QApplication([])
    window = QWidget()
    window.show()

    def work() -> None:
        import torch  # noqa: F401

    thread = threading.Thread(target=work)
    heart = Heartbeat()

    def look() -> None:
        if not thread.is_alive():
            app.quit()

    heart.timer.timeout.connect(look)
    thread.start()
    app.exec()
    say(longest_stall=heart.longest)


class Run:
    """The program: loads, then changes dest and target a number of times."""

    def __init__(self) -> None:
        from circuitview.gui.app import application, make_window

        self.app = application()
        self.window = make_window()
        self.document = self.window.document
        self.window.resize(1440, 900)
        self.window.first_painted.connect(self.first_painted)
        self.window.diagram.canvas.composed.connect(self.composed)
        self.expansion: object = None  # the last that was drawn whole
        self.figures: dict[str, object] = {}
        self.asked = 0.0
        self.seen: list[float] = []  # seconds until a change was seen, its strongest bands painted
        self.complete: list[float] = []  # and until the last hair was
        self.loading = True
        self.heart: Heartbeat | None = None

    def run(self) -> None:
        self.window.show()
        self.app.exec()
        self.document.jobs.shutdown()
        say(**self.figures)

    def first_painted(self) -> None:
        self.figures["first_paint"] = time.time() - STARTED
        self.heart = Heartbeat()

    def composed(self) -> None:
        """The diagram is put together: for the first time since what was asked, or whole."""
        from PySide6.QtCore import QTimer

        if self.document.snapshot.results.expansion is self.expansion:
            return
        if self.asked and len(self.seen) == len(self.complete):
            self.seen.append(time.perf_counter() - self.asked)
        if self.window.diagram.canvas.complete:
            self.expansion = self.document.snapshot.results.expansion
            # A timer of 0 ms fires once the paint events of the other panels are done.
            QTimer.singleShot(0, self.painted)

    def painted(self) -> None:
        from dataclasses import replace

        from PySide6.QtCore import QTimer

        assert self.heart is not None
        if self.loading:
            self.loading = False
            self.figures["analysed"] = time.time() - STARTED
            self.figures["stall_loading"] = self.heart.longest
            self.asked = 0.0
            self.document.edit(lambda state: state.with_prompt(PROMPT))
            return
        n = len(self.document.snapshot.results.expansion.recording.prompt)
        if self.asked:
            self.complete.append(time.perf_counter() - self.asked)
        else:
            assert n >= N_TOKENS, n
            self.heart.restart()
        if len(self.complete) == CHANGES:
            self.figures["seen"], self.figures["complete"] = self.seen, self.complete
            self.figures["stall_after"] = self.heart.longest
            self.app.quit()
            return
        if len(self.complete) % 2:  # the same dest, the second-best token as the target
            token = self.document.snapshot.results.predictions[1].label
            change = {"target": token}
        else:
            change = {"target": None, "dest": N_TOKENS - 1 - len(self.complete)}
        QTimer.singleShot(5, lambda: self.ask(lambda state: replace(state, **change)))

    def ask(self, change) -> None:
        self.asked = time.perf_counter()
        self.document.edit(change)


if __name__ == "__main__":
    {"bare-window": bare_window, "bare-import": bare_import, "window": lambda: Run().run()}[
        sys.argv[1]
    ]()
