"""The window. It puts the parts together; each part listens to the document by itself."""

import base64
import logging
from dataclasses import replace
from typing import cast

import msgspec
from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QPaintEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QMainWindow,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.device import DeviceName
from circuitview.gui.actions import Menus
from circuitview.gui.balance_line import BalanceLine
from circuitview.gui.cancel_button import CancelButton
from circuitview.gui.copying import Copying
from circuitview.gui.diagram.view import DiagramView
from circuitview.gui.dock_host import LAYOUT_VERSION, DockHost, find_panels
from circuitview.gui.document import Document
from circuitview.gui.expansion_choice import ExpansionChoice
from circuitview.gui.export_dialog import ExportDialog
from circuitview.gui.export_job import Exportable, let_go_of_clipboard
from circuitview.gui.floor_bar import FloorBar
from circuitview.gui.help_pages import about_box, help_box, shortcuts_box
from circuitview.gui.message_strip import MessageStrip
from circuitview.gui.offline_mark import OfflineMark
from circuitview.gui.opening import Opener, dropped_model
from circuitview.gui.panels.panel import Panel
from circuitview.gui.prompt_bar import PromptBar
from circuitview.gui.settings_store import SettingsStore
from circuitview.gui.size_question import SizeQuestion
from circuitview.gui.theming import Wardrobe
from circuitview.gui.token_strip import TokenStrip
from circuitview.session.settings import Settings, ThemeChoice
from circuitview.session.state import Selection, Snapshot, State

log = logging.getLogger(__name__)

_FIRST_SIZE = QSize(1440, 900)
_TOLD_FOR = 5000  # ms that a confirmation stands where the balance is


