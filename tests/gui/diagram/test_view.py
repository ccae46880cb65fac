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
from circuitview.gui.diagram.items import CurveItem, GroupItem
from circuitview.gui.diagram.view import DiagramView
from circuitview.gui.document import Document
from circuitview.gui.jobs import JobRunner
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


def items(view: DiagramView) -> list[CurveItem | GroupItem]:
    return [item for item in view.canvas.scene().items() if item.thing is not None]


def place_of(view: DiagramView, thing: object) -> QPoint:
    """A point of the viewport where `thing` lies on top."""
    for item in items(view):
        if item.thing == thing:
            path = item.path() if isinstance(item, CurveItem) else None
            for share in (0.5, 0.3, 0.7, 0.4, 0.6, 0.2, 0.8, 0.9, 0.1):
                at = path.pointAtPercent(share) if path else item.boundingRect().center()
                point = view.canvas.mapFromScene(at)
                if view.canvas.thing_at(point) == thing:
                    return point
    raise AssertionError(f"{thing} can't be pointed at anywhere")


def click(qtbot, view: DiagramView, thing: object) -> None:
    port = view.canvas.viewport()
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, pos=place_of(view, thing))


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
    qtbot.mouseClick(view.canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 590))
    assert document.state.selection == Selection()


def test_a_double_click_opens_the_chain_in_the_panels(qtbot, view, document):
    path = Path.parse("token > 0.1 > 1.2")
    qtbot.mouseDClick(
        view.canvas.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view, Head(1, 0))
    )
    assert document.state.opened == (Head(1, 0),)
    view.canvas.opened.emit(path)
    assert document.state.opened == path.heads


def move(view: DiagramView, to: QPoint, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    port = view.canvas.viewport()
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
    found = [item for item in items(view) if item.thing == thin]
    assert all(item.shape().boundingRect().height() >= 8 for item in found)


def test_a_drag_pans_a_zoomed_picture_and_selects_nothing(qtbot, view, document):
    view.zoom_in()
    view.zoom_in()
    port, before = view.canvas.viewport(), view.canvas.mapToScene(QPoint(0, 0))
    start = QPoint(500, 300)
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=start)
    for step in (10, 30, 60):
        move(view, start + QPoint(-step, -step), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=start + QPoint(-60, -60))
    after = view.canvas.mapToScene(QPoint(0, 0))
    assert math.isclose((after - before).x(), 60 / view.canvas.zoom, abs_tol=1.0)
    assert document.state.selection == Selection()


def test_fit_shows_the_whole_picture_again(view):
    for _ in range(5):
        view.zoom_in()
    view.fit()
    assert view.canvas.zoom == 1.0
    corners = view.canvas.mapFromScene(view.canvas.sceneRect()).boundingRect()
    assert corners.size().width() <= view.canvas.viewport().width() + 1


def test_the_picture_follows_the_size_of_the_window(view, qtbot):
    view.resize(700, 480)
    qtbot.waitUntil(lambda: view.canvas.scene().width() == view.canvas.viewport().width())
    assert view.canvas.scene().height() == view.canvas.viewport().height()


def test_selection_floor_and_theme_redraw_and_nothing_else_does(view, expansion):
    snapshot = Snapshot(State(), Results(expansion=expansion))
    before = items(view)
    view.show_snapshot(replace(snapshot))
    assert items(view) == before, "the same picture must not be built again"
    view.show_snapshot(replace(snapshot, state=State(theme="dark")))
    assert view.canvas.backgroundBrush().color().name() == DARK.background
    hidden = replace(snapshot, state=State(floor=1e9))
    view.show_snapshot(hidden)
    assert view.canvas.backgroundBrush().color().name() == LIGHT.background
    assert not [item for item in items(view) if isinstance(item.thing, Path)]
    assert [item for item in items(view) if item.thing == "remainder"]


def test_a_refused_expansion_leaves_the_reason_and_no_band(view):
    reason = "the paths don't add up: sum 1, model 2"
    view.show_snapshot(Snapshot(State(), Results(), failure=reason, refused=True))
    assert items(view) == []
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
        view.canvas.viewport().repaint()
    assert items(view)
