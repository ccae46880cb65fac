"""The collector of reference cycles: on the main thread, and thoroughly only at rest."""

import gc
import threading
import weakref

import pytest
from PySide6.QtCore import QObject

from circuitview.gui import collector
from circuitview.gui.collector import LONGEST, REST, Collector
from tests.gui.conftest import WAIT


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(collector, "monotonic", clock)
    return clock


@pytest.fixture
def tamed(document, clock):
    made = Collector(document)
    yield made
    made.deleteLater()
    made.destroyed.emit()


@pytest.fixture
def due(monkeypatch):
    """What is said to have come together since the last looks, and the looks that are taken."""
    counts, looks = [0, 0, 0], []
    monkeypatch.setattr(collector.gc, "get_count", lambda: tuple(counts))
    monkeypatch.setattr(collector.gc, "collect", lambda generation=2: looks.append(generation))
    return counts, looks


def test_python_collects_by_itself_only_before_and_after(qtbot, document):
    assert gc.isenabled()
    tamed = Collector(document)
    assert not gc.isenabled()
    with qtbot.waitSignal(tamed.destroyed, timeout=WAIT):
        tamed.deleteLater()
    assert gc.isenabled()


def test_cycles_are_deleted_on_the_main_thread_however_busy_the_worker_is(qtbot, document):
    """A worker that makes many objects would otherwise be the one that finds them."""
    deleted_on = []

    class Shown(QObject):
        def __del__(self):
            deleted_on.append(threading.current_thread())

    tamed = Collector(document)
    shown = Shown()
    shown.itself = shown
    del shown
    made = []
    job = document.jobs.start(lambda: made.extend([place] for place in range(200_000)))
    qtbot.waitUntil(lambda: bool(deleted_on) and not job.running, timeout=WAIT)
    assert deleted_on == [threading.main_thread()]
    with qtbot.waitSignal(tamed.destroyed, timeout=WAIT):
        tamed.deleteLater()


def test_only_the_young_are_looked_at_while_something_changes(tamed, due, document, clock):
    counts, looks = due
    counts[:] = 5000, 11, 11
    document.changed.emit(document.snapshot, document.snapshot)
    clock.now += REST / 2
    tamed.look()
    assert looks == [0]
    clock.now += REST
    tamed.look()
    assert looks == [0, 2]


def test_all_are_looked_at_after_a_minute_without_rest(tamed, due, document, clock):
    counts, looks = due
    counts[:] = 5000, 11, 0
    clock.now += LONGEST - 1
    document.changed.emit(document.snapshot, document.snapshot)
    tamed.look()
    assert looks == [0]
    clock.now += 1
    document.changed.emit(document.snapshot, document.snapshot)
    tamed.look()
    assert looks == [0, 1]


def test_nothing_is_looked_at_for_nothing(tamed, due, clock):
    counts, looks = due
    counts[:] = 100, 3, 3
    clock.now += 2 * LONGEST
    tamed.look()
    assert looks == []


def test_a_running_job_is_no_rest(tamed, due, document, clock, qtbot):
    counts, looks = due
    counts[:] = 100, 11, 0
    release = threading.Event()
    job = document.jobs.start(release.wait)
    clock.now += 2 * REST
    tamed.look()
    release.set()
    qtbot.waitUntil(lambda: not job.running, timeout=WAIT)
    assert looks == []
    tamed.look()
    assert looks == [1]


def test_a_cycle_that_has_grown_old_goes_at_rest(tamed, clock):
    class Kept:
        pass

    kept = Kept()
    kept.itself, seen = kept, weakref.ref(kept)
    gc.collect()
    del kept
    for _ in range(12):  # eleven looks at the young, so that the older are due
        gc.collect(0)
    for _ in range(12):
        gc.collect(1)
    for _ in range(12):
        gc.collect(0)
    assert seen() is not None
    clock.now += 2 * REST
    tamed.look()
    assert seen() is None
