"""The menus: every act of the window, with the platform's shortcuts.

One Menus object keeps all actions; what they do is given to it as bound methods by the window.
"""

from typing import Protocol

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

from circuitview.core.device import DEVICES, DeviceName
from circuitview.gui.copying import Copying
from circuitview.gui.dock_host import DockHost
from circuitview.gui.document import Document
from circuitview.gui.opening import Opener
from circuitview.gui.prompt_bar import COMPARE_KEYS, SHOW_KEYS, PromptBar
from circuitview.session.settings import ThemeChoice
from circuitview.session.state import ModelFacts, Snapshot, State

_THEMES: tuple[tuple[ThemeChoice, str], ...] = (
    ("system", "&Follow the system"),
    ("light", "&Light"),
    ("dark", "&Dark"),
)
_DEVICES: dict[DeviceName, str] = {
    "cpu": "&CPU",
    "cuda": "&Graphics card (CUDA)",
    "mps": "&Apple graphics (MPS)",
}
Shortcut = QKeySequence.StandardKey | str | None


class Acts(Protocol):
    """What the menus call on the window, and on its prompt bar."""

    prompt_bar: PromptBar
    document: Document
    copying: Copying

    def export_diagram(self) -> None: ...
    def export_panel(self) -> None: ...
    def clear_selection(self) -> None: ...
    def zoom_in(self) -> None: ...
    def zoom_out(self) -> None: ...
    def fit(self) -> None: ...
    def reset_layout(self) -> None: ...
    def float_panel(self) -> None: ...
    def maximise_panel(self) -> None: ...
    def choose_theme(self, choice: ThemeChoice) -> None: ...
    def edit_prompt(self) -> None: ...
    def toggle_bos(self) -> None: ...
    def dest_left(self) -> None: ...
    def dest_right(self) -> None: ...
    def dest_last(self) -> None: ...
    def top_prediction(self) -> None: ...
    def strongest_head(self) -> None: ...
    def toggle_precision(self, exact: bool) -> None: ...
    def choose_expansion(self, through_mlps: bool) -> None: ...
    def choose_device(self, device: DeviceName) -> None: ...
    def show_held_fixed(self) -> None: ...
    def show_lab_help(self) -> None: ...
    def show_freezing_help(self) -> None: ...
    def show_shortcuts(self) -> None: ...
    def show_about(self) -> None: ...
    def close(self) -> bool: ...


