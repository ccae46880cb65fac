"""Runs of the lab in the window, its longest stall during each timed inside; prints JSON.

    lab_window_run.py FOLDER PROMPT

Each run is looked at while it goes on, and until the table, plot and diagram are painted after it.
"""

import json
import sys
import time

from PySide6.QtCore import QTimer

from circuitview.gui.app import Asked, application, make_window
from circuitview.gui.lab_queue import LabRun
from circuitview.session.lab import What
from tests.benchmarks.heartbeat import Heartbeat

_QUIET = 0.25  # seconds in which nothing may be going on before the next run
ACTS: tuple[tuple[str, What], ...] = (
    ("heads", "heads"),
    ("paths", "paths"),
    ("paths coloured", "paths"),
    ("orders", "orders"),
    ("pairs", "pairs"),
    ("pairs large", "pairs"),
)


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
        self.rows: dict[str, int] = {}
        self.matrices = 0
        self.acts = list(ACTS)
        self.doing = ""
        self.quiet_since = 0.0
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
        found = {"stalls": self.stalls, "rows": self.rows, "matrices": self.matrices}
        sys.stdout.write(json.dumps(found) + "\n")

    @property
    def busy(self) -> bool:
        canvas = self.window.diagram.canvas
        shown = self.document.snapshot.results.expansion is not None
        painting = canvas.isVisible() and not canvas.complete
        return not shown or self.document.jobs.busy or painting

    def look(self) -> None:
        """Begin the next run once the last is done and painted."""
        now = time.perf_counter()
        if self.busy:
            failure = self.document.snapshot.failure
            assert failure is None, failure
            self.quiet_since = now
        if now - self.quiet_since < _QUIET:
            return
        self.quiet_since = now
        self.write_down()
        if not self.acts:
            self.app.quit()
            return
        self.doing, what = self.acts.pop(0)
        self.prepare()
        self.panel.form.choose(what)
        self.heart = Heartbeat()
        self.panel.run()
        self.entry = self.document.lab.runs[-1]
        self.panel.runs.choose(self.entry)

    def write_down(self) -> None:
        if self.heart is None or self.entry is None:
            return
        assert self.entry.state == "done", self.entry.failure
        self.stalls[self.doing] = self.heart.longest
        self.rows[self.entry.question.what] = len(self.entry.rows)
        coloured = self.window.diagram.shown_effects is not None
        assert coloured == (self.doing == "paths coloured"), self.doing

    def prepare(self) -> None:
        self.document.effects.action.setChecked(self.doing == "paths coloured")
        if self.doing == "pairs large":
            self.window.host.toggle_maximised("ablation")
            self.panel.results.whole.made.connect(self.count)

    def count(self) -> None:
        self.matrices += 1


if __name__ == "__main__":
    Run(sys.argv[1], sys.argv[2]).run()
