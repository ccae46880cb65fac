"""Runs of the lab in the window, its longest stall during each timed inside; prints JSON.

lab_window_run.py FOLDER PROMPT
"""

import json
import sys
from collections.abc import Callable

from PySide6.QtCore import QTimer

from circuitview.gui.app import Asked, application, make_window
from circuitview.gui.lab_queue import LabRun
from circuitview.session.lab import What
from tests.benchmarks.heartbeat import Heartbeat

WHATS: tuple[What, ...] = ("heads", "paths", "orders", "pairs")
_QUIET = 100  # looks of 5 ms in which nothing may be going on before the next run


class Run:
    """Opens the model, then measures one thing after the other while the panel shows it."""

    def __init__(self, folder: str, prompt: str) -> None:
        self.app = application()
        self.window = make_window(Asked(model=folder, prompt=prompt))
        self.window.resize(1440, 900)
        self.document = self.window.document
        self.panel = self.window.host.docks["ablation"].panel
        self.heart: Heartbeat | None = None
        self.stalls: dict[str, float] = {}
        self.whats = list(WHATS)
        self.quiet = 0
        self.entry: LabRun | None = None
        self.watch = QTimer()
        self.watch.setInterval(5)
        self.watch.timeout.connect(self.look)

    def run(self) -> None:
        self.window.show()
        self.watch.start()
        self.app.exec()
        self.watch.stop()
        self.document.jobs.shutdown()
        sys.stdout.write(json.dumps({"stalls": self.stalls}) + "\n")

    def look(self) -> None:
        shown = self.document.snapshot.results.expansion is not None
        busy = not shown or self.document.jobs.busy or not self.window.diagram.canvas.complete
        self.quiet = 0 if busy else self.quiet + 1
        if self.quiet < _QUIET:
            return
        self.quiet = 0
        if self.heart is not None and self.entry is not None:
            assert self.entry.state == "done", self.entry.failure
            self.stalls[self.entry.question.what] = self.heart.longest
        if not self.whats:
            self.app.quit()
            return
        self.ask(self.whats.pop(0))

    def ask(self, what: What) -> None:
        self.panel.form.choose(what)
        self.heart = Heartbeat()
        self.panel.run()
        self.entry = self.document.lab.runs[-1]
        self.panel.runs.choose(self.entry)


if __name__ == "__main__":
    start: Callable[[], None] = Run(*sys.argv[1:]).run
    start()
