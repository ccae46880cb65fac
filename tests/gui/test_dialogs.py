"""Help pages, boxes and tool tips: fit on a small screen, say what is true, and can be read."""

from collections import Counter

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QToolTip

from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.help_pages import LAB, about_box, help_box
from circuitview.gui.theming import ALARM

SMALL_SCREEN = 700  # pixels; of a laptop's 768 a desktop takes some


@pytest.mark.parametrize("page", ["held fixed", "ablation", "freezing"])
def test_a_help_page_fits_on_a_small_screen(window, page):
    box = help_box(window, page)
    box.show()
    assert box.height() < SMALL_SCREEN
    box.close()


def test_the_labs_help_says_what_order_0_lacks_and_where_the_diagonal_holds():
    words = " ".join(LAB.split())
    assert "order 0 leaves out the constant b_U, which the logit holds" in words
    assert "every other kind, and free, it is a guide only" in words


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_boxes_and_tool_tips_wear_the_theme(qtbot, window, colours):
    window.choose_theme(colours.name)
    qtbot.waitUntil(lambda: colours.background in window.styleSheet())
    box = about_box(window)
    box.show()
    ground, _ = _colours(box)
    assert ground == colours.panel
    box.close()
    QToolTip.showText(window.mapToGlobal(QPoint(5, 5)), "what it is", window.prompt_bar)
    qtbot.waitUntil(QToolTip.isVisible)
    (tip,) = (one for one in QApplication.topLevelWidgets() if one.inherits("QTipLabel"))
    ground, all_of_it = _colours(tip)
    assert ground == colours.background
    assert colours.text in all_of_it
    QToolTip.hideText()
    tip.close()
    tip.deleteLater()


def test_what_is_wrong_in_the_export_has_the_colour_of_what_is_wrong(qtbot, window):
    """It was orange, which says "takes away" everywhere else."""
    window.choose_theme("dark")
    qtbot.waitUntil(lambda: DARK.background in window.styleSheet())
    window.export("diagram")
    dialog = window._dialog
    dialog.path.setText("/no/such/folder/picture.svg")
    dialog.export()
    assert dialog.message.palette().color(dialog.message.foregroundRole()) == QColor(ALARM["dark"])
    dialog.close()


def _colours(widget) -> tuple[str, set[str]]:
    """The most frequent colour of a picture of `widget`, and all of them."""
    picture = widget.grab().toImage()
    found = Counter(
        picture.pixel(x, y) for x in range(picture.width()) for y in range(picture.height())
    )
    return QColor(found.most_common(1)[0][0]).name(), {QColor(pixel).name() for pixel in found}
