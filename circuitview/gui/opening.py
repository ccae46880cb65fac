"""Opening models: the bundled ones, recent ones, any folder or file by dialog or by dropping it.

A bare weights file is described in the worker first; what it does not say is asked in a dialog, and
remembered.
"""

import logging
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, QObject
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from circuitview.core.bundled import bundled_names
from circuitview.core.names import CircuitviewError
from circuitview.core.places import GGUF, WEIGHTS_ENDINGS
from circuitview.gui.document import Document
from circuitview.gui.import_dialog import ImportDialog
from circuitview.gui.jobs import Failure, Job
from circuitview.gui.settings_store import SettingsStore
from circuitview.session.settings import Answers
from circuitview.session.state import Snapshot

if TYPE_CHECKING:  # torch is loaded in the worker
    from circuitview.core.checkpoint.state_dict import Described

log = logging.getLogger(__name__)

_FILES = (GGUF, *WEIGHTS_ENDINGS)
_FILTER = f"Models ({' '.join('*' + ending for ending in _FILES)});;All files (*)"


class Opener(QObject):
    """Fills the model menus and turns choices into edits."""

    def __init__(self, document: Document, store: SettingsStore, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._store, self._window = document, store, window
        self.dialog: ImportDialog | None = None
        self._describing: tuple[str, Job] | None = None
        self.models_menu = QMenu("&Models", window)
        self.recent_menu = QMenu("Open &recent", window)
        # Behind the model's name: the same entries, all in one.
        self.button_menu = QMenu(window)
        self._models = QActionGroup(self)
        self._models.setExclusionPolicy(QActionGroup.ExclusionPolicy.ExclusiveOptional)
        self._models.triggered.connect(self._on_model)
        self.recent_menu.triggered.connect(self._on_recent)
        self.models_menu.aboutToShow.connect(self._check_open_model)
        self.button_menu.aboutToShow.connect(self._check_open_model)
        self.recent_menu.aboutToShow.connect(self.fill_recent)
        self._fill_models()
        self.fill_recent()
        document.changed.connect(self._on_changed)

    def _fill_models(self) -> None:
        try:
            names = bundled_names()
        except CircuitviewError as error:
            log.warning("no bundled models: %s", error)
            names = ()
        for name in names:
            action = QAction(name, self)
            action.setData(name)
            action.setCheckable(True)
            self._models.addAction(action)
            self.models_menu.addAction(action)
            self.button_menu.addAction(action)
        if not names:
            self.models_menu.addAction("none in this installation").setEnabled(False)
        self._open = QAction("Open folder…", self)
        self._open.triggered.connect(self.choose_folder)
        self._open_file = QAction("Open file…", self)
        self._open_file.triggered.connect(self.choose_file)
        self.button_menu.addSeparator()
        self.button_menu.addMenu(self.recent_menu)
        self.button_menu.addAction(self._open)
        self.button_menu.addAction(self._open_file)

    def _check_open_model(self) -> None:
        for action in self._models.actions():
            action.setChecked(action.data() == self._document.state.model)

    def fill_recent(self) -> None:
        """Show the folders and files opened last."""
        self.recent_menu.clear()
        for folder in self._store.settings.recent:
            action = self.recent_menu.addAction(folder)
            action.setData(folder)
        self.recent_menu.setEnabled(bool(self._store.settings.recent))

    def _last_place(self) -> str:
        """Where the file dialogs start."""
        recent = self._store.settings.recent
        return str(FilePath(recent[0]).parent) if recent else str(FilePath.home())

    def choose_folder(self) -> None:
        """Ask for a folder and open it."""
        start = self._last_place()
        folder = QFileDialog.getExistingDirectory(self._window, "Open a model's folder", start)
        if folder:
            self.open_model(folder)

    def choose_file(self) -> None:
        """Ask for a file and open it."""
        start = self._last_place()
        file, _ = QFileDialog.getOpenFileName(self._window, "Open a model", start, _FILTER)
        if file:
            self.open_model(file)

    def open_model(self, model: str) -> None:
        """Open a bundled name, a folder or a file. Where that fails the last analysis stays."""
        if not model.endswith(WEIGHTS_ENDINGS):
            self._document.edit(lambda state: state.with_model(model))
            return
        self._forget_description()
        job = self._document.jobs.start(partial(_describe, model), urgent=True)
        job.finished.connect(self._on_described)
        job.failed.connect(self._on_not_described)
        self._describing = model, job

    def _forget_description(self) -> None:
        if self._describing is not None:
            job = self._describing[1]
            job.finished.disconnect(self._on_described)
            job.failed.disconnect(self._on_not_described)
            job.cancel()
            self._describing = None

    def _on_described(self, described: "Described | None") -> None:
        assert self._describing is not None
        model, _ = self._describing
        self._describing = None
        if described is None:
            self._document.edit(lambda state: state.with_model(model))
            return
        known = self._store.settings.answers.get(model)
        if self.dialog is not None:
            self.dialog.close()
        self.dialog = ImportDialog(self._document, FilePath(model), described, known, self._window)
        self.dialog.finished.connect(self._on_dialog_closed)
        self.dialog.open()

    def _on_not_described(self, failure: Failure) -> None:
        self._describing = None
        self._document.report(failure.text, failure.details, "analysis")

    def _on_dialog_closed(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None

    def open_again(self, model: str) -> None:
        """Open what was open before, with what was said of it then."""
        answers = self._store.settings.answers.get(model)
        if answers is None:
            self.open_model(model)
            return
        given, tokenizer = answers.given, answers.tokenizer
        self._document.edit(lambda state: state.with_model(model, given=given, tokenizer=tokenizer))

    def _on_model(self, action: QAction) -> None:
        action.setChecked(True)
        self.open_model(str(action.data()))

    def _on_recent(self, action: QAction) -> None:
        if action.data():
            self.open_again(str(action.data()))

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        facts, earlier = snapshot.results.model, before.results.model
        if facts is None or facts is earlier or snapshot.failure:
            return
        if facts.key not in bundled_names():  # only what could be opened is remembered
            state = snapshot.state
            said = state.given or state.tokenizer
            answers = Answers(given=state.given, tokenizer=state.tokenizer) if said else None
            self._store.change(lambda settings: settings.opened(facts.key, answers))
            self.fill_recent()


def _describe(model: str) -> "Described | None":
    """What a weights file leaves open; None where it belongs to a whole model."""
    from circuitview.core.checkpoint import needs_answers
    from circuitview.core.checkpoint.state_dict import describe

    return describe(FilePath(model)) if needs_answers(model) else None


def dropped_model(data: QMimeData) -> str | None:
    """The one local folder or model file that is dropped, else None."""
    urls = data.urls()
    if len(urls) != 1 or not urls[0].isLocalFile():
        return None
    path = FilePath(urls[0].toLocalFile())
    if path.is_dir():
        return str(path)
    return str(path) if path.suffix.lower() in (*_FILES, ".json") else None
