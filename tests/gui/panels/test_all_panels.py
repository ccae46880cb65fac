"""What every panel has to do; a new panel file is tested here without another line."""

import csv
import gc
import io
import subprocess
import sys
import weakref
from dataclasses import replace

import pytest
import shiboken6

from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.figures.figure import Box, bounds, texts, walk
from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.dock_host import find_panels
from circuitview.gui.panels.panel import AREAS
from circuitview.session.state import Selection, Snapshot, State
from tests.gui.conftest import ask, flush_deletions
from tests.gui.panels.conftest import SIZE, Follower

PANELS = find_panels()
SIZES = ((320.0, 260.0), (560.0, 900.0), (1280.0, 720.0))


@pytest.fixture(params=PANELS, ids=[panel.NAME for panel in PANELS])
def panel_class(request):
    return request.param


def test_the_four_panels_are_found():
    assert {"paths", "attention", "ov", "ablation"} <= {panel.NAME for panel in PANELS}
    assert len({panel.NAME for panel in PANELS}) == len(PANELS)
    assert all(panel.AREA in AREAS and panel.TITLE for panel in PANELS)


def test_an_empty_snapshot_is_drawn(qtbot, panel_class, document):
    panel = panel_class(document)
    qtbot.addWidget(panel)
    panel.resize(*SIZE)
    panel.show()
    panel.show_snapshot(Snapshot())
    panel.show_snapshot(Snapshot(State(theme="dark"), refused=True, failure="does not add up"))
    assert not panel.grab().isNull()
    assert panel.csv(Snapshot()) is None
    figure = panel.figure(Snapshot(), LIGHT, 400, 300)
    assert (figure.width, figure.height) == (400, 300)


def test_two_prompts_in_turn_leave_what_a_fresh_panel_shows(qtbot, panel_class, put_up, analysed):
    panel = put_up(panel_class)
    ask(qtbot, analysed, lambda state: state.with_prompt("I like milk"))
    second = panel.figure(analysed.snapshot, LIGHT, 500, 400)
    ask(qtbot, analysed, lambda state: state.with_prompt("so I drink tea , so I drink"))
    ask(qtbot, analysed, lambda state: state.with_prompt("I like milk"))
    again = panel.figure(analysed.snapshot, LIGHT, 500, 400)
    assert texts(again) == texts(second)
    assert not panel.grab().isNull()


def test_selection_theme_and_opened_chain_are_followed(qtbot, panel_class, put_up, analysed):
    panel = put_up(panel_class)
    for selection in (
        Selection(path=Path.parse("token > 1.0")),
        Selection(head=Head(0, 1), source=4),
        Selection(),
    ):
        analysed.edit(lambda state, chosen=selection: replace(state, selection=chosen))
        assert analysed.state.selection == selection  # showing it did not change it
    analysed.edit(lambda state: replace(state, theme="dark"))
    ask(qtbot, analysed, lambda state: replace(state, opened=(Head(0, 0), Head(1, 0))))
    assert analysed.state.opened == (Head(0, 0), Head(1, 0))
    assert not panel.grab().isNull()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_exported_figure_holds_something_and_stays_in_bounds(
    panel_class, put_up, analysed, size, theme
):
    figure = put_up(panel_class).figure(analysed.snapshot, theme, *size)
    assert texts(figure)
    assert figure.background == theme.background
    frame = Box(0, 0, *size)
    for item in walk(figure):
        box = bounds(item)
        assert box is None or frame.contains(box, slack=1.0), (item, box)


def test_csv_adds_up(panel_class, put_up, analysed):
    text = put_up(panel_class).csv(analysed.snapshot)
    if text is None:
        return
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows
    total = sum(float(row["contribution"]) for row in rows)
    results = analysed.snapshot.results
    wanted = {"paths": results.expansion.total, "ov": results.ov.total}
    assert total == pytest.approx(wanted[panel_class.NAME], abs=1e-9)


def test_a_closed_panel_is_gone(qtbot, panel_class, analysed):
    panel = panel_class(analysed)
    panel.resize(*SIZE)
    panel.show()
    Follower(analysed, panel)
    qtbot.waitExposed(panel)
    gone = weakref.ref(panel)
    panel.close()
    panel.deleteLater()
    flush_deletions()
    assert not shiboken6.isValid(panel)
    del panel
    gc.collect()
    assert gone() is None, gc.get_referrers(gone())
    ask(qtbot, analysed, lambda state: replace(state, dest=3))  # nobody draws into what is gone


def test_finding_the_panels_loads_neither_torch_nor_pyqtgraph():
    """They are found before the window paints."""
    code = (
        "import sys; from circuitview.gui.dock_host import find_panels; find_panels(); "
        "heavy = {'torch', 'pyqtgraph', 'transformer_lens'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