class MainWindow(QMainWindow):
    """Prompt, tokens, diagram, panels, balance.

    Signals: first_painted, once, after the window has been on the screen.
    """

    first_painted = Signal()

    def __init__(
        self,
        document: Document,
        store: SettingsStore,
        panels: list[type[Panel]] | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName("main-window")
        self.setAcceptDrops(True)
        self.document, self.store = document, store
        app = cast(QApplication, QApplication.instance())
        self.wardrobe = Wardrobe(app, self, document, store.settings.theme)
        self.prompt_bar = PromptBar(document)
        self.message_strip = MessageStrip(document)
        self.token_strip = TokenStrip(document)
        self.diagram = DiagramView(document)
        self.floor_bar = FloorBar(document)
        self.waiting, self.centre = QLabel("starting…"), QStackedWidget()
        self.host = DockHost(document, self._centre(), find_panels() if panels is None else panels)
        self.balance = BalanceLine(document)
        self.expansion_choice = ExpansionChoice(document)
        self.offline, self.cancel = OfflineMark(), CancelButton(document)
        self.doing = QLabel()
        self.opener = Opener(document, store, self)
        self.size_question = SizeQuestion(document, self)
        self._assemble()
        self.copying = Copying(document, store, self.diagram, self.host)
        self.menus = Menus(self.menuBar(), self, self.opener, self.host, self)
        self.menus.show_theme(store.settings.theme)
        self.prompt_bar.set_model_menu(self.opener.button_menu)
        self._dialog: ExportDialog | None = None
        self._painted = False
        self._first_layout = False
        self._after_paint = QTimer(self)
        self._after_paint.setSingleShot(True)
        self._after_paint.timeout.connect(self.first_painted)
        document.changed.connect(self._on_changed)
        document.computing_changed.connect(self._on_computing)
        document.told.connect(self._on_told)
        self.diagram.layer_shown.connect(self.floor_bar.show_layer)
        self.host.export_asked.connect(self.export)
        self.first_painted.connect(self.host.settle)
        self._restore()
        # What is typed first is a prompt, not a key pressed on the first button.
        self.prompt_bar.prompt.setFocus()

    def _centre(self) -> QWidget:
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        # Until there is something to draw: a figure's first text makes the font be read, which
        # would hold up the first paint.
        self.waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.waiting.setForegroundRole(self.waiting.palette().ColorRole.PlaceholderText)
        self.centre.addWidget(self.waiting)
        self.centre.addWidget(self.diagram)
        column.addWidget(self.centre, 1)
        column.addWidget(self.floor_bar)
        return centre

    def _assemble(self) -> None:
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.prompt_bar)
        column.addWidget(self.message_strip)
        column.addWidget(self.token_strip)
        column.addWidget(self.host, 1)
        self._column = column
        self.setCentralWidget(whole)
        bar = self.statusBar()
        bar.setSizeGripEnabled(False)
        bar.setContentsMargins(6, 0, 6, 0)
        bar.addWidget(self.balance, 1)
        bar.addPermanentWidget(self.doing)
        bar.addPermanentWidget(self.cancel)
        bar.addPermanentWidget(self.expansion_choice)
        bar.addPermanentWidget(self.balance.held)
        bar.addPermanentWidget(self.offline)
        self._retitle(self.document.snapshot)

    # --- following the document ------------------------------------------------------------------

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        results, failed = snapshot.results, snapshot.failure is not None
        if failed and snapshot.failure is not before.failure:
            self.statusBar().clearMessage()  # an older success would stand beside it
        if results.expansion is not None or failed:
            self.centre.setCurrentWidget(self.diagram)
        try:
            self.diagram.expect(snapshot)
            # Tokens and message have taken or given back lines above: let the diagram have its
            # room now, or it would be drawn for the old one, and soon after for the new.
            self._settle_lines()
            self.diagram.show_snapshot(snapshot)
        except Exception as error:
            log.exception("the diagram can't be drawn")
            self.balance.setText(f"The diagram can't be drawn: {type(error).__name__}: {error}")
        self.menus.show_snapshot(snapshot, self.document.state)
        if results is not before.results:
            self._retitle(snapshot)

    def _settle_lines(self) -> None:
        # Inner layouts first: only they tell the outer one that they need another height.
        for line in (self.message_strip, self.token_strip):
            inner = line.layout()
            if inner is not None:
                inner.activate()
        self._column.activate()

    def _retitle(self, snapshot: Snapshot) -> None:
        facts, prompt = snapshot.results.model, " ".join(snapshot.state.title.split())
        shown = prompt if len(prompt) <= 60 else prompt[:59] + "…"
        self.setWindowTitle(
            "circuitview" if facts is None else f"{shown} — {facts.name} — circuitview"
        )

    def _on_computing(self, doing: str) -> None:
        self.doing.setText(f"{doing}…" if doing else "")
        if doing:
            self.waiting.setText(f"{doing}…")

    def _on_told(self, text: str) -> None:
        self.statusBar().showMessage(text, _TOLD_FOR)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._first_layout:
            # Docks take their widths only from a window that has its size.
            self._first_layout = False
            self._column.activate()
            self.reset_layout()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            self._after_paint.start(0)

    # --- coming and going ------------------------------------------------------------------------

    def _restore(self) -> None:
        settings, screen = self.store.settings, self.screen().availableSize()
        self.resize(_FIRST_SIZE.boundedTo(screen))
        try:
            geometry = base64.b64decode(settings.geometry, validate=True)
        except ValueError:
            geometry = b""
        if geometry:
            self.restoreGeometry(QByteArray(geometry))
        self.ensurePolished()
        self._column.activate()
        known = settings.layout_version == LAYOUT_VERSION
        self._first_layout = not (known and self.host.restore_layout(settings.docks))
        if self._first_layout:
            self.reset_layout()

    def keep_settings(self) -> None:
        """Write down what is to come back next time."""
        shown = self.document.snapshot
        good = shown.results.expansion is not None

        def change(settings: Settings) -> Settings:
            made = msgspec.structs.replace(
                settings,
                geometry=base64.b64encode(self.saveGeometry().data()).decode(),
                docks=self.host.layout_text(),
                layout_version=LAYOUT_VERSION,
                theme=self.wardrobe.choice,
            )
            if good:  # what failed is not worth coming back to
                made = msgspec.structs.replace(
                    made,
                    model=shown.state.model,
                    prompt=shown.state.prompt,
                    prepend_bos=shown.state.prepend_bos,
                )
            return made

        self.store.change(change)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.keep_settings()
        if not self.document.files.finish():
            event.ignore()  # why a file can't be written is told in the strip
            return
        # What runs in the worker can't always be cut short, an import of torch least of all: nobody
        # is to look at a frozen window meanwhile.
        self.hide()
        QGuiApplication.sync()
        self.document.jobs.shutdown()
        let_go_of_clipboard()
        super().closeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_model(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        model = dropped_model(event.mimeData())
        if model is not None:
            event.acceptProposedAction()
            self.opener.open_model(model)

    # --- acts of the menus -----------------------------------------------------------------------

    def exportables(self) -> list[Exportable]:
        """The diagram and all panels."""
        return [self.diagram, *self.host.panels()]

    def export(self, name: str) -> None:
        """Open the export dialog on the diagram or a panel."""
        if self._dialog is not None:
            self._dialog.close()
        self._dialog = ExportDialog(self.document, self.exportables(), name, self.store, self)
        self._dialog.finished.connect(self._on_export_closed)
        self._dialog.show()

    def _on_export_closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None

    def export_diagram(self) -> None:
        self.export(self.diagram.NAME)

    def export_panel(self) -> None:
        dock = self.host.focused_dock() or next(iter(self.host.docks.values()), None)
        self.export(dock.kind.NAME if dock is not None else self.diagram.NAME)

    def clear_selection(self) -> None:
        self.document.edit(_select_nothing)

    def zoom_in(self) -> None:
        self.diagram.zoom_in()

    def zoom_out(self) -> None:
        self.diagram.zoom_out()

    def fit(self) -> None:
        self.diagram.fit()

    def reset_layout(self) -> None:
        """The panels as on the first day."""
        self.host.arrange_first(self.width(), self.height() - 190)

    def float_panel(self) -> None:
        dock = self.host.focused_dock()
        if dock is not None:
            dock.setFloating(not dock.isFloating())

    def maximise_panel(self) -> None:
        dock = self.host.focused_dock()
        if self.host.maximised:
            self.host.restore_arrangement()
        elif dock is not None:
            self.host.toggle_maximised(dock.kind.NAME)

    def choose_theme(self, choice: ThemeChoice) -> None:
        self.wardrobe.choose(choice)
        self.menus.show_theme(choice)
        self.store.change(lambda settings: msgspec.structs.replace(settings, theme=choice))

    def edit_prompt(self) -> None:
        self.prompt_bar.prompt.setFocus()
        self.prompt_bar.prompt.selectAll()

    def toggle_bos(self) -> None:
        self.prompt_bar.toggle_bos()

    def dest_left(self) -> None:
        self.token_strip.step(-1)

    def dest_right(self) -> None:
        self.token_strip.step(1)

    def dest_last(self) -> None:
        self.document.edit(_dest_last)

    def top_prediction(self) -> None:
        self.document.edit(_top_prediction)

    def strongest_head(self) -> None:
        self.document.open_chain(None)

    def toggle_precision(self, exact: bool) -> None:
        self.document.edit(lambda state: replace(state, dtype="float64" if exact else "float32"))

    def choose_expansion(self, through_mlps: bool) -> None:
        self.document.edit(lambda state: replace(state, through_mlps=through_mlps))

    def choose_device(self, device: DeviceName) -> None:
        self.document.edit(lambda state: replace(state, device=device))

    def show_held_fixed(self) -> None:
        help_box(self, "held fixed").show()

    def show_lab_help(self) -> None:
        help_box(self, "ablation").show()

    def show_freezing_help(self) -> None:
        help_box(self, "freezing").show()

    def show_shortcuts(self) -> None:
        shortcuts_box(self, self.menus.shortcuts()).show()

    def show_about(self) -> None:
        about_box(self).show()


def _select_nothing(state: State) -> State:
    return replace(state, selection=Selection())


def _dest_last(state: State) -> State:
    return replace(state, dest=None)


def _top_prediction(state: State) -> State:
    return replace(state, target=None)
