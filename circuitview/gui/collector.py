"""Python's collector of reference cycles, tamed: on the main thread, and thoroughly only at rest.

Left to itself it runs wherever something is allocated. In the worker it would delete Qt objects on
the wrong thread, and its look at all that lives (a deep model's paths are a hundred thousand
objects) would stall the window for as long as several frames, in the middle of a click.
"""

import gc
from time import monotonic

from PySide6.QtCore import QObject, QTimer

from circuitview.gui.document import Document

_EVERY = 100  # milliseconds
_YOUNG = 2000  # new objects that are worth a look: some milliseconds; Python's own number is 700
_OLDER = 10  # Python's own: looks at the young for each at the older, and at those for one at all
REST = 1.0  # seconds without a change of what is shown
LONGEST = 60.0  # seconds without rest: garbage must not pile up while a long run goes on


class Collector(QObject):
    """Collects while it lives; afterwards Python does again."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._changed_at = self._looked_at = monotonic()
        document.changed.connect(self._on_changed)
        # All that the imports made stays as long as the program: never to be looked at again.
        gc.freeze()
        gc.disable()
        self.destroyed.connect(_give_back)
        timer = QTimer(self)
        timer.setInterval(_EVERY)
        timer.timeout.connect(self.look)
        timer.start()

    def look(self) -> None:
        """Collect as much as is due and as there is time for."""
        young, older, oldest = gc.get_count()
        now = monotonic()
        rests = not self._document.jobs.busy and now - self._changed_at >= REST
        if older > _OLDER and (rests or now - self._looked_at >= LONGEST):
            gc.collect(2 if oldest > _OLDER else 1)
            self._looked_at = monotonic()
        elif young > _YOUNG:
            gc.collect(0)

    def _on_changed(self, *_: object) -> None:
        self._changed_at = monotonic()


def _give_back() -> None:
    gc.enable()
