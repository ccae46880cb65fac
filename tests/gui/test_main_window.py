"""The window as a whole: start, linked views, failures, layout, menus."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path as FilePath

import msgspec
import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QApplication, QFileDialog

from circuitview.core import expansion as expansion_module
from circuitview.core.names import Head
from circuitview.core.progress import Progress
from circuitview.figures.theme import LIGHT
from circuitview.gui.app import ExceptionHook
from circuitview.gui.diagram import view as view_module
from circuitview.gui.dock_host import find_panels
from circuitview.gui.dock_widths import LEAST
from circuitview.gui.floor_bar import floor_of_step, hidden_text, step_of_floor
from circuitview.gui.opening import dropped_model
from circuitview.session.balance import balance_text
from circuitview.session.settings import ExportChoices
from circuitview.session.state import Snapshot
from tests.gui.conftest import MODEL, PROMPT, WAIT, ask, unbalanced
from tests.tiny_models import Tiny, build_bundle

FIRST_PAINT = """
import sys
from PySide6.QtCore import QCoreApplication
from circuitview.gui import app
from circuitview.gui.main_window import MainWindow

def on_paint():
    heavy = [name for name in ("torch", "transformer_lens", "transformers") if name in sys.modules]
    print("loaded at first paint:", heavy)
    QCoreApplication.instance().closeAllWindows()

begin = MainWindow.__init__
def init(self, *arguments):
    begin(self, *arguments)
    self.first_painted.connect(on_paint)
