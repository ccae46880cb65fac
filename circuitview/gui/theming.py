"""A figures Theme worn by the whole window: palette, a short style sheet, live switching.

The window and the exported pictures take their colours from the same Theme. "System" follows the
desktop's light or dark scheme while the program runs.
"""

from dataclasses import replace

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from circuitview.figures.theme import Theme, mix, readable_on, theme
from circuitview.gui.document import Document
from circuitview.gui.fonts import FAMILY, load_fonts
from circuitview.session.settings import ThemeChoice
from circuitview.session.state import ThemeName

_STYLE = """
QMainWindow::separator {{ background: {panel}; width: 5px; height: 5px; }}
QMainWindow::separator:hover {{ background: {accent}; }}
QToolTip {{ background: {background}; color: {text}; border: 1px solid {faint}; padding: 3px; }}
QStatusBar::item {{ border: none; }}
QMenu::separator {{ height: 1px; background: {faint}; margin: 4px 8px; }}
QLineEdit {{
    background: {background}; border: 1px solid {edge}; border-radius: 4px; padding: 3px 5px;
    selection-background-color: {accent};
}}
QLineEdit:focus {{ border-color: {accent}; }}
QLineEdit[wrong="true"] {{ border-color: {alarm}; background: {warning}; }}
QToolButton#model-button, QToolButton#menu-button {{ padding: 3px 8px; }}
QToolButton#file-button {{ padding: 3px 5px; }}
QToolButton#model-button::menu-indicator, QToolButton#menu-button::menu-indicator,
QToolButton#file-button::menu-indicator {{ image: none; }}
QSlider::groove:horizontal {{ height: 4px; background: {faint}; border-radius: 2px; }}
QSlider::sub-page:horizontal {{ background: {accent}; border-radius: 2px; }}
QSlider::handle:horizontal {{
    width: 14px; margin: -5px 0; border-radius: 7px; background: {text};
}}
QSlider::handle:horizontal:disabled {{ background: {edge}; }}
QTreeView {{ selection-background-color: {selection}; selection-color: {text}; }}
#lab-runs::item:selected {{ background: {selection}; }}
#message-strip {{ background: {warning}; border: none; border-bottom: 1px solid {alarm}; }}
#dock-title {{ background: {panel}; border-bottom: 1px solid {faint}; }}
#thin-bar {{ background: {background}; border-top: 1px solid {faint}; }}
#token-strip {{ background: {background}; border-bottom: 1px solid {faint}; }}
#balance[refused="true"] {{ color: {alarm}; font-weight: 600; }}
#dialog-error {{ color: {alarm}; }}
"""


# Orange means "takes away" in every picture; what is wrong has a colour of its own.
ALARM = {"light": "#b3261e", "dark": "#ff8a80"}


def style_application(app: QApplication) -> None:
    """One look on every desktop: Qt's own Fusion style and the bundled font at the usual size."""
    app.setStyle("Fusion")
    load_fonts()
    size = app.font().pointSizeF()
    app.setFont(QFont(FAMILY, max(9, round(size)) if size > 0 else 10))


def dress(window: QWidget, colours: Theme) -> None:
    """Give the style sheet in `colours` to a window, and so to its dialogs and floating panels.

    Not to the application: Qt would then restyle each widget once for every widget around it.
    """
    window.setStyleSheet(
        _STYLE.format(
            background=colours.background,
            panel=colours.panel,
            text=colours.text,
            faint=colours.faint,
            edge=mix(colours.faint, colours.muted, 0.25),
            accent=colours.accent,
            selection=colours.selection,
            alarm=ALARM[colours.name],
            warning=mix(colours.background, ALARM[colours.name], 0.1),
        )
    )


def palette(colours: Theme) -> QPalette:
    """The Qt palette of a theme."""
    role, made = QPalette.ColorRole, QPalette()
    dim = mix(colours.muted, colours.panel, 0.4)
    raised = mix(colours.panel, colours.text, 0.04)
    pairs = {
        role.Window: colours.panel,
        role.WindowText: colours.text,
        role.Base: colours.background,
        role.AlternateBase: colours.panel,
        role.Text: colours.text,
        role.Button: raised,
        role.ButtonText: colours.text,
        role.BrightText: ALARM[colours.name],
        role.Highlight: colours.accent,
        role.HighlightedText: readable_on(colours.accent, colours),
        role.Link: colours.accent,
        role.LinkVisited: colours.accent,
        role.ToolTipBase: colours.background,
        role.ToolTipText: colours.text,
        role.PlaceholderText: colours.muted,
        role.Accent: colours.accent,
        role.Light: mix(colours.panel, colours.background, 0.7),
        role.Midlight: mix(colours.panel, colours.background, 0.3),
        role.Mid: colours.faint,
        role.Dark: mix(colours.faint, colours.muted, 0.35),
        role.Shadow: mix(colours.faint, colours.muted, 0.6),
    }
    for which, name in pairs.items():
        made.setColor(which, QColor(name))
    for which in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
        made.setColor(QPalette.ColorGroup.Disabled, which, QColor(dim))
    made.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(colours.faint))
    return made


def resolved(choice: ThemeChoice) -> ThemeName:
    """Light or dark, after the desktop where it is to be followed."""
    if choice != "system":
        return choice
    dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return "dark" if dark else "light"


class Wardrobe(QObject):
    """Keeps the application in the document's theme, and the document's in the user's choice."""

    def __init__(
        self, app: QApplication, window: QWidget, document: Document, choice: ThemeChoice
    ) -> None:
        super().__init__(document)
        self._app, self._window, self._document, self._worn = app, window, document, ""
        self.choice: ThemeChoice = choice
        # The style sheet costs as much as all else together: it follows when the palette's colours
        # are on the screen, so that the window does not stand still for both at once.
        self._dressing = QTimer(self)
        self._dressing.setSingleShot(True)
        self._dressing.setInterval(0)
        self._dressing.timeout.connect(self._dress)
        document.changed.connect(self._on_changed)
        app.styleHints().colorSchemeChanged.connect(self._on_scheme)
        self.choose(choice)
        self._wear(document.snapshot.state.theme)
        self._dressing.stop()
        self._dress()

    def choose(self, choice: ThemeChoice) -> None:
        """Light, dark, or as the desktop is."""
        self.choice = choice
        name = resolved(choice)
        self._document.edit(lambda state: replace(state, theme=name))

    def _on_scheme(self, _scheme: Qt.ColorScheme) -> None:
        if self.choice == "system":
            self.choose("system")

    def _on_changed(self, _snapshot: object, _before: object) -> None:
        self._wear(self._document.snapshot.state.theme)

    def _wear(self, name: ThemeName) -> None:
        if name != self._worn:
            self._worn = name
            self._app.setPalette(palette(theme(name)))
            self._dressing.start()

    def _dress(self) -> None:
        dress(self._window, theme(self._worn))
