"""A figure on the screen that is made for the room there is."""

from PySide6.QtCore import QPointF, Qt

from circuitview.figures.figure import Figure, Group, Rect, texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.figure_plot import FigurePlot


def two_halves(width, height):
    left = Group((Rect(0, 0, width / 2, height, LIGHT.text),), title="one", data="left")
    right = Group((Rect(width / 2, 0, width / 2, height, LIGHT.faint),), data="right")
    return Figure(width, height, LIGHT.background, (Group((left, right)),))


def test_parts_are_found_at_every_size(qtbot):
    plot, heard = FigurePlot(), []
    qtbot.addWidget(plot)
    plot.clicked.connect(heard.append)
    plot.show_figure(two_halves, faded=False)
    for size in ((200, 100), (400, 80)):
        plot.resize(*size)
        assert plot.part_at(QPointF(size[0] * 0.4, 10)).data == "left"
        assert plot.part_at(QPointF(size[0] * 0.6, 10)).data == "right"
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=plot.rect().center() * 1.5)
    assert heard == ["right", "right"]


def test_a_figure_that_cant_be_made_says_so_and_the_window_lives(qtbot, caplog):
    """A bar chart for no room raised while Qt painted, and the process ended."""

    def broken(width, height):
        raise ValueError("math domain error")

    plot = FigurePlot()
    qtbot.addWidget(plot)
    plot.resize(300, 100)
    plot.show()
    plot.show_figure(broken, faded=False)
    assert not plot.grab().isNull()
    assert list(texts(plot.drawn())) == ["ValueError: math domain error"]
    assert "can't be made" in caplog.text
