"""A deep model's diagram in the window: one layer alone by mouse and keyboard, and painting in
slices."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QImage
from PySide6.QtWidgets import QApplication, QMenu

from circuitview.core.expansion import Expansion, expand
from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.core.target import Target
from circuitview.figures.diagram.geometry import AllLayers, Elsewhere, LayerHeading
from circuitview.figures.diagram.shown import touches
from circuitview.figures.figure import groups
from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.diagram.band_layer import BandLayer
from circuitview.gui.diagram.marks import Mark
from circuitview.gui.diagram.view import DiagramView
from circuitview.gui.document import Document
from circuitview.gui.floor_bar import FloorBar, hidden_wordings
from circuitview.gui.jobs import JobRunner
from circuitview.gui.paint import image
from circuitview.session.state import Results, Selection, Snapshot, State
from tests.tiny_models import Tiny, record, tiny_model


def expansion_of(tiny: Tiny) -> Expansion:
    model = tiny_model(tiny)
    recording = record(model, [1, 2, 3, 4, 1, 2])
    return expand(recording, Target(5, 4, model.tokenizer.labels[4]), listed=200)


@pytest.fixture(scope="module")
def deep() -> Expansion:
    return expansion_of(Tiny(n_layers=6, n_heads=3))


@pytest.fixture
def document(qapp):
    jobs = JobRunner()
    yield Document(jobs)
    jobs.shutdown()


@pytest.fixture
def view(qtbot, document, deep) -> DiagramView:
    made = DiagramView(document)
    qtbot.addWidget(made)
    made.resize(1100, 640)
    made.show()
    qtbot.waitExposed(made)
    made.show_snapshot(Snapshot(State(), Results(expansion=deep)))
    return made


def mark_of(view: DiagramView, thing: object) -> Mark:
    return next(mark for mark in view.canvas.marks.all if mark.thing == thing)


def middle_of(view: DiagramView, thing: object) -> QPoint:
    box = mark_of(view, thing).box
    return QPoint(round((box.left + box.right) / 2), round((box.top + box.bottom) / 2))


def paths_in(view: DiagramView) -> set[Path]:
    return {g.data for g in view.canvas.picture.bands if isinstance(g.data, Path)}


def test_a_double_click_on_a_heading_shows_that_layer_and_escape_shows_all(qtbot, view, deep):
    said = []
    view.layer_shown.connect(said.append)
    everything = paths_in(view)
    qtbot.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=middle_of(view, LayerHeading(3)))
    assert view.layer == 3
    assert paths_in(view) == {path for path in deep.paths if touches(path, 3)}
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert view.layer is None
    assert paths_in(view) == everything
    assert said == [3, None]


def test_a_click_on_the_way_back_shows_all_layers(qtbot, view):
    view.show_layer(2)
    qtbot.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=middle_of(view, AllLayers()))
    assert view.layer is None


def test_arrow_keys_pick_a_layer_and_enter_shows_it(qtbot, view):
    for _ in range(3):
        qtbot.keyClick(view.canvas, Qt.Key.Key_Right)
    assert view.layer is None
    qtbot.keyClick(view.canvas, Qt.Key.Key_Left)
    qtbot.keyClick(view.canvas, Qt.Key.Key_Return)
    assert view.layer == 1
    qtbot.keyClick(view.canvas, Qt.Key.Key_Right)
    assert view.layer == 2
    for _ in range(9):
        qtbot.keyClick(view.canvas, Qt.Key.Key_Right)
    assert view.layer == 5, "the last layer is the last"
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert view.layer is None


def test_the_layer_that_the_keyboard_is_at_has_a_ring(qtbot, view):
    view.canvas.finish()
    box = mark_of(view, LayerHeading(0)).box
    before = view.grab().toImage().pixelColor(round(box.left), round((box.top + box.bottom) / 2))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Right)
    after = view.grab().toImage().pixelColor(round(box.left), round((box.top + box.bottom) / 2))
    assert before != after


def test_escape_leaves_the_layer_first_and_the_selection_last(qtbot, view, document):
    document.select_head(Head(3, 1))
    view.show_layer(3)
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert document.state.selection == Selection(head=Head(3, 1))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)  # the heading that had the keyboard
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert document.state.selection == Selection()


def test_the_context_menu_offers_the_layer_of_what_it_is_asked_on(qtbot, view):
    for thing, layer in ((LayerHeading(4), 4), (Head(2, 0), 2)):
        menu = ask(view, thing)
        assert [action.text() for action in menu.actions()] == [f"Show layer {layer} alone"]
        menu.actions()[0].trigger()
        assert view.layer == layer
        menu.close()
        menu = ask(view, Head(layer, 1))
        assert [action.text() for action in menu.actions()] == ["Show all layers"]
        menu.actions()[0].trigger()
        assert view.layer is None
        menu.close()


def ask(view: DiagramView, thing: object) -> QMenu:
    at = middle_of(view, thing)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, view.canvas.mapToGlobal(at))
    QApplication.sendEvent(view.canvas, event)
    return next(menu for menu in view.findChildren(QMenu) if menu.isVisible())


def test_a_double_click_on_another_layer_goes_there(view):
    view.show_layer(3)
    view.canvas.opened.emit(Elsewhere("after", 5))
    assert view.layer == 5


def test_the_export_follows_the_layer_that_is_shown(view, deep):
    snapshot = Snapshot(State(), Results(expansion=deep))
    whole = view.figure(snapshot, LIGHT, 1280, 720)
    view.show_layer(1)
    alone = view.figure(snapshot, LIGHT, 1280, 720)
    assert "through layer 1" in alone.title
    assert "through layer" not in whole.title
    drawn = {group.data for group in groups(alone) if isinstance(group.data, Path)}
    assert drawn == {path for path in deep.paths if touches(path, 1)}


def test_another_model_is_shown_whole(view, deep):
    view.show_layer(4)
    view.show_snapshot(Snapshot(State(prompt="else"), Results(expansion=deep)))
    assert view.layer == 4, "another prompt keeps the layer"
    view.show_snapshot(Snapshot(State(model="other"), Results(expansion=deep)))
    assert view.layer is None
    few = expansion_of(Tiny())
    view.show_layer(4)
    view.show_snapshot(Snapshot(State(model="other"), Results(expansion=few)))
    assert view.layer is None
    view.show_layer(1)
    assert view.layer is None, "a model of few layers has none to show alone"


def test_the_floor_bar_follows_the_layer(qtbot, document, deep):
    bar = FloorBar(document)
    qtbot.addWidget(bar)
    bar.show_snapshot(Snapshot(State(), Results(expansion=deep)))
    whole = bar.hidden_terms.text()
    bar.show_layer(2)
    hidden = deep.n_paths - sum(touches(path, 2) for path in deep.paths)
    assert bar.hidden_terms.text().startswith(f"{hidden:,} of {deep.n_paths:,} paths hidden")
    bar.show_layer(None)
    assert bar.hidden_terms.text() == whole


def test_a_narrow_floor_bar_says_less_and_never_cuts_without_a_sign(qtbot, document, deep):
    bar = FloorBar(document)
    qtbot.addWidget(bar)
    bar.show()
    snapshot = Snapshot(State(floor=0.05), Results(expansion=deep))
    bar.show_snapshot(snapshot)
    label, wordings = bar.hidden_terms, hidden_wordings(snapshot)
    metrics, said = QFontMetrics(label.font()), []
    for width in range(900, 10, -10):
        label.resize(width, 20)
        shown = label.shown()
        assert shown in wordings or shown.endswith("…") or not shown
        assert metrics.horizontalAdvance(shown) <= max(width, metrics.horizontalAdvance("…"))
        said.append(shown)
    assert [one for one in dict.fromkeys(said) if one in wordings] == list(wordings)
    assert label.toolTip() == label.text() == wordings[0]
    assert [len(one) for one in wordings] == sorted(map(len, wordings), reverse=True)


def test_bands_painted_in_slices_look_as_if_painted_at_once(view, deep):
    view.canvas.finish()
    layer, slices = view.canvas._bands, 0
    again = BandLayer(layer.bands, view.canvas.picture.thickness, True)
    again.aim(view.canvas.transform, view.canvas.size(), view.canvas.devicePixelRatioF())
    while not again.complete:
        again.paint_for(0.0005)
        slices += 1
    assert slices > 2
    assert again._pixmap.toImage() == layer._pixmap.toImage()


def test_the_window_shows_what_is_exported(view, deep):
    """The bands are painted from the strongest down, under what is there: it must not show."""
    view.canvas.finish()
    shown = view.canvas._kept.toImage().convertToFormat(QImage.Format.Format_RGB32)
    made = image(view.canvas.picture.figure, 1.0).convertToFormat(QImage.Format.Format_RGB32)
    assert shown.size() == made.size()
    different = 0
    for x in range(0, shown.width(), 7):
        for y in range(0, shown.height(), 7):
            one, other = shown.pixelColor(x, y), made.pixelColor(x, y)
            # Layers are blended with 8 bits each: a few levels of rounding.
            different += (
                max(
                    abs(one.red() - other.red()),
                    abs(one.green() - other.green()),
                    abs(one.blue() - other.blue()),
                )
                > 10
            )
    assert different <= 20  # of 14,000


def test_a_selection_does_not_paint_the_other_bands_again(view, deep):
    view.canvas.finish()
    before = view.canvas._bands
    head = deep.terms[1].path.heads[-1]
    view.show_snapshot(Snapshot(State(selection=Selection(head=head)), Results(expansion=deep)))
    assert view.canvas._bands is before
    assert before.complete
    view.show_snapshot(
        Snapshot(replace(State(), selection=Selection(), floor=0.2), Results(expansion=deep))
    )
    assert view.canvas._bands is not before


def test_bands_are_painted_whole_without_being_asked_again(qtbot, view):
    view.canvas.zoom_in()
    qtbot.waitUntil(lambda: view.canvas._kept_for == view.canvas.transform)
    qtbot.waitUntil(lambda: view.canvas.complete and not view.canvas._slices.isActive())
    assert not view.canvas._stale


def test_a_new_picture_is_seen_once_its_strongest_bands_are_painted(qtbot, view, deep):
    """It was painted at once, which held the window up for as long again as laying it out."""
    view.canvas.finish()
    before, canvas = view.canvas._kept, view.canvas
    view.show_snapshot(Snapshot(State(theme="dark"), Results(expansion=deep)))
    canvas.repaint()
    assert canvas._kept is before
    assert not canvas._bands._done, "nothing is painted before the window has come round"
    qtbot.waitUntil(lambda: canvas.complete and not canvas._slices.isActive())
    assert canvas._kept is not before
    assert canvas._kept.toImage().pixelColor(2, 2).name() == DARK.background
    assert not canvas._stale


def test_a_picture_that_is_no_longer_meant_is_not_shown_for_long(view, deep):
    """A slider that is drawn along asks for picture after picture: each must be seen."""
    view.canvas.finish()
    before, canvas = view.canvas._kept, view.canvas
    view.show_snapshot(Snapshot(State(floor=0.1), Results(expansion=deep)))
    canvas._stale_since -= 1.0  # seconds
    view.show_snapshot(Snapshot(State(floor=0.2), Results(expansion=deep)))
    canvas.repaint()
    assert canvas._kept is not before


def test_another_room_is_filled_at_once(view):
    view.canvas.finish()
    view.canvas.resize(view.canvas.width() - 40, view.canvas.height() - 30)
    view.canvas.repaint()
    assert view.canvas._kept.size() == view.canvas.size()


def test_the_nearest_band_is_found_where_none_is_drawn(view):
    thin = [
        mark
        for mark in view.canvas._bands.marks.all
        if mark.curve is not None and mark.curve.stroke and mark.curve.stroke_width < 1
    ]
    assert thin
    marks = view.canvas._bands.marks
    empty = next(
        (x, y)
        for x in range(300, 900, 5)
        for y in range(250, 500, 3)
        if marks.at(QPointF(x, y), 2.0) is None and marks.at(QPointF(x, y), 8.0) is not None
    )
    assert marks.at(QPointF(*empty), 0.0) is None
