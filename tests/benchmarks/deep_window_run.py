"""One run of the window on a deep model, its longest stalls timed inside; prints JSON.

    deep_window_run.py FOLDER PROMPT

Each act is done several times; after each the window is left alone until everything is painted.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QTimer

from circuitview.core.names import Head
from circuitview.gui.app import Asked, application, make_window
from circuitview.session.state import Selection
from tests.benchmarks.heartbeat import Heartbeat

ROUNDS = 6
_QUIET = 0.15  # seconds in which nothing may happen before the next act


class Run:
    """Opens the model, then changes what is asked, selects heads and switches the theme."""

    def __init__(self, folder: str, prompt: str) -> None:
        self.app = application()
        self.window = make_window(Asked(model=folder, prompt=prompt))
        self.window.resize(1440, 900)
        self.document = self.window.document
        self.heart: Heartbeat | None = None
        self.stalls: dict[str, list[float]] = {}
        self.figures: dict[str, object] = {"stalls": self.stalls}
        self.acts: list[tuple[str, Callable[[], None]]] = []
        self.doing = ""
        self.quiet_since = 0.0
        self.watch = QTimer()
        self.watch.setInterval(5)
        self.watch.timeout.connect(self.look)

    def run(self) -> None:
        self.window.show()
        self.watch.start()
        self.app.exec()
        self.watch.stop()
        self.document.jobs.shutdown()
        sys.stdout.write(json.dumps(self.figures) + "\n")

    @property
    def busy(self) -> bool:
        canvas = self.window.diagram.canvas
        return (
            self.document.snapshot.results.expansion is None
            or self.document.jobs.busy
            or not canvas.complete
        )

    def look(self) -> None:
        """Begin the next act once the last is done and painted."""
        now = time.perf_counter()
        if self.busy:
            failure = self.document.snapshot.failure
            assert failure is None, failure
            self.quiet_since = now
        if now - self.quiet_since < _QUIET:
            return
        if self.heart is None:
            self.begin()
        elif self.doing:
            self.stalls.setdefault(self.doing, []).append(self.heart.longest)
        if not self.acts:
            self.app.quit()
            return
        self.doing, act = self.acts.pop(0)
        self.quiet_since = now
        assert self.heart is not None
        self.heart.restart()
        act()

    def begin(self) -> None:
        expansion = self.document.snapshot.results.expansion
        assert expansion is not None
        last = expansion.target.dest
        self.figures["tokens"] = last + 1
        self.figures["paths"] = len(expansion.paths)
        self.heart = Heartbeat()
        for number in range(ROUNDS):
            self.acts.append(("dest", partial(self.move_to, last - 1 - number)))
            self.acts.append(("target", self.take_another_target))
            self.acts.append(("prompt", self.turn_prompt))
            self.acts.append(("head", self.select_strongest))
            self.acts.append(("theme", self.switch_theme))
        self.figures["bands"] = len(self.window.diagram.canvas.picture.bands)

    def move_to(self, dest: int) -> None:
        self.document.edit(lambda state: replace(state, dest=dest, selection=Selection()))

    def take_another_target(self) -> None:
        token = self.document.snapshot.results.predictions[1].label
        self.document.edit(lambda state: replace(state, target=token))

    def turn_prompt(self) -> None:
        first, *others = self.document.state.prompt.split()
        turned = " ".join([*others, first])
        self.document.edit(lambda state: replace(state.with_prompt(turned), target=None))

    def select_strongest(self) -> None:
        expansion = self.document.snapshot.results.expansion
        heads = [what for what in expansion.nets if isinstance(what, Head)]
        self.document.select_head(max(heads, key=lambda head: abs(expansion.nets[head])))

    def switch_theme(self) -> None:
        dark = self.document.state.theme == "dark"
        self.window.wardrobe.choose("light" if dark else "dark")


if __name__ == "__main__":
    Run(sys.argv[1], sys.argv[2]).run()
