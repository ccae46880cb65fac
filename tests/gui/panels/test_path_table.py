"""The path table: its rows add up, its selection is a path."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QGuiApplication

from circuitview.core.expansion import expand
from circuitview.core.groups import Grouping
from circuitview.core.names import TOKEN, Head, Source
from circuitview.core.path import Path, path_table
from circuitview.core.target import resolve_target
from circuitview.figures.figure import Text, walk
from circuitview.figures.ledger import ledger
from circuitview.figures.theme import LIGHT
from circuitview.gui.panels.path_table import PathTablePanel
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE
from circuitview.gui.tables.path_model import PathModel
from circuitview.gui.tables.path_rows import (
    CONTRIBUTION,
    PATH,
    SHARE,
    ExtraRow,
    PathNames,
    PathRows,
    path_rows,
)
from circuitview.gui.tables.table_view import TableView
from tests.gui.conftest import ask
from tests.tiny_models import Tiny, record, tiny_model

INDUCTION, BRAKE = Path.parse("token > 1.0"), Path.parse("token > 0.1")
THROUGH_BRAKE = {
    f"{source} > 0.1{rest}" for source in ("token", "position") for rest in ("", " > 1.0", " > 1.1")
}


@pytest.fixture
def panel(put_up):
    return put_up(PathTablePanel)


def labels(panel):
    return [panel.model.rows.label(row) for row in panel.model.shown_rows]


def test_rows_are_all_terms_the_largest_first(panel, analysed):
    expansion = analysed.snapshot.results.expansion
    assert labels(panel)[:4] == ["token > 1.0", "token", "token > 0.0", "token > 0.1 > 1.0"]
    assert len(labels(panel)) == len(expansion.paths) + 1  # b_U
    assert panel.model.shown_sum() == pytest.approx(expansion.total)
    assert panel.footer.text() == "19 terms add up to 8.70"


def test_cells_say_what_a_row_is(panel):
    texts = [panel.model.index(0, column).data() for column in range(4)]
    assert texts == ["token > 1.0", "head", None, "61%"]
    amount = panel.model.index(0, CONTRIBUTION).data(AMOUNT_ROLE)
    assert amount == pytest.approx(6.0, abs=1e-5)


def test_filter_by_head_finds_only_its_paths(panel):
    panel.filter.setText("0.1")
    assert set(labels(panel)) == THROUGH_BRAKE
    assert "6 shown: −0.80" in panel.footer.text()
    panel.filter.setText("0.1 virtual token")
    assert len(labels(panel)) == 2
    panel.filter.setText("")
    panel.kind.setCurrentText("direct")
    assert all(">" not in label for label in labels(panel))


def test_groups_have_the_expansions_subtotals(panel, analysed):
    panel.group.setChecked(True)
    model, groups = panel.model, analysed.snapshot.results.expansion.groups
    for place, (name, total) in enumerate(groups.items()):
        index = model.index(place, PATH)
        assert model.group_at(index) == name
        shown = model.index(place, CONTRIBUTION).data(AMOUNT_ROLE)
        assert shown == pytest.approx(total, abs=1e-9)
        members = [
            model.index(row, CONTRIBUTION, index).data(AMOUNT_ROLE)
            for row in range(model.rowCount(index))
        ]
        assert sum(members) == pytest.approx(total, abs=1e-9)
        assert panel.view.isExpanded(index)


def test_a_collapsed_group_stays_collapsed(qtbot, panel, analysed):
    panel.group.setChecked(True)
    panel.view.collapse(panel.model.index(1, 0))
    ask(qtbot, analysed, lambda state: replace(state, dest=4))
    assert not panel.view.isExpanded(panel.model.index(1, 0))
    assert panel.view.isExpanded(panel.model.index(2, 0))


def test_a_click_selects_the_path_everywhere(qtbot, panel, analysed):
    click(qtbot, panel, panel.model.index(0, 0))
    assert analysed.state.selection.path == INDUCTION


def test_selection_survives_a_model_reset_by_path(qtbot, panel, analysed):
    click(qtbot, panel, panel.model.index_of(BRAKE))
    before = panel.model.index_of(BRAKE).row()
    panel.view.header().setSortIndicator(CONTRIBUTION, Qt.SortOrder.AscendingOrder)
    assert panel.model.index_of(BRAKE).row() != before
    assert panel._sole_path() == BRAKE
    ask(qtbot, analysed, lambda state: replace(state, dest=5))
    assert panel._sole_path() == BRAKE
    panel.group.setChecked(True)
    assert panel._sole_path() == BRAKE
    assert analysed.state.selection.path == BRAKE


def test_a_path_selected_elsewhere_is_selected_here(panel, analysed):
    analysed.select_path(BRAKE)
    assert panel._sole_path() == BRAKE
    analysed.select_path(None)
    assert panel._sole_path() is None


def test_a_head_selected_elsewhere_tints_its_paths(panel, analysed):
    analysed.select_head(Head(0, 1))
    tinted = {
        panel.model.index(row, 0).data()
        for row in range(panel.model.rowCount())
        if panel.model.index(row, 0).data(Qt.ItemDataRole.BackgroundRole) is not None
    }
    assert tinted == THROUGH_BRAKE


def test_double_click_and_enter_open_the_chain(qtbot, panel, analysed):
    index = panel.model.index_of(Path.parse("token > 0.1 > 1.0"))
    where = panel.view.visualRect(index).center()
    qtbot.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    qtbot.mouseDClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert analysed.state.opened == (Head(0, 1), Head(1, 0))
    panel.view.setCurrentIndex(panel.model.index_of(INDUCTION))
    qtbot.keyClick(panel.view, Qt.Key.Key_Return)
    assert analysed.state.opened == (Head(1, 0),)


def test_escape_clears_the_selection(qtbot, panel, analysed):
    click(qtbot, panel, panel.model.index(0, 0))
    qtbot.keyClick(panel.view, Qt.Key.Key_Escape)
    assert not analysed.state.selection.anything
    assert panel._sole_path() is None


def test_copied_rows_are_tab_separated(panel, analysed):
    analysed.select_path(BRAKE)
    panel.copy_rows()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:2] == ["path", "kind"]
    assert lines[1].split("\t")[:3] == ["token > 0.1", "head", "layer-0 heads"]
    assert len(lines) == 2


def test_exported_rows_stand_as_in_the_table(panel, analysed):
    panel.filter.setText("virtual")
    figure = panel.figure(analysed.snapshot, LIGHT, 600, 400)
    assert "virtual" in figure.title
    panel.filter.setText("")
    panel.group.setChecked(True)
    assert "virtual" not in panel.figure(analysed.snapshot, LIGHT, 600, 400).title


def first_cells(figure):
    """The texts of the first column, from top to bottom."""
    cells = [item for item in walk(figure) if isinstance(item, Text)]
    left = min(text.x for text in cells)
    return [text.text for text in cells if text.x < left + 20]


CLOSING = ["sum", "model's logit", "probability", "error"]


def test_export_follows_filter_and_order_and_sums_up_what_is_not_shown(panel, analysed):
    expansion = analysed.snapshot.results.expansion
    panel.filter.setText("0.1")
    panel.view.header().setSortIndicator(CONTRIBUTION, Qt.SortOrder.AscendingOrder)
    wanted = labels(panel)
    cells = first_cells(panel.figure(analysed.snapshot, LIGHT, 600, 500))
    assert cells[3:9] == wanted
    assert cells[9:] == ["sum of these", "13 not shown", *CLOSING]
    rows = read(panel.csv(analysed.snapshot))
    assert [row["path"] for row in rows] == [*wanted, "13 not shown"]
    assert float(rows[-1]["contribution"]) == pytest.approx(expansion.total + 0.8, abs=1e-5)
    assert sum(float(row["contribution"]) for row in rows) == pytest.approx(expansion.total)


def test_export_follows_groups_and_folded_groups(panel, analysed):
    expansion = analysed.snapshot.results.expansion
    panel.group.setChecked(True)
    panel.view.collapse(panel.model.index(3, 0))
    cells = first_cells(panel.figure(analysed.snapshot, LIGHT, 600, 700))
    assert list(expansion.groups)[3] == "virtual heads"
    assert [cell for cell in cells if cell in expansion.groups] == list(expansion.groups)
    assert "token > 1.0" in cells
    assert "token > 0.1 > 1.0" not in cells
    assert cells[-4:] == CLOSING
    rows = read(panel.csv(analysed.snapshot))
    folded = next(row for row in rows if row["path"] == "virtual heads")
    assert float(folded["contribution"]) == pytest.approx(expansion.groups["virtual heads"])
    assert "token > 0.1 > 1.0" not in {row["path"] for row in rows}
    assert sum(float(row["contribution"]) for row in rows) == pytest.approx(expansion.total)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("height", [200, 260, 330, 420])
def test_export_without_room_for_all_rows_still_adds_up(panel, analysed, grouped, height):
    panel.group.setChecked(grouped)
    panel.kind.setCurrentText("head")
    table = panel._standing(analysed.snapshot.results.expansion)
    rows = table.figure_rows(height // 20)
    counted = [row for row in rows if row.kind == ("group" if grouped else "row")]
    shown, hidden = rows[-2].cells[-1], rows[-1].cells[-1]
    assert sum(row.cells[-1] for row in counted) == pytest.approx(shown)
    assert shown + hidden == pytest.approx(analysed.snapshot.results.expansion.total)
    assert len(rows) <= height // 20
    assert first_cells(panel.figure(analysed.snapshot, LIGHT, 600, height))[-4:] == CLOSING


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_ten_thousand_rows_keep_their_remainder_and_selection(qtbot, panel, analysed):
    paths, _ = path_table(12, 12, 2, (TOKEN,))
    grouping = Grouping(12, 12, (TOKEN,), all_listed=False)
    groups = grouping.names
    contributions = np.random.default_rng(0).normal(size=len(paths) + 1)
    extra = ExtraRow("9 longer paths", "not listed", groups.index("virtual heads"), 3.5)
    contributions[-1] = extra.contribution
    rows = PathRows(
        PathNames(paths, grouping),
        (extra,),
        contributions,
        np.zeros(len(groups)),
        float(contributions.sum()),
        len(paths) + 10,
    )
    model = PathModel(panel)
    model.show_rows(rows)
    assert model.rowCount() == len(paths) + 1 > 9_500
    assert model.index_of(paths[-1]).isValid()
    model.words = "longer"
    model.arrange()
    assert model.shown_sum() == 3.5
    model.words, model.grouped = "11.11", True
    model.arrange()
    assert model.shown_rows
    assert all(Head(11, 11) in paths[row].heads for row in model.shown_rows)


@pytest.fixture
def deep_rows():
    """The 12 x 12 heads of a model with 51,000 listed paths."""
    sources = (TOKEN, *(Source("bias", layer) for layer in range(12)))
    paths, _ = path_table(12, 12, 2, sources)
    grouping = Grouping(12, 12, sources, all_listed=False)
    contributions = np.random.default_rng(0).normal(size=len(paths))
    names = PathNames(paths, grouping)
    total = float(contributions.sum())
    return PathRows(names, (), contributions, np.zeros(len(grouping.names)), total, len(paths))


def test_a_long_list_is_handed_out_as_it_is_wanted(panel, deep_rows):
    """Every row of 50,000 was asked for at each change: a tenth of a second."""
    model = panel.model
    model.show_rows(deep_rows)
    assert model.rowCount() == 10_000 < len(model.shown_rows) == len(deep_rows)
    hidden = deep_rows.path(model.shown_rows[30_000])
    assert model.index_of(hidden).row() == 30_000
    assert model.path_at(model.index(30_000, 0)) == hidden
    panel.view.selectAll()
    assert len(panel.view.selectionModel().selectedRows()) == len(deep_rows)


def test_a_huge_group_starts_folded_and_stays_as_the_user_leaves_it(panel, deep_rows):
    panel.model.show_rows(deep_rows)
    panel.group.setChecked(True)
    names = deep_rows.names.groups
    large = panel.model.index(names.index("positions and biases"), 0)
    assert not panel.view.isExpanded(large)
    assert panel.view.isExpanded(panel.model.index(0, 0))
    panel.view.expand(large)
    panel._arrange()
    assert panel.view.isExpanded(panel.model.index(large.row(), 0))


class CountingModel(PathModel):
    """Counts how often the view asks for a row."""

    asked = 0

    def index(self, row, column, parent=QModelIndex()):  # noqa: B008 - Qt's signature
        self.asked += 1
        return super().index(row, column, parent)


def test_another_style_sheet_asks_for_no_row_again(qtbot, qapp, panel):
    """A change of theme indexed every row seven times: a second for 50,000."""
    model = CountingModel(panel)
    view = TableView(model)
    qtbot.addWidget(view)
    view.show()
    qtbot.waitExposed(view)
    model.show_rows(panel.model.rows)
    view.doItemsLayout()
    assert model.asked >= model.rowCount()
    before, model.asked = qapp.styleSheet(), 0
    try:
        qapp.setStyleSheet(before + " ")
        assert model.asked == 0
    finally:
        qapp.setStyleSheet(before)


def test_longer_paths_are_counted_and_summed_as_in_the_ledger():
    tiny = Tiny(n_layers=5, n_heads=2)
    model = tiny_model(tiny)
    recording = record(model, [1, 2, 3, 4])
    expansion = expand(recording, resolve_target(recording, model.tokenizer, None, None, -1))
    rows, book = path_rows(expansion), ledger(expansion)
    wanted = {group.name: (group.n_rest, group.rest) for group in book.groups if group.n_rest}
    found = {rows.names.groups[extra.group]: extra for extra in rows.extras[1:]}
    assert set(found) == set(wanted)
    for name, (n_rest, rest) in wanted.items():
        assert found[name].n_terms == n_rest
        assert found[name].contribution == pytest.approx(rest, abs=1e-9)
    assert rows.contributions.sum() == pytest.approx(expansion.total)


def test_names_are_kept_while_the_paths_stay(qtbot, panel, analysed):
    names = panel.model.rows.names
    ask(qtbot, analysed, lambda state: replace(state, dest=4))
    assert panel.model.rows.names is names


@pytest.mark.parametrize("column", [PATH, 1, CONTRIBUTION, SHARE])
def test_sorting_by_any_column_is_by_its_values(panel, column):
    for descending in (False, True):
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        panel.view.header().setSortIndicator(column, order)
        rows, shown = panel.model.rows, panel.model.shown_rows
        assert sorted(shown) == list(range(len(rows)))
        if column >= CONTRIBUTION:
            keys = rows.contributions if column == CONTRIBUTION else rows.shares
            assert np.all(np.diff(keys[shown]) * (-1 if descending else 1) >= 0)


def test_a_narrow_dock_keeps_the_path_readable(panel):
    panel.resize(280, 400)
    assert panel.view.isColumnHidden(1)
    assert panel.view.isColumnHidden(SHARE)
    header = panel.view.header()
    assert header.sectionSize(PATH) > panel.fontMetrics().horizontalAdvance("token > 0.3 > 1.4")
    panel.resize(620, 400)
    assert not panel.view.isColumnHidden(1)


def click(qtbot, panel, index):
    where = panel.view.visualRect(index).center()
    qtbot.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=where)


@pytest.mark.parametrize("selected", [False, True])
def test_rows_of_another_prompt_begin_at_the_top_unless_one_is_selected(
    qtbot, panel, analysed, selected
):
    panel.resize(460, 220)
    bar = panel.view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    last = panel.model.path_at(panel.model.index(panel.model.rowCount() - 1, 0))
    if selected:
        analysed.select_path(last)
    bar.setValue(bar.maximum())
    ask(qtbot, analysed, lambda state: state.with_prompt("I like milk , so I drink milk"))
    assert (bar.value() == 0) != selected
    if selected:
        chosen = panel.model.index_of(analysed.state.selection.path)
        assert panel.view.viewport().rect().intersects(panel.view.visualRect(chosen))
