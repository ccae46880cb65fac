"""A document, a window on a small bundled model, settings in a folder of the test's own; and checks
that nothing is left behind: no top-level widget, no worker thread, no running timer."""

import gc
import os
import threading
from dataclasses import replace

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("PYQTGRAPH_QT_LIB", "PySide6")

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout

from circuitview.core.expansion import expansion_steps
from circuitview.figures.figure import Figure, Text
from circuitview.gui.document import Document
from circuitview.gui.jobs import JobRunner, worker_context
from circuitview.gui.main_window import MainWindow
from circuitview.gui.panels.panel import Panel
from circuitview.gui.settings_store import SettingsStore
from circuitview.gui.theming import style_application
from circuitview.session.settings import FOLDER_VARIABLE
from circuitview.session.state import State

MODEL = "induction-by-hand"
PROMPT = "I like green tea , so I drink green"
WAIT = 20_000  # ms; torch may have to be imported first


def pytest_collection_modifyitems(items):
    # The offscreen platform has no window manager: popups can't be raised or take the keyboard.
    for item in items:
        if "tests/gui/" in item.path.as_posix():
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))


@pytest.fixture(scope="session", autouse=True)
def styled(qapp):
    style_application(qapp)
    gc.collect()
    gc.freeze()  # what is imported by now need not be searched after every test
    yield
    # A QMimeData made in Python must not outlive it, or the process ends with a crash.
    QGuiApplication.clipboard().clear()
    gc.unfreeze()


@pytest.fixture(autouse=True)
def own_settings(tmp_path, monkeypatch):
    """No test reads or writes the settings of whoever runs it."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "config"))


@pytest.fixture(autouse=True)
def nothing_left_behind(qapp):
    before = {id(widget) for widget in QApplication.topLevelWidgets()}
    yield
    flush_deletions()
    widgets = [widget for widget in QApplication.topLevelWidgets() if id(widget) not in before]
    threads = [thread for thread in threading.enumerate() if "circuitview" in thread.name]
    timers = [
        thing
        for thing in gc.get_objects()
        if type(thing) is QTimer and shiboken6.isValid(thing) and thing.isActive()
    ]
    left = [f"{widget} of {widget.parent()}" for widget in widgets]
    for widget in widgets:  # one leak shall not fail every later test
        widget.deleteLater()
    flush_deletions()
    assert not left, f"top-level widgets left: {left}"
    assert not threads, f"threads left: {threads}"
    assert not timers, f"timers left running: {[timer.parent() for timer in timers]}"


def flush_deletions() -> None:
    gc.collect()
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        QCoreApplication.processEvents()


@pytest.fixture
def jobs(qapp):
    runner = JobRunner(worker_context)
    yield runner
    runner.shutdown()


@pytest.fixture
def document(jobs):
    """Asked, not yet begun."""
    return Document(jobs, State(model=MODEL, prompt=PROMPT))


@pytest.fixture
def analysed(qtbot, document):
    """With its first results."""
    begin(qtbot, document)
    return document


@pytest.fixture
def store(tmp_path):
    return SettingsStore(tmp_path / "settings.json")


class CountingPanel(Panel):
    """Writes down what it was given, and fails on demand."""

    NAME, TITLE, AREA = "counting", "Counting", "right"

    def __init__(self, document):
        super().__init__(document)
        self.seen = []
        self.raises = None
        self.label = QLabel()
        QVBoxLayout(self).addWidget(self.label)

    def show_snapshot(self, snapshot):
        if self.raises is not None:
            raise self.raises
        self.seen.append(snapshot)
        self.label.setText(snapshot.state.prompt)

    def figure(self, snapshot, theme, width, height):
        words = Text(10, 20, snapshot.state.prompt, 12, theme.text)
        return Figure(width, height, theme.background, (words,), title="Counting")

    def csv(self, snapshot):
        return f"prompt\n{snapshot.state.prompt}\n"


class SilentPanel(CountingPanel):
    """A second one, without a table."""

    NAME, TITLE, AREA = "silent", "Silent", "left"

    def csv(self, snapshot):
        return None


@pytest.fixture
def make_window(qtbot, document, store):
    """Makes windows on the document; the first one begins the analysis."""

    def make(panels=(CountingPanel, SilentPanel), begun=True):
        window = MainWindow(document, store, list(panels))
        qtbot.addWidget(window)
        window.show()
        qtbot.waitExposed(window)
        if begun:
            begin(qtbot, document)
        return window

    return make


@pytest.fixture
def window(make_window):
    return make_window()


def begin(qtbot, document) -> None:
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        document.start()
    assert document.snapshot.results.expansion is not None, document.snapshot.failure


def ask(qtbot, document, change) -> None:
    """Edit, and wait until the answer has come."""
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        document.edit(change)
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)


def unbalanced(*asked):
    """The steps to an expansion that a fault in the program would give: one term is off."""
    expansion = yield from expansion_steps(*asked)
    return replace(expansion, constant=1.0)
