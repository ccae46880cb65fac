"""Opening models: the bundled ones, recent folders, any folder by dialog or by dropping it."""

import logging
from pathlib import Path as FilePath

from PySide6.QtCore import QMimeData, QObject
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from circuitview.core.bundled import bundled_names
from circuitview.core.names import CircuitviewError
from circuitview.gui.document import Document
from circuitview.gui.settings_store import SettingsStore
from circuitview.session.state import Snapshot

log = logging.getLogger(__name__)


class Opener(QObject):
    """Fills the model menus and turns choices into edits."""

    def __init__(self, document: Document, store: SettingsStore, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._store, self._window = document, store, window
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
        self.button_menu.addSeparator()
        self.button_menu.addMenu(self.recent_menu)
        self.button_menu.addAction(self._open)

    def _check_open_model(self) -> None:
        for action in self._models.actions():
            action.setChecked(action.data() == self._document.state.model)

    def fill_recent(self) -> None:
        """Show the folders opened last."""
        self.recent_menu.clear()
        for folder in self._store.settings.recent:
            action = self.recent_menu.addAction(folder)
            action.setData(folder)
        self.recent_menu.setEnabled(bool(self._store.settings.recent))

    def choose_folder(self) -> None:
        """Ask for a folder and open it."""
        recent = self._store.settings.recent
        start = str(FilePath(recent[0]).parent) if recent else str(FilePath.home())
        folder = QFileDialog.getExistingDirectory(self._window, "Open a model's folder", start)
        if folder:
            self.open_model(folder)

    def open_model(self, model: str) -> None:
        """Open a bundled name or a folder. Where that fails the last analysis stays."""
        self._document.edit(lambda state: state.with_model(model))

    def _on_model(self, action: QAction) -> None:
        action.setChecked(True)
        self.open_model(str(action.data()))

    def _on_recent(self, action: QAction) -> None:
        if action.data():
            self.open_model(str(action.data()))

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        facts, earlier = snapshot.results.model, before.results.model
        if facts is None or facts is earlier or snapshot.failure:
            return
        if facts.key not in bundled_names():  # only what could be opened is remembered
            self._store.change(lambda settings: settings.opened(facts.key))
            self.fill_recent()


def dropped_folder(data: QMimeData) -> str | None:
    """The one local folder that is dropped, or the folder of the one file; else None."""
    urls = data.urls()
    if len(urls) != 1 or not urls[0].isLocalFile():
        return None
    path = FilePath(urls[0].toLocalFile())
    if path.is_dir():
        return str(path)
    return str(path.parent) if path.suffix in (".safetensors", ".json") else None
