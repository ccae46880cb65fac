"""Light, dark, and as the desktop is."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QWidget

from circuitview.figures.theme import DARK, LIGHT, contrast
from circuitview.gui import theming
from circuitview.gui.panels.ablation import AblationPanel
from circuitview.gui.panels.attention import AttentionPanel
from circuitview.gui.theming import Wardrobe, palette


def test_theme_is_switched_live_for_window_and_pictures(qtbot, qapp, window, document):
    window.choose_theme("dark")
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK.panel)
    assert document.snapshot.state.theme == "dark"
    qtbot.waitUntil(lambda: DARK.background in window.styleSheet())
    window.choose_theme("light")
    qtbot.waitUntil(lambda: LIGHT.background in window.styleSheet())
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(LIGHT.panel)
    assert [a.data() for a in window.menus.theme_group.actions() if a.isChecked()] == ["light"]


def test_the_choice_that_is_down_stays_tinted_when_the_style_sheet_comes(qtbot, qapp, make_window):
    """The sheet follows the palette, and had every button look alike."""
    window = make_window([AttentionPanel])
    down = window.host.docks["attention"].panel.modes.button(0)
    window.choose_theme("dark")
    qtbot.waitUntil(lambda: DARK.background in window.styleSheet())
    assert down.isChecked()
    qtbot.waitUntil(
        lambda: down.palette().color(QPalette.ColorRole.Button) == QColor(DARK.selection)
    )
    window.choose_theme("light")
    qtbot.waitUntil(lambda: LIGHT.background in window.styleSheet())
    qtbot.waitUntil(
        lambda: down.palette().color(QPalette.ColorRole.Button) == QColor(LIGHT.selection)
    )


def test_a_choice_that_came_up_wears_the_theme_that_comes(qtbot, qapp, make_window):
    """The sheet gave back the palette of before: light buttons in a dark window."""
    window = make_window([AblationPanel])
    window.choose_theme("light")
    qtbot.waitUntil(lambda: LIGHT.background in window.styleSheet())
    pages = window.host.docks["ablation"].panel.pages
    pages.button(1).click()
    assert not pages.button(0).isChecked()
    window.choose_theme("dark")
    qtbot.waitUntil(lambda: DARK.background in window.styleSheet())
    raised = palette(DARK).color(QPalette.ColorRole.Button)
    qtbot.waitUntil(lambda: pages.button(0).palette().color(QPalette.ColorRole.Button) == raised)


def test_system_choice_follows_the_desktop_while_running(qtbot, qapp, document, monkeypatch):
    window = QWidget()
    qtbot.addWidget(window)
    wardrobe = Wardrobe(qapp, window, document, "system")
    monkeypatch.setattr(theming, "resolved", lambda choice: "dark")
    wardrobe._on_scheme(Qt.ColorScheme.Dark)
    assert document.snapshot.state.theme == "dark"
    wardrobe.choose("dark")
    monkeypatch.setattr(theming, "resolved", lambda choice: "light")
    wardrobe._on_scheme(Qt.ColorScheme.Light)  # the choice was made by hand
    assert document.snapshot.state.theme == "dark"


def test_words_can_be_read_in_both_themes():
    role = QPalette.ColorRole
    for colours in (LIGHT, DARK):
        made = palette(colours)
        for ground, words in (
            (role.Window, role.WindowText),
            (role.Base, role.Text),
            (role.Base, role.PlaceholderText),
            (role.Button, role.ButtonText),
            (role.Highlight, role.HighlightedText),
        ):
            assert contrast(made.color(ground).name(), made.color(words).name()) >= 4.5
