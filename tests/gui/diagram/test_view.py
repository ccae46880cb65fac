"""The diagram in the window: what a click, a double click, a drag and a hover do."""

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

from circuitview.core.expansion import Expansion, expand
from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.core.target import Target
from circuitview.figures.diagram.geometry import SourceToken
from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.diagram.marks import Mark
from circuitview.gui.diagram.view import DiagramView
from circuitview.gui.document import Document
from circuitview.gui.jobs import JobRunner
from circuitview.gui.paint import qpath
from circuitview.session.state import Results, Selection, Snapshot, State
from tests.tiny_models import Tiny, record, tiny_model


@pytest.fixture(scope="module")
def expansion() -> Expansion:
    model = tiny_model(Tiny(n_heads=3))
    recording = record(model, [1, 2, 3, 4, 1, 2])
    return expand(recording, Target(5, 4, model.tokenizer.labels[4]))


@pytest.fixture
def document(qapp):
    jobs = JobRunner()
    yield Document(jobs)
    jobs.shutdown()


@pytest.fixture
def view(qtbot, document, expansion) -> DiagramView:
    made = DiagramView(document)
    qtbot.addWidget(made)
    made.resize(1000, 600)
    made.show()
    qtbot.waitExposed(made)
    made.show_snapshot(Snapshot(State(), Results(expansion=expansion)))
    return made


def marks(view: DiagramView) -> list[Mark]:
    return view.canvas.marks.all


def place_of(view: DiagramView, thing: object) -> QPoint:
    """A point of the canvas where `thing` lies on top."""
    for mark in marks(view):
        if mark.thing == thing:
            for at in points_on(mark):
                point = view.canvas.transform.map(at).toPoint()
                if view.canvas.thing_at(point) == thing:
                    return point
    raise AssertionError(f"{thing} can't be pointed at anywhere")


def points_on(mark: Mark) -> list[QPointF]:
    if mark.curve is None:
        return [QPointF((mark.box.left + mark.box.right) / 2, (mark.box.top + mark.box.bottom) / 2)]
    path = qpath(mark.curve)
    return [path.pointAtPercent(share / 40) for share in (20, 12, 28, 16, 24, *range(1, 40))]


def click(qtbot, view: DiagramView, thing: object) -> None:
    qtbot.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=place_of(view, thing))


def test_a_click_on_a_band_selects_its_path(qtbot, view, document, expansion):
    for term in expansion.terms[:5]:
        click(qtbot, view, term.path)
        assert document.state.selection == Selection(path=term.path)


def test_a_click_on_a_head_selects_all_paths_through_it(qtbot, view, document):
    click(qtbot, view, Head(1, 2))
    assert document.state.selection == Selection(head=Head(1, 2))


def test_a_click_on_a_source_token_marks_it_and_keeps_the_selected_path(qtbot, view, document):
    path = Path.parse("token > 1.1")
    document.select_path(path)
    click(qtbot, view, SourceToken(2))
    assert document.state.selection == Selection(path=path, source=2)


def test_a_click_beside_everything_clears_the_selection(qtbot, view, document):
    document.select_head(Head(0, 1))
    qtbot.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=QPoint(3, 590))
    assert document.state.selection == Selection()


def test_a_double_click_opens_the_chain_in_the_panels(qtbot, view, document):
    path = Path.parse("token > 0.1 > 1.2")
    qtbot.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=place_of(view, Head(1, 0)))
    assert document.state.opened == (Head(1, 0),)
    view.canvas.opened.emit(path)
    assert document.state.opened == path.heads


