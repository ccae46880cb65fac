"""Starting the window: it is on the screen before torch is imported.

Nothing imported here loads torch; the worker does, once the window has painted. What goes wrong
anywhere is logged and told in the window's strip, never swallowed.
"""

import logging
import os
import sys
import threading
import traceback
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from types import TracebackType

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from circuitview.core.bundled import DEFAULT_MODEL, bundled_names
from circuitview.core.device import DeviceName
from circuitview.core.names import CircuitviewError
from circuitview.core.places import cached_versions
from circuitview.gui.collector import Collector
from circuitview.gui.document import Document
from circuitview.gui.interrupt import Interrupt
from circuitview.gui.jobs import JobRunner, worker_context
from circuitview.gui.main_window import MainWindow
from circuitview.gui.program_icon import program_icon
from circuitview.gui.settings_store import SettingsStore
from circuitview.gui.theming import style_application
from circuitview.session.settings import Answers, Settings
from circuitview.session.state import State

log = logging.getLogger(__name__)

DESKTOP_NAME = "io.github.circuitview.circuitview"


def main(
    model: str | None = None,
    prompt: str | None = None,
    device: DeviceName = "cpu",
    given: tuple[tuple[str, str], ...] = (),
    tokenizer: str | None = None,
) -> int:
    """Open the window and stay until it is closed; the exit code.

    Args:
        model: a bundled name, a folder, a file or a cached name; None opens what was open last.
        prompt: what the model reads; None takes the last one.
        device: where the model computes.
        given: for a bare weights file, what it does not say of its config.
        tokenizer: for a model without one.
    """
    logging.basicConfig(level=logging.WARNING, format="circuitview: %(message)s")
    app = application()
    asked = Asked(model, prompt, device, given, tokenizer)
    window = make_window(asked)
    document = window.document
    hook = ExceptionHook(document)
    hook.install()
    interrupt = Interrupt(window.close, app)
    window.show()
    try:
        return app.exec()
    finally:
        document.jobs.shutdown()
        interrupt.stop()
        hook.remove()


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks of the window; see main."""

    model: str | None = None
    prompt: str | None = None
    device: DeviceName = "cpu"
    given: tuple[tuple[str, str], ...] = ()
    tokenizer: str | None = None


def make_window(asked: Asked = Asked()) -> MainWindow:
    """The window, not shown yet; it begins its first analysis once it has painted."""
    store = SettingsStore()
    document = Document(JobRunner(worker_context), first_state(store.settings, asked))
    window = MainWindow(document, store)
    window.first_painted.connect(Start(document).begin)
    return window


def application() -> QApplication:
    """The QApplication with the program's name, icon, font and look."""
    running = QApplication.instance()
    app = running if isinstance(running, QApplication) else QApplication(sys.argv[:1])
    app.setApplicationName("circuitview")
    app.setApplicationDisplayName("circuitview")
    app.setDesktopFileName(DESKTOP_NAME)
    style_application(app)
    try:
        app.setWindowIcon(program_icon())
    except CircuitviewError as error:
        log.warning("%s", error)
    return app


def first_state(settings: Settings, asked: Asked = Asked()) -> State:
    """What is asked first: the arguments, else the last time's, else the defaults."""
    usual = State()
    model = settings.model or usual.model if asked.model is None else absolute(asked.model)
    prompt = settings.prompt or usual.prompt if asked.prompt is None else asked.prompt
    known = settings.answers.get(model, Answers())
    given, tokenizer = asked.given or known.given, asked.tokenizer or known.tokenizer
    state = replace(usual.with_model(model, prompt, given, tokenizer), device=asked.device)
    if asked.model is None and asked.prompt is None and settings.model:
        return replace(state, prepend_bos=settings.prepend_bos)
    return state


def absolute(model: str) -> str:
    """A bundled or cached name as it is; a path in full, so that it is found again next time."""
    if model in bundled_names():
        return model
    path = FilePath(model).expanduser()
    if not os.path.lexists(path) and cached_versions(model) is not None:
        return model
    return str(path.absolute())


class Start(QObject):
    """Begins the first analysis once the window is on the screen."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document

    def begin(self) -> None:
        """Ask for the first state; where that fails the default model steps in."""
        # What drawing will need takes long to import: in the worker, the window stays awake.
        self._document.jobs.start(_warm_up, urgent=True)
        names = bundled_names()
        usual = DEFAULT_MODEL if DEFAULT_MODEL in names or not names else names[0]
        self._document.changed.connect(self._settle)
        self._document.start(fallback=State().with_model(usual))

    def _settle(self) -> None:
        """All that is needed has been imported."""
        self._document.changed.disconnect(self._settle)
        Collector(self._document)


def _warm_up() -> None:
    import circuitview.gui.plots  # noqa: F401
    from circuitview.figures.text_width import width

    for bold in (False, True):
        width("reads the font", 12, bold)


class ExceptionHook:
    """Whatever no one caught: to the log, and into the window's strip."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._telling = False
        self._before = sys.excepthook, threading.excepthook

    def install(self) -> None:
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception

    def remove(self) -> None:
        sys.excepthook, threading.excepthook = self._before

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QApplication.quit()
            return
        log.error("not caught", exc_info=(kind, error, trace))
        if self._telling:  # telling it failed too: the log has both
            return
        self._telling = True
        try:
            details = "".join(traceback.format_exception(kind, error, trace))
            self._document.report(
                f"something went wrong in the program: {kind.__name__}: {error}", details
            )
        finally:
            self._telling = False

    def _on_thread_exception(self, hooked: threading.ExceptHookArgs) -> None:
        log.error("not caught in a thread", exc_info=hooked.exc_value)