MainWindow.__init__ = init
sys.exit(app.main("induction-by-hand", "I like green tea"))
"""


def test_typing_in_a_fresh_window_edits_the_prompt(window):
    assert window.focusWidget() is window.prompt_bar.prompt


def test_window_paints_before_torch_is_imported(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_PAINT],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=FilePath(__file__).parents[2],
        check=False,
    )
    assert "loaded at first paint: []" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == 0, ran.stderr


def test_all_views_follow_a_change_of_dest(qtbot, window, document):
    ask(qtbot, document, lambda state: replace(state, dest=4))
    assert window.balance.text() == balance_text(document.snapshot.results.expansion)
    assert [chip.outlined for chip in window.token_strip.tokens.chips].index(True) == 4
    assert window.host.docks["counting"].panel.seen[-1] is document.snapshot
    assert window.diagram._snapshot is document.snapshot


def test_balance_line_says_what_is_held_and_in_which_precision(qtbot, window, document):
    assert "error" in window.balance.text()
    assert window.balance.held.text() == "float32 · patterns and norm scales held"
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        window.menus.actions_by_name["Compute in float64"].trigger()
    assert window.balance.held.text().startswith("float64")


def test_how_a_gguf_file_packs_its_weights_stands_beside_the_precision(window, document):
    before = document.snapshot
    facts = replace(before.results.model, stored="Q4_1")
    shown = replace(before, results=replace(before.results, model=facts))
    window.balance.show_snapshot(shown)
    assert window.balance.held.text() == "float32 from Q4_1 · patterns and norm scales held"
    window.prompt_bar._show_model(shown)
    assert "stored in Q4_1" in window.prompt_bar.model_button.toolTip()


def test_failure_is_told_in_the_strip_and_can_be_copied_and_dismissed(qtbot, window, document):
    assert not window.message_strip.isVisible()
    ask(qtbot, document, lambda state: state.with_model("no-such-model"))
    strip = window.message_strip
    assert strip.isVisible()
    assert "no-such-model" in strip.text.text()
    assert "last good analysis stays" in strip.text.text()
    strip.copy_button.click()
    assert "no-such-model" in QGuiApplication.clipboard().text()
    assert PROMPT in QGuiApplication.clipboard().text()
    strip.close_button.click()
    assert not strip.isVisible()
    assert window.balance.text() == balance_text(document.snapshot.results.expansion)


def test_imbalance_replaces_the_diagram_by_the_reason(qtbot, window, document, monkeypatch):
    monkeypatch.setattr(expansion_module, "expansion_steps", unbalanced)
    ask(qtbot, document, lambda state: replace(state, dest=4))
    assert window.balance.text().startswith("Refused: the paths don't add up")
    assert window.balance.property("refused") == "true"
    assert window.token_strip.tokens.chips == ()
    assert window.host.docks["counting"].panel.seen[-1].results.expansion is None
    assert not window.message_strip.isVisible()


def test_broken_folder_leaves_the_last_analysis(qtbot, window, document, tmp_path, monkeypatch):
    build_bundle(tmp_path / "broken", Tiny())
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"not weights")
    good = document.snapshot.results
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "broken"))
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        window.menus.actions_by_name["Open folder"].trigger()
    assert "safetensors" in document.snapshot.failure
    assert document.snapshot.results is good
    assert window.store.settings.recent == ()
    assert window.prompt_bar.model_button.text().startswith(MODEL)


def test_folder_is_opened_remembered_and_offered_again(qtbot, window, document, tmp_path):
    folder = str(build_bundle(tmp_path / "mine", Tiny()))
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        window.opener.open_model(folder)
    assert document.snapshot.failure is None
    assert document.snapshot.results.model.name == "mine"
    assert window.store.settings.recent == (folder,)
    assert [a.text() for a in window.opener.recent_menu.actions()] == [folder]
    assert "mine" in window.windowTitle()
    models = [a for a in window.opener.models_menu.actions() if a.text() == MODEL]
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        models[0].trigger()
    assert document.snapshot.results.model.name == MODEL


def test_dropped_model_is_recognised(tmp_path):
    files = [tmp_path / f"model{ending}" for ending in (".safetensors", ".gguf", ".pth", ".pt")]
    for path in files:
        path.touch()
    for path, expected in (
        (tmp_path, str(tmp_path)),
        *((path, str(path)) for path in files),
        (tmp_path / "notes.txt", None),
    ):
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        assert dropped_model(data) == expected
    assert dropped_model(QMimeData()) is None


def test_closing_in_the_middle_of_a_job_ends_it(qtbot, window, document):
    closed = []

    def endless():
        try:
            while True:
                yield Progress(0, 1)
        finally:
            closed.append(True)

    document.jobs.start(endless)
    document.edit(lambda state: replace(state, dest=3))
    window.close()
    assert closed in ([True], [])
    assert not document.jobs.busy


def test_closing_hides_the_window_before_it_waits_for_the_worker(
    qtbot, window, document, monkeypatch
):
    """Closing during the import of torch left a frozen window on the screen for seconds."""
    visible, shutdown = [], document.jobs.shutdown

    def spied():
        visible.append(window.isVisible())
        shutdown()

    monkeypatch.setattr(document.jobs, "shutdown", spied)
    window.close()
    assert visible == [False]


def test_panel_fills_the_window_and_goes_back(window):
    window.host.toggle_maximised("counting")
    assert window.host.docks["counting"].isVisible()
    assert not window.diagram.isVisible()
    assert not window.host.docks["silent"].isVisible()
    window.host.restore_arrangement()
    assert window.diagram.isVisible()
    assert window.host.docks["silent"].isVisible()


def test_menu_acts_on_the_panel_that_had_the_keyboard(qtbot, window):
    panel = window.host.docks["silent"].panel
    panel.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    window.activateWindow()
    panel.setFocus()
    qtbot.waitUntil(lambda: window.host.focused_dock() is window.host.docks["silent"])
    window.menus.actions_by_name["Maximise panel"].trigger()
    assert not window.diagram.isVisible()
    window.menus.actions_by_name["Maximise panel"].trigger()
    assert window.diagram.isVisible()
    window.menus.actions_by_name["Export panel"].trigger()
    assert window._dialog.what.currentData() == "silent"
    window._dialog.close()


def test_reset_layout_brings_closed_and_floating_panels_back(window):
    window.host.docks["counting"].setFloating(True)
    window.host.docks["silent"].close()
    window.menus.actions_by_name["Reset layout"].trigger()
    assert all(dock.isVisible() for dock in window.host.docks.values())
    assert not window.host.docks["counting"].isFloating()


def test_menus_act_on_the_document(qtbot, window, document):
    act = window.menus.actions_by_name
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        act["Dest one left"].trigger()
    assert document.snapshot.state.dest == 8
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        act["Dest last"].trigger()
    document.select_head(Head(1, 0))
    act["Select nothing"].trigger()
    assert not document.snapshot.state.selection.anything
    act["Copy balance"].trigger()
    assert QGuiApplication.clipboard().text() == window.balance.text()
    act["Copy numbers"].trigger()
    assert QGuiApplication.clipboard().text() == f"prompt\n{PROMPT}\n"
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        act["BOS on or off"].trigger()
    assert document.snapshot.state.prepend_bos is False


def test_no_two_menu_entries_share_a_shortcut(window):
    keys = [keys for _, keys in window.menus.shortcuts()]
    assert len(keys) == len(set(keys))
    assert {"Open folder", "Export diagram", "Quit", "Zoom in"} <= {
        name for name, _ in window.menus.shortcuts()
    }


@pytest.mark.parametrize(
    "page",
    [
        "What is held fixed",
        "What ablation measures",
        "What freezing shows",
        "Keyboard shortcuts",
        "About circuitview",
    ],
)
def test_help_pages_open(qtbot, window, page):
    window.menus.actions_by_name[page].trigger()
    boxes = [child for child in window.children() if child.inherits("QMessageBox")]
    assert len(boxes) == 1
    boxes[0].close()


def test_floor_slider_hides_terms_and_says_how_many(window, document):
    expansion = document.snapshot.results.expansion
    # Thirteen of this model's paths are zero; the smallest of the others is 0.2.
    assert window.floor_bar.hidden_terms.text() == "5 paths drawn one by one, 13 are zero"
    step = step_of_floor(0.3)
    window.floor_bar.slider.setValue(step)
    floor = document.snapshot.state.floor
    assert floor == floor_of_step(step)
    hidden = sum(abs(term.contribution) < floor for term in expansion.terms)
    assert hidden > 13
    assert window.floor_bar.hidden_terms.text().startswith(f"{hidden} of {expansion.n_paths} ")
    window.floor_bar.slider.setValue(0)
    assert document.snapshot.state.floor == 0.0
    assert window.floor_bar.value.text() == "0 = all paths"


def test_floor_steps_go_there_and_back():
    assert floor_of_step(0) == 0.0
    assert [step_of_floor(floor_of_step(step)) for step in range(98)] == [*range(98)]
    assert step_of_floor(1e-9) == 1
    assert step_of_floor(1e9) == 97
    assert hidden_text(Snapshot()) == ""


def test_uncaught_error_is_told_in_the_strip(window, document, caplog):
    hook = ExceptionHook(document)
    try:
        raise ValueError("from a click")
    except ValueError as error:
        hook._on_exception(ValueError, error, error.__traceback__)
    assert "ValueError: from a click" in document.snapshot.failure
    assert "from a click" in caplog.text
    assert window.message_strip.isVisible()


def test_real_panels_draw_two_prompts_in_turn(qtbot, make_window, document):
    window = make_window(find_panels())
    assert {"paths", "attention", "ov", "ablation"} <= set(window.host.docks)
    for prompt in ("I like", PROMPT, "so I drink tea so I drink"):
        ask(qtbot, document, lambda state, prompt=prompt: state.with_prompt(prompt))
        assert {dock.trouble for dock in window.host.docks.values()} == {None}
    for theme in ("dark", "light"):
        window.choose_theme(theme)
    window.grab()
    assert {dock.trouble for dock in window.host.docks.values()} == {None}


def test_copied_picture_is_the_screens_whatever_was_exported_last(window, store):
    last = ExportChoices(theme="dark", transparent=True, size="slide", scale=1.0)
    store.change(lambda settings: msgspec.structs.replace(settings, export=last))
    window.copying.picture()
    picture = QGuiApplication.clipboard().image()
    assert picture.width() == window.diagram.width()
    assert picture.pixelColor(2, 2).name() == LIGHT.background


def test_side_docks_are_readable_in_a_small_window_and_recover(qtbot, make_window):
    """The paths were cut to "tok…" at 814 pixels, and stayed so when the window grew."""
    window = make_window(find_panels())
    docks = window.host.docks

    def widths(width, height):
        window.resize(width, height)
        qtbot.waitUntil(lambda: abs(window.width() - width) < 10)
        QApplication.processEvents()
        return docks["paths"].width(), docks["attention"].width()

    first = widths(1440, 900)
    assert min(first) >= 280
    assert min(widths(814, 600)) >= LEAST
    assert widths(1280, 800) == first
    window.host.resizeDocks([docks["paths"]], [400], Qt.Orientation.Horizontal)
    QApplication.processEvents()
    assert docks["paths"].width() == 400
    assert min(widths(814, 600)) >= LEAST
    assert widths(1440, 900) == (400, first[1])


def test_no_shortcut_is_one_that_macos_keeps_for_itself(window):
    """Ctrl+H and Ctrl+M are Cmd+H and Cmd+M there: hide the program, minimise the window."""
    taken = {"Ctrl+H", "Ctrl+M"}
    for action in window.menus.actions_by_name.values():
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.PortableText)
        assert keys not in taken, action.text()


def test_a_longer_prompt_is_drawn_once(qtbot, make_window, document, monkeypatch):
    """It was drawn for the old height, then again when the tokens had taken another line."""
    window = make_window(())
    drawn, compose = [], view_module.Diagram
    window.resize(900, 700)
    QApplication.processEvents()
    monkeypatch.setattr(
        view_module,
        "Diagram",
        lambda *what, **how: drawn.append((how["width"], how["height"])) or compose(*what, **how),
    )
    height = window.diagram.height()
    ask(qtbot, document, lambda state: state.with_prompt("I like tea , " * 5 + "I like"))
    for _ in range(5):
        QApplication.processEvents()
    assert window.diagram.height() < height
    assert drawn == [(window.diagram.width(), window.diagram.height())]