def move(view: DiagramView, to: QPoint, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    port = view.canvas
    there = QPointF(to)
    event = QMouseEvent(
        QMouseEvent.Type.MouseMove,
        there,
        QPointF(port.mapToGlobal(to)),
        Qt.MouseButton.NoButton,
        buttons,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(port, event)


def test_pointing_at_a_band_tells_path_value_and_share(view, expansion):
    term = expansion.terms[0]
    move(view, place_of(view, term.path))
    label = view.findChild(type(view._readout), "readout")
    assert label.isVisible()
    assert label.text().startswith(f"{term.path}: ")
    assert "of Σ|c|" in label.text()
    move(view, QPoint(3, 590))
    assert not label.isVisible()


def test_a_hairline_can_be_pointed_at(view, expansion):
    thin = expansion.terms[-1].path
    found = [mark for mark in marks(view) if mark.thing == thin]
    assert found[0].curve.stroke_width < 1
    at = points_on(found[0])[0]
    for off in (-4, 4):
        near = view.canvas.marks.at(at + QPointF(0, off))
        assert near is not None, "four pixels beside it something must be found"


def corner(view: DiagramView) -> QPointF:
    """What of the picture stands in the upper left corner."""
    return view.canvas.transform.inverted()[0].map(QPointF(0, 0))


def test_a_drag_pans_a_zoomed_picture_and_selects_nothing(qtbot, view, document):
    view.zoom_in()
    view.zoom_in()
    port, before = view.canvas, corner(view)
    start = QPoint(500, 300)
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=start)
    for step in (10, 30, 60):
        move(view, start + QPoint(-step, -step), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=start + QPoint(-60, -60))
    after = corner(view)
    assert math.isclose((after - before).x(), 60 / view.canvas.zoom, abs_tol=1.0)
    assert document.state.selection == Selection()


def test_fit_shows_the_whole_picture_again(view):
    for _ in range(5):
        view.zoom_in()
    view.fit()
    assert view.canvas.zoom == 1.0
    assert view.canvas.transform.isIdentity()
    assert view.canvas.picture.width <= view.canvas.width()


def test_the_picture_follows_the_size_of_the_window(view, qtbot):
    view.resize(700, 480)
    qtbot.waitUntil(lambda: view.canvas.picture.width == view.canvas.width())
    assert view.canvas.picture.height == view.canvas.height()


def test_selection_floor_and_theme_redraw_and_nothing_else_does(view, expansion):
    snapshot = Snapshot(State(), Results(expansion=expansion))
    before = view.canvas.picture
    view.show_snapshot(replace(snapshot))
    assert view.canvas.picture is before, "the same picture must not be built again"
    view.show_snapshot(replace(snapshot, state=State(selection=Selection(head=Head(1, 1)))))
    assert view.canvas.picture.bands is before.bands, "a selection must not make new bands"
    assert view.canvas.picture.picked
    view.show_snapshot(replace(snapshot, state=State(theme="dark")))
    assert view.canvas.picture.background == DARK.background
    hidden = replace(snapshot, state=State(floor=1e9))
    view.show_snapshot(hidden)
    assert view.canvas.picture.background == LIGHT.background
    assert not [mark for mark in marks(view) if isinstance(mark.thing, Path)]
    assert [mark for mark in marks(view) if mark.thing == "remainder"]


def test_a_refused_expansion_leaves_the_reason_and_no_band(view):
    reason = "the paths don't add up: sum 1, model 2"
    view.show_snapshot(Snapshot(State(), Results(), failure=reason, refused=True))
    assert marks(view) == []
    figure = view.figure(
        Snapshot(State(), Results(), failure=reason, refused=True), LIGHT, 800, 450
    )
    words = " ".join(item.text for item in figure.items)
    assert reason in words


def test_the_exported_figure_carries_the_balance(view, expansion):
    figure = view.figure(Snapshot(State(), Results(expansion=expansion)), LIGHT, 1280, 720)
    words = [getattr(item, "text", "") for item in figure.items]
    assert any("error" in text and "model" in text for text in words)


def test_a_thousand_redraws_keep_the_process_alive(view, expansion):
    """A PySide6 release lost a reference to None with each call and aborted after some redraws."""
    for place in range(40):
        floor = 0.0 if place % 2 else 1e-6
        view.show_snapshot(Snapshot(State(floor=floor), Results(expansion=expansion)))
        view.canvas.repaint()
    assert marks(view)


def test_a_picture_that_comes_between_two_turns_gets_its_bands(view, expansion, qtbot):
    """After a change of theme and prompt in one go the bands were missing for good."""
    canvas = view.canvas
    canvas._stale = True  # the one before waits for its paint
    view.show_snapshot(Snapshot(State(floor=0.01), Results(expansion=expansion)))
    canvas._slices.start()
    canvas._paint_slice()  # its timer is served before the paint
    qtbot.waitUntil(lambda: canvas.complete, timeout=5000)
    assert not canvas._bands._pixmap.isNull()
