"""What can be done with a run beside looking at it: kept, opened again, repeated elsewhere."""

import json
from collections.abc import Generator
from functools import partial
from pathlib import Path as FilePath
from typing import Protocol, cast

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton, QWidget

from circuitview.core.files import write_bytes_whole
from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress
from circuitview.gui.document import Document
from circuitview.gui.help_pages import help_box
from circuitview.gui.jobs import Failure
from circuitview.gui.lab_queue import LabRun
from circuitview.session.command_line import command_line
from circuitview.session.lab import Run


class Shows(Protocol):
    """Who shows a run."""

    @property
    def shown_run(self) -> LabRun | None: ...

    def show_run(self, entry: LabRun) -> None: ...


class LabMenu(QObject):
    """The button with the menu."""

    def __init__(self, document: Document, shows: QWidget) -> None:
        super().__init__(shows)
        self._document, self._parent = document, shows
        self.menu = QMenu(shows)
        self.save = self._act("Save run…", self._on_save)
        self.open = self._act("Open run…", self._on_open)
        self.json = self._act("Export as JSON…", self._on_json)
        self.menu.addSeparator()
        self.copy = self._act("Copy as command line", self.copy_command)
        self.clear = self._act("Clear ended runs", document.lab.clear_ended)
        self.menu.addSeparator()
        self.menu.addAction(document.effects.action)
        self.menu.setToolTipsVisible(True)
        self.menu.addSeparator()
        self.explain = self._act("What is measured…", self.show_help)
        self.menu.aboutToShow.connect(self._allow)
        self.button = QToolButton()
        self.button.setText("More ▾")  # a sign of its own: the style's would lie over the word
        self.button.setObjectName("menu-button")
        self.button.setToolTip("Save, open and repeat runs; what the numbers mean")
        self.button.setMenu(self.menu)
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    def _act(self, text: str, does: object) -> QAction:
        action = QAction(text, self)
        action.triggered.connect(does)
        self.menu.addAction(action)
        return action

    @property
    def _shown(self) -> LabRun | None:
        return cast(Shows, self._parent).shown_run

    def _allow(self) -> None:
        shown = self._shown
        reason = _why_unkept(shown)
        for action in (self.save, self.json):
            action.setEnabled(reason is None)
            action.setToolTip(action.text().rstrip("…") if reason is None else reason)
        self.copy.setEnabled(shown is not None)
        self.clear.setEnabled(any(run.ended for run in self._document.lab.runs))

    def _on_save(self) -> None:
        folder, _ = QFileDialog.getSaveFileName(self._parent, "Save the run as a folder", "run")
        if folder:
            self.save_to(FilePath(folder))

    def save_to(self, folder: FilePath) -> None:
        """Keep the run that is shown in a new folder; the document says when it is there, or why
        that can't be done."""
        from circuitview.session.run_file import save_run

        shown = self._shown
        if shown is not None and shown.run is not None:
            self._document.files.write(folder, partial(save_run, shown.run, folder))

    def _on_json(self) -> None:
        file, _ = QFileDialog.getSaveFileName(
            self._parent, "Export the run as JSON", "run.json", "JSON (*.json)"
        )
        if file:
            self.write_json(FilePath(file))

    def write_json(self, file: FilePath) -> None:
        """Write what `circuitview ablate --format json` prints of the run that is shown."""
        shown = self._shown
        if shown is not None and shown.run is not None:
            self._document.files.write(file, partial(_write_json, shown.run, file))

    def _on_open(self) -> None:
        folder = QFileDialog.getExistingDirectory(self._parent, "The folder of a saved run")
        if folder:
            self.open_from(FilePath(folder))

    def open_from(self, folder: FilePath) -> None:
        """List a saved run, and show it; the document says where that can't be done. It is read in
        the worker: ten thousand rows are checked one by one."""
        job = self._document.jobs.start(partial(_opened, folder), urgent=True)
        job.finished.connect(self._on_opened)
        job.failed.connect(self._on_not_opened)

    def _on_opened(self, found: tuple[Run, bool]) -> None:
        self._document.settle("run or file")
        cast(Shows, self._parent).show_run(self._document.lab.add_opened(*found))

    def _on_not_opened(self, failure: Failure) -> None:
        self._document.report(failure.text, failure.details, "run or file")

    def copy_command(self) -> None:
        """Put the command line that repeats the run that is shown on the clipboard."""
        shown = self._shown
        if shown is not None:
            QGuiApplication.clipboard().setText(command_line(shown.question))
            self._document.tell("The command line is on the clipboard")

    def show_help(self) -> None:
        help_box(self._parent, "ablation").show()


def _why_unkept(shown: LabRun | None) -> str | None:
    """Why a run can't be written to a file; None where it can."""
    if shown is None:
        return "There is no run yet"
    if not shown.ended:
        return "The run has not ended yet"
    if shown.run is None:
        how = "was cancelled" if shown.state == "cancelled" else "failed"
        return f"The run {how}: only whole runs are kept; run it again"
    return None


def _opened(folder: FilePath) -> Generator[Progress, None, tuple[Run, bool]]:
    """A saved run, and whether its model is gone, or has other weights by now: a path may hold the
    next checkpoint of a training run."""
    from circuitview.core.fingerprint import hash_of_model
    from circuitview.session.run_file import open_run

    run = open_run(folder)
    try:
        now = yield from hash_of_model(run.question.model)
    except CircuitviewError:  # the numbers can be looked at without it
        return run, True
    return run, now != run.model_hash


def _write_json(run: Run, file: FilePath) -> None:
    from circuitview.session.run_text import as_json

    text = json.dumps(as_json(run), indent=1, ensure_ascii=False, allow_nan=False)
    write_bytes_whole(file, f"{text}\n".encode())