class Menus(QObject):
    """Builds the menu bar and keeps its actions."""

    def __init__(
        self, bar: QMenuBar, acts: Acts, opener: Opener, host: DockHost, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._acts, self._opener, self._host = acts, opener, host
        self.actions_by_name: dict[str, QAction] = {}
        self.theme_group = QActionGroup(self)
        self.device_group = QActionGroup(self)
        self.expansion_group = QActionGroup(self)
        self._menus: list[QMenu] = []
        self._facts: ModelFacts | None = None
        self._file(self._menu(bar, "&File"))
        self._edit(self._menu(bar, "&Edit"))
        self._view(self._menu(bar, "&View"))
        self._prompt(self._menu(bar, "&Prompt"))
        self._analysis(self._menu(bar, "&Analysis"))
        self._help(self._menu(bar, "&Help"))

    def _menu(self, bar: QMenuBar, title: str) -> QMenu:
        menu = QMenu(title, bar)
        bar.addMenu(menu)
        self._menus.append(menu)
        return menu

    def _act(self, menu: QMenu, text: str, does: object, shortcut: Shortcut = None) -> QAction:
        action = QAction(text, self)
        if shortcut is not None:
            action.setShortcut(QKeySequence(shortcut))
        action.triggered.connect(does)
        menu.addAction(action)
        self.actions_by_name[text.replace("&", "").rstrip("…")] = action
        return action

    def _file(self, menu: QMenu) -> None:
        key, acts = QKeySequence.StandardKey, self._acts
        self._act(menu, "&Open folder…", self._opener.choose_folder, key.Open)
        self._act(menu, "Open &file…", self._opener.choose_file, "Ctrl+Shift+O")
        menu.addMenu(self._opener.models_menu)
        menu.addMenu(self._opener.recent_menu)
        menu.addSeparator()
        self._act(menu, "&Export diagram…", acts.export_diagram, "Ctrl+Shift+E")
        self._act(menu, "Export &panel…", acts.export_panel, "Ctrl+E")
        self._act(menu, "&Copy picture", acts.copying.picture, "Ctrl+Shift+C")
        menu.addSeparator()
        leave = self._act(menu, "&Quit", acts.close, key.Quit)
        leave.setMenuRole(QAction.MenuRole.QuitRole)
        if leave.shortcut().isEmpty():
            leave.setShortcut("Ctrl+Q")

    def _edit(self, menu: QMenu) -> None:
        acts = self._acts
        self._act(menu, "Copy &numbers", acts.copying.numbers, "Ctrl+Alt+C")
        self._act(menu, "Copy &balance", acts.copying.balance)
        menu.addSeparator()
        self._act(menu, "&Select nothing", acts.clear_selection, "Ctrl+Shift+A")

    def _view(self, menu: QMenu) -> None:
        key, acts = QKeySequence.StandardKey, self._acts
        menu.setToolTipsVisible(True)
        self._act(menu, "Zoom &in", acts.zoom_in, key.ZoomIn)
        self._act(menu, "Zoom &out", acts.zoom_out, key.ZoomOut)
        self._act(menu, "&Fit the diagram", acts.fit, "Ctrl+0")
        by_effect = acts.document.effects.action
        menu.addAction(by_effect)
        self.actions_by_name["Colour the diagram by effect"] = by_effect
        menu.addSeparator()
        for dock in self._host.docks.values():
            menu.addAction(dock.toggleViewAction())
        menu.addSeparator()
        self._act(menu, "&Maximise panel", acts.maximise_panel, "Ctrl+Shift+M")
        self._act(menu, "F&loat panel", acts.float_panel, "Ctrl+Shift+F")
        self._act(menu, "&Reset layout", acts.reset_layout)
        menu.addSeparator()
        themes = QMenu("&Theme", menu)
        menu.addMenu(themes)
        self._menus.append(themes)
        for choice, text in _THEMES:
            action = self.theme_group.addAction(text)
            action.setCheckable(True)
            action.setData(choice)
            themes.addAction(action)
        self.theme_group.triggered.connect(self._on_theme)

    def _prompt(self, menu: QMenu) -> None:
        acts = self._acts
        self._act(menu, "&Edit the prompt", acts.edit_prompt, "Ctrl+L")
        self._act(menu, "&BOS on or off", acts.toggle_bos, "Ctrl+B")
        menu.addSeparator()
        bar = acts.prompt_bar
        self._act(menu, "&Compare with a second prompt…", bar.compare, COMPARE_KEYS)
        shows = (bar.show_a, bar.show_b, bar.show_difference)
        names = ("Show prompt A", "Show prompt B", "Show B − A")
        self.of_two = [
            self._act(menu, name, show, keys)
            for name, show, keys in zip(names, shows, SHOW_KEYS, strict=True)
        ]
        self.of_two.append(self._act(menu, "&Remove the second prompt", bar.stop_comparing))
        menu.addSeparator()
        self._act(menu, "Dest one &left", acts.dest_left, "Alt+Left")
        self._act(menu, "Dest one &right", acts.dest_right, "Alt+Right")
        self._act(menu, "&Dest last", acts.dest_last, "Alt+End")
        menu.addSeparator()
        self._act(menu, "&Top prediction as target", acts.top_prediction, "Ctrl+T")
        self._act(menu, "&Strongest head in the panels", acts.strongest_head, "Ctrl+G")

    def _analysis(self, menu: QMenu) -> None:
        acts = self._acts
        menu.setToolTipsVisible(True)
        for through, text in ((False, "MLP outputs as &sources"), (True, "Paths through &MLPs")):
            action = self.expansion_group.addAction(text)
            action.setCheckable(True)
            action.setData(through)
            menu.addAction(action)
        self.expansion_group.triggered.connect(self._on_expansion)
        menu.addSeparator()
        self.exact = self._act(menu, "&Compute in float64", acts.toggle_precision)
        self.exact.setCheckable(True)
        devices = QMenu("&Device", menu)
        devices.setToolTipsVisible(True)
        menu.addMenu(devices)
        self._menus.append(devices)
        for device in DEVICES:
            action = self.device_group.addAction(_DEVICES[device])
            action.setCheckable(True)
            action.setData(device)
            # What there is is known once torch is loaded.
            action.setEnabled(device == "cpu")
            devices.addAction(action)
        self.device_group.triggered.connect(self._on_device)

    def _help(self, menu: QMenu) -> None:
        acts = self._acts
        self._act(menu, "&What is held fixed", acts.show_held_fixed, "F1")
        self._act(menu, "What &ablation measures", acts.show_lab_help)
        self._act(menu, "What &freezing shows", acts.show_freezing_help)
        self._act(menu, "&Keyboard shortcuts", acts.show_shortcuts)
        about = self._act(menu, "&About circuitview", acts.show_about)
        about.setMenuRole(QAction.MenuRole.AboutRole)

    def _on_theme(self, action: QAction) -> None:
        self._acts.choose_theme(action.data())

    def _on_expansion(self, action: QAction) -> None:
        self._acts.choose_expansion(bool(action.data()))

    def _on_device(self, action: QAction) -> None:
        self._acts.choose_device(action.data())

    def show_snapshot(self, snapshot: Snapshot, state: State) -> None:
        """Tick what is asked for, and grey out, with the reason, what can't be had."""
        facts = snapshot.results.model
        self.exact.setChecked(state.dtype == "float64")
        for action in self.device_group.actions():
            action.setChecked(action.data() == state.device)
        for action in self.of_two:
            action.setEnabled(state.other is not None)
        through = state.through_mlps and (facts is None or not facts.config.attn_only)
        for action in self.expansion_group.actions():
            action.setChecked(action.data() == through)
        if facts is not None and facts is not self._facts:
            self._facts = facts
            self._show_facts(facts)

    def _show_facts(self, facts: ModelFacts) -> None:
        _allow(self.exact, facts.no_float64)
        sources, through = self.expansion_group.actions()
        _allow(sources, f"{facts.name} has no MLPs" if facts.config.attn_only else None)
        _allow(through, facts.no_mlp_paths)
        missing = dict(facts.no_device)
        for action in self.device_group.actions():
            reason = missing.get(action.data())
            text = _DEVICES[action.data()]
            action.setText(text if reason is None else f"{text}: {reason}")
            _allow(action, reason)

    def show_theme(self, choice: ThemeChoice) -> None:
        """Tick the chosen theme."""
        for action in self.theme_group.actions():
            action.setChecked(action.data() == choice)

    def shortcuts(self) -> list[tuple[str, str]]:
        """What each shortcut does, for the help page."""
        return [
            (name, action.shortcut().toString(QKeySequence.SequenceFormat.NativeText))
            for name, action in self.actions_by_name.items()
            if not action.shortcut().isEmpty()
        ]


def _allow(action: QAction, reason: str | None) -> None:
    """Enable `action`, or grey it out with the reason as its hint."""
    action.setEnabled(reason is None)
    action.setToolTip(action.text().replace("&", "") if reason is None else reason)
