"""The bundled font, loaded before anything is drawn, and an application to draw with off screen.

The font is Inter with tabular figures and a tailed "l" as its defaults (resources/fonts). Where it
is missing nothing is drawn in some other font instead: the figures would come out different.
"""

import os
from functools import lru_cache

from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QGuiApplication

from circuitview.core.names import CircuitviewError
from circuitview.resources import resource

FAMILY = "Circuitview Sans"
_FILES = ("CircuitviewSans-Regular.otf", "CircuitviewSans-SemiBold.otf")


def load_fonts() -> None:
    """Make the bundled font known to Qt; a second call changes nothing.

    Raises:
        CircuitviewError: where a font file is missing or Qt can't read it.
    """
    if FAMILY in QFontDatabase.families() and len(QFontDatabase.styles(FAMILY)) >= len(_FILES):
        return
    for name in _FILES:
        path = resource("fonts", name)
        if QFontDatabase.addApplicationFont(str(path)) < 0:
            raise CircuitviewError(f"{path} is no font that Qt can read; install circuitview again")
    if FAMILY not in QFontDatabase.families():
        raise CircuitviewError(f"Qt took the fonts but has no {FAMILY}; install circuitview again")


@lru_cache(maxsize=256)
def _font(pixels: int, bold: bool) -> QFont:
    made = QFont(FAMILY)
    made.setPixelSize(pixels)
    made.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    # Unhinted, letters keep their places at every zoom and on paper.
    made.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return made


def font(pixels: int, bold: bool = False) -> QFont:
    """The bundled font at a size in pixels."""
    return QFont(_font(pixels, bold))


@lru_cache(maxsize=20_000)
def advance(text: str, pixels: int, bold: bool) -> float:
    """How wide Qt draws `text`, kerning included (pixels)."""
    return QFontMetricsF(_font(pixels, bold)).horizontalAdvance(text)


def ensure_gui_application() -> QGuiApplication:
    """The running application, or a new one without a screen, with the bundled font loaded.

    For exports from the command line and from notebooks. The caller keeps the result for as long as
    it draws. A platform that the user has set stays.
    """
    running = QGuiApplication.instance()
    if not isinstance(running, QGuiApplication):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        running = QGuiApplication(["circuitview"])
    load_fonts()
    return running
