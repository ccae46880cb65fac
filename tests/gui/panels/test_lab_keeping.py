"""Runs of the lab are saved, opened again, exported, and copied as a command line."""

import csv
import io
import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.figures.figure import texts
from circuitview.figures.theme import LIGHT
from circuitview.session.run_text import as_csv, as_json
from tests.gui.conftest import WAIT
from tests.gui.panels.conftest import measure

HEADS = [Site(heads=(Head(layer, head),)) for layer in (0, 1) for head in (0, 1)]
CONTRIBUTION, EFFECT = 1, 2  # columns


def test_a_run_is_exported_as_the_json_of_the_command(qtbot, measured, tmp_path):
    with qtbot.waitSignal(measured.document.told, timeout=WAIT):
        measured.menu.write_json(tmp_path / "run.json")
    found = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert found == json.loads(json.dumps(as_json(measured.shown_run.run)))
    assert found["rows"]
    assert {"what", "contribution", "effect", "value", "stderr"} <= set(found["rows"][0])
    measured.menu.write_json(tmp_path / "nowhere" / "run.json")
    qtbot.waitUntil(lambda: measured.document.snapshot.failure is not None, timeout=WAIT)
    assert "can't write" in measured.document.snapshot.failure


def test_a_run_is_saved_and_opened_again(qtbot, measured, analysed, tmp_path):
    (entry,) = measured.queue.runs
    with qtbot.waitSignal(analysed.told, timeout=WAIT) as told:
        measured.menu.save_to(tmp_path / "kept")
    assert told.args == [f"Saved to {tmp_path / 'kept'}"]
    measured.queue.clear_ended()
    with qtbot.waitSignal(measured.queue.listed, timeout=WAIT):
        measured.menu.open_from(tmp_path / "kept")
    (again,) = measured.queue.runs
    qtbot.waitUntil(lambda: measured.results.entry is again)
    assert list(again.rows.values()) == list(entry.rows.values())
    assert measured.runs.cards[again].state.text().startswith("from a file")
    measured.menu.save_to(tmp_path / "kept")  # never in the place of another
    qtbot.waitUntil(lambda: analysed.snapshot.failure is not None, timeout=WAIT)
    assert "kept" in analysed.snapshot.failure
    analysed.dismiss()
    measured.menu.open_from(tmp_path)
    qtbot.waitUntil(lambda: analysed.snapshot.failure is not None, timeout=WAIT)
    assert "run.json" in analysed.snapshot.failure


@pytest.mark.parametrize(
    ("field", "other"), [("model_hash", "0" * 64), ("model", "a-model-that-is-gone")]
)
def test_an_opened_run_of_other_weights_is_not_of_what_is_shown(
    qtbot, measured, analysed, tmp_path, field, other
):
    """A path may hold another checkpoint by now, under the same name."""
    with qtbot.waitSignal(analysed.told, timeout=WAIT):
        measured.menu.save_to(tmp_path / "kept")
    file = tmp_path / "kept" / "run.json"
    saved = json.loads(file.read_text(encoding="utf-8"))
    place = saved if field in saved else saved["question"]
    assert place[field] != other
    place[field] = other
    file.write_text(json.dumps(saved), encoding="utf-8")
    with qtbot.waitSignal(measured.queue.listed, timeout=WAIT):
        measured.menu.open_from(tmp_path / "kept")
    again = measured.queue.runs[-1]
    qtbot.waitUntil(lambda: measured.results.entry is again)
    assert again.outdated
    assert not measured.results.is_of_model()
    assert measured.results.head.state.text().startswith("of other weights")
    assert "other weights" in analysed.effects.action.toolTip()
    measured.runs.choose(measured.queue.runs[0])
    assert measured.results.is_current()


def test_the_command_line_is_copied(qtbot, measured):
    with qtbot.waitSignal(measured.document.told):
        measured.menu.copy_command()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("circuitview ablate induction-by-hand --what heads --with zero --free")


def test_csv_is_that_of_the_table(measured, analysed):
    rows = list(csv.DictReader(io.StringIO(measured.csv(analysed.snapshot))))
    assert [row["what"] for row in rows] == [str(site) for site in HEADS]
    for row in rows:
        assert float(row["value"]) - float(row["effect"]) == pytest.approx(8.7, abs=1e-3)


def test_csv_of_pairs_is_that_of_the_command_in_the_order_of_the_table(qtbot, panel, analysed):
    panel.form.choose("pairs")
    entry = measure(qtbot, panel)
    panel.results.table.sortByColumn(EFFECT, Qt.SortOrder.DescendingOrder)
    shown = panel.csv(analysed.snapshot).splitlines()
    own = as_csv(entry.run).splitlines()
    assert (
        shown[0]
        == own[0]
        == "what,contribution,effect,value,stderr,interaction,interaction_stderr,n"
    )
    assert shown != own
    assert sorted(shown) == sorted(own)


def test_the_exported_figure_names_every_head(measured, analysed):
    figure = measured.figure(analysed.snapshot, LIGHT, 900, 600)
    assert {str(site) for site in HEADS} <= set(texts(figure))
    assert "effect = −contribution" in texts(figure)
