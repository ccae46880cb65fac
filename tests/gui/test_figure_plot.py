"""A figure on the screen that is made for the room there is."""

from PySide6.QtCore import QPointF, Qt

from circuitview.core.ablation.sites import Site
from circuitview.figures.figure import Figure, Group, Rect, bounds, groups, texts
from circuitview.figures.pair_matrix import pair_figure
from circuitview.figures.theme import LIGHT
from circuitview.gui.figure_plot import FigurePlot
from circuitview.gui.figure_view import FigureView
from tests.figures.lab_rows import pair_rows


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


def test_a_figure_that_cant_be_painted_says_so_and_the_window_lives(qtbot, monkeypatch, caplog):
    """Raised while Qt paints, it would end the process."""

    def broken(items, painter):
        list(items)
        raise ValueError("not a colour")

    plot, view = FigurePlot(), FigureView()
    for widget, module in ((plot, "figure_plot"), (view, "figure_view")):
        qtbot.addWidget(widget)
        widget.resize(300, 100)
        widget.show()
        blank = widget.grab().toImage()
        monkeypatch.setattr(f"circuitview.gui.{module}.paint", broken)
        if widget is plot:
            plot.show_figure(two_halves, faded=False)
        else:
            view.show_items(two_halves(300, 100).items, LIGHT, (0, 300), 300)
        assert widget.grab().toImage() != blank
    assert caplog.text.count("ValueError: not a colour") == 2


def test_one_image_of_many_cells_can_be_pointed_at(qtbot):
    rows = pair_rows(2, 20)
    plot, heard = FigurePlot(), []
    qtbot.addWidget(plot)
    plot.resize(1300, 800)  # enlarged
    plot.clicked.connect(heard.append)
    asked = {"metric": "logit", "clean": 1.0, "frozen": False, "theme": LIGHT}
    plot.show_figure(lambda wide, high: pair_figure(rows, width=wide, height=high, **asked), False)
    box = bounds(next(group for group in groups(plot.drawn()) if group.id == "pairs"))
    side, high = (box.right - box.left) / 40, (box.bottom - box.top) / 40
    where = QPointF(box.left + 3.5 * side, box.top + 22.5 * high)
    assert plot.part_at(where).title.startswith("0.3 + 1.2: effect ")
    qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=where.toPoint())
    assert heard == [Site.parse("0.3 + 1.2")]
    assert plot.part_at(QPointF(box.left + 22.5 * side, box.top + 3.5 * high)) is None
