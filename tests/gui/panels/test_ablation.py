"""The ablation panel: what the form asks, rows that arrive, and results that are never shown for
what they are not."""

import csv
import io
import json
from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication

from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.figures.figure import texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.lab_table import LabTable
from circuitview.gui.panels.ablation import AblationPanel
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE
from circuitview.session.lab import Question
from circuitview.session.run_text import as_json
from tests.figures.lab_rows import pair_rows
from tests.gui.conftest import MODEL, PROMPT, WAIT, ask

HEADS = [Site(heads=(Head(layer, head),)) for layer in (0, 1) for head in (0, 1)]
CONTRIBUTION, EFFECT = 1, 2  # columns


@pytest.fixture
def panel(put_up):
    panel = put_up(AblationPanel)
    panel.resize(900, 420)
    return panel


@pytest.fixture
def measured(qtbot, panel):
    measure(qtbot, panel)
    return panel


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("I like green tea , so I drink green tea\n" * 20, encoding="utf-8")
    return path


def measure(qtbot, panel, what=None):
    """Run what the form asks, and show the results."""
    if what is not None:
        panel.form.choose(what)
    assert panel.form.reason() is None, panel.form.reason()
    panel.form.run_button.click()
    entry = panel.queue.runs[-1]
    qtbot.waitUntil(lambda: entry.ended, timeout=WAIT)
    assert entry.state == "done", entry.failure
    panel.runs.choose(entry)
    return entry


def pick(combo, text):
    """Choose as a user does."""
    combo.setCurrentIndex(combo.findText(text))
    combo.activated.emit(combo.currentIndex())


def amounts(panel, column):
    model = panel.results.table.rows
    return {
        row.site: model.index(place, column).data(AMOUNT_ROLE)
        for place, row in enumerate(model.rows)
    }


# --- the form ------------------------------------------------------------------------------------


def test_the_form_asks_about_what_the_window_shows(panel):
    assert panel.form.question() == Question(model=MODEL, prompts=(PROMPT,), most=50)


def test_every_field_of_the_form_reaches_the_question(panel, text_file):
    form = panel.form
    form.choose("chosen")
    form.which.setText("0.1 + 1.0, token > 0.0 > 1.0")
    pick(form.kind, "mean over a text")
    form._kinds["mean"].widgets["text"].set_path(str(text_file))
    form._kinds["mean"].widgets["windows"].setValue(3)
    form.later.button(1).click()
    pick(form.on, "a text")
    form.text.set_path(str(text_file))
    form.windows.setValue(4)
    form.length.setValue(9)
    pick(form.measure, "KL from the clean run")
    assert form.question() == Question(
        model=MODEL,
        what="chosen",
        chosen=("0.1 + 1.0", "token > 0.0 > 1.0"),
        kind="mean",
        parameters=(("text", str(text_file)), ("windows", 3)),
        frozen=True,
        metric="kl",
        text=str(text_file),
        windows=4,
        length=9,
        most=50,
    )
    assert form.reason() is None


def test_several_prompts_are_one_a_line(panel):
    form = panel.form
    pick(form.on, "several prompts")
    assert form.prompts.toPlainText() == PROMPT  # something to begin with
    form.prompts.setPlainText("I like tea\n\nI drink tea\n")
    form.target.setText("tea")
    asked = form.question()
    assert asked.prompts == ("I like tea", "I drink tea")
    assert (asked.target, asked.dest) == ("tea", None)


def test_fields_of_a_kind_come_with_it(panel):
    form = panel.form
    shown = lambda: {n for n, f in form._kinds.items() for w in f.widgets.values() if w.isVisible()}  # noqa: E731
    assert shown() == set()
    assert not form.seed.isVisible()
    pick(form.kind, "resampled")
    assert shown() == {"resample"}
    assert form.seed.isVisible()
    form._kinds["resample"].widgets["prompt"].setText("I like milk , so I drink green")
    assert not form.seed.isVisible()  # nothing is drawn


@pytest.mark.parametrize(
    ("what", "kind", "on", "measure", "reason"),
    [
        ("mlps", "zero", "this prompt", "target logit", "no MLPs"),
        ("chosen", "zero", "this prompt", "target logit", "nothing is selected"),
        ("orders", "mean over a text", "this prompt", "loss", "choose zero"),
        ("paths", "own output, frozen pattern", "this prompt", "loss", "only heads"),
        ("heads", "resampled", "this prompt", "loss", "nothing to resample from"),
        ("heads", "zero", "this prompt", "logit difference", "two tokens"),
        ("paths", "zero", "a text", "loss", "name the paths"),
    ],
)
def test_what_cant_be_run_is_said_on_the_button(panel, what, kind, on, measure, reason):
    form = panel.form
    form.choose(what)
    pick(form.kind, kind)
    pick(form.on, on)
    pick(form.measure, measure)
    assert not form.run_button.isEnabled()
    assert reason in form.run_button.toolTip()
    panel.run()
    assert panel.queue.runs == []
    pick(form.kind, "zero")
    pick(form.measure, "loss")
    pick(form.on, "this prompt")
    form.choose("heads")
    assert form.run_button.isEnabled()


def test_what_is_selected_in_the_diagram_can_be_taken_away(qtbot, panel, analysed):
    panel.form.choose("chosen")
    analysed.select_head(Head(1, 0))
    assert panel.form.question().chosen == ("1.0",)
    path = Path.parse("token > 0.0 > 1.0")
    analysed.select_path(path)
    assert panel.form.question().chosen == (str(path),)
    entry = measure(qtbot, panel)
    (row,) = entry.rows.values()
    assert row.site == Site(paths=(path,))
    panel.form.which.setText("0.1")
    panel.form.which.textEdited.emit("0.1")
    analysed.select_head(Head(1, 1))
    assert panel.form.question().chosen == ("0.1",)  # written by hand, it stays


def test_the_measure_follows_what_is_run_until_it_is_chosen(panel, analysed):
    form = panel.form
    pick(form.on, "a text")
    assert form.question().metric == "loss"
    pick(form.on, "this prompt")
    assert form.question().metric == "logit"
    pick(form.measure, "target probability")
    pick(form.on, "a text")
    assert form.question().metric == "probability"


def test_before_a_model_is_there_nothing_can_be_run(qtbot, document):
    panel = AblationPanel(document)
    qtbot.addWidget(panel)
    panel.show_snapshot(document.snapshot)
    assert not panel.form.run_button.isEnabled()
    assert panel.form.kind.count() == 0  # the kinds would load torch before the first paint


# --- results -------------------------------------------------------------------------------------


def test_rows_say_what_each_head_contributes_and_what_zeroing_does(measured):
    contributions, effects = amounts(measured, CONTRIBUTION), amounts(measured, EFFECT)
    assert list(contributions) == HEADS
    assert contributions[HEADS[2]] == pytest.approx(5.4, abs=1e-4)
    # The head that notes the word before is worth 1 in the books, and 6.4 in the experiment.
    assert contributions[HEADS[0]] == pytest.approx(1.0, abs=1e-4)
    assert effects[HEADS[0]] == pytest.approx(2.3 - 8.7, abs=1e-3)
    assert "each head · zero · free" in measured.results.title.text()
    assert "target logit (tea) 8.70 logits" in measured.results.of.text()


def test_frozen_the_effect_is_minus_the_contribution(qtbot, panel):
    panel.form.later.button(1).click()
    measure(qtbot, panel)
    contributions, effects = amounts(panel, CONTRIBUTION), amounts(panel, EFFECT)
    for site in HEADS:
        assert effects[site] == pytest.approx(-contributions[site], abs=1e-4)


def test_orders_have_the_marginal_value_of_each(qtbot, panel, text_file):
    pick(panel.form.on, "a text")
    panel.form.text.set_path(str(text_file))
    panel.form.length.setValue(9)
    entry = measure(qtbot, panel, "orders")
    model = panel.results.table.rows
    assert [column.name for column in model.columns] == ["loss", "marginal", "±"]
    marginals = list(amounts(panel, 2).values())
    assert marginals[0] is None
    values = [row.value for row in entry.run.table.rows]
    assert marginals[1:] == pytest.approx([values[1] - values[0], values[2] - values[1]])
    assert all(row.marginal_stderr is not None for row in entry.run.table.rows[1:])


def test_a_text_has_no_column_of_contributions(qtbot, panel, text_file):
    pick(panel.form.on, "a text")
    panel.form.text.set_path(str(text_file))
    panel.form.length.setValue(9)
    measure(qtbot, panel, "heads")
    assert panel.results.table.isColumnHidden(CONTRIBUTION)
    assert panel.results.points() == ()
    assert not panel.results.plots.isVisible()


def test_a_row_and_a_point_select_the_head_everywhere(qtbot, measured, analysed):
    table = measured.results.table
    where = table.visualRect(table.rows.index_of(HEADS[1])).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert analysed.state.selection.head == Head(0, 1)
    measured.results.plot.clicked.emit("1.0")
    assert analysed.state.selection.head == Head(1, 0)
    assert table.sole_site() == HEADS[2]
    assert [p.label for p in measured.results.points() if p.marked] == ["1.0"]
    analysed.select_head(Head(1, 1))  # and from the diagram to the table
    assert table.sole_site() == HEADS[3]


def test_paths_are_selected_both_ways(qtbot, panel, analysed):
    entry = measure(qtbot, panel, "paths")
    site = next(iter(entry.rows))
    panel.results.plot.clicked.emit(str(site))
    assert analysed.state.selection.path == site.paths[0]
    other = list(entry.rows)[1]
    analysed.select_path(other.paths[0])
    assert panel.results.table.sole_site() == other


def test_results_of_another_question_are_pale_and_say_so(qtbot, measured, analysed):
    assert measured.results.plot._overlay.opacity() == 1
    ask(qtbot, analysed, lambda state: replace(state, dest=5))
    assert measured.results.table.rows.stale
    assert measured.results.of.text().startswith("Of another question")
    assert measured.results.plot._overlay.opacity() < 1
    ask(qtbot, analysed, lambda state: replace(state, dest=None))
    assert not measured.results.table.rows.stale  # back at what it is of
    ask(qtbot, analysed, lambda state: replace(state, target="apples"))
    assert measured.results.table.rows.stale
    measure(qtbot, measured)
    assert not measured.results.table.rows.stale
    assert "apples" in measured.results.of.text()


def test_nothing_of_another_model_is_marked_or_selects(qtbot, measured, analysed):
    analysed.select_head(Head(0, 0))
    ask(qtbot, analysed, lambda state: state.with_model("cat-on-the-mat", "the cat"))
    assert measured.results.of.text().startswith("Of another model: induction-by-hand")
    analysed.select_head(Head(0, 0))  # a head of that name is in both
    assert not any(point.marked for point in measured.results.points())
    assert measured.results.table.sole_site() is None
    analysed.select_head(None)
    measured.results.plot.clicked.emit("0.0")
    assert analysed.state.selection.head is None


def test_the_point_under_the_mouse_is_found(measured):
    plot, row = measured.results.plot, measured.results.table.rows.rows[0]
    scale = plot._scale()
    found = plot.point_at(QPointF(scale.x(row.contribution), scale.y(row.effect)))
    assert found is not None
    assert found.data == "0.0"
    assert plot.point_at(QPointF(1, 1)) is None


def test_contribution_and_loss_have_a_scale_each(qtbot, panel):
    pick(panel.form.measure, "loss")
    measure(qtbot, panel)
    plot = panel.results.plot
    scale = plot._scale()
    for point in panel.results.points():
        assert scale.area.left < scale.x(point.x) < scale.area.right
        assert scale.area.top < scale.y(point.y) < scale.area.bottom
    assert scale.factor_y != pytest.approx(scale.factor, rel=0.01)


def test_sorted_rows_keep_the_selected_head(measured, analysed):
    analysed.select_head(Head(1, 1))
    table = measured.results.table
    table.header().setSortIndicator(EFFECT, Qt.SortOrder.AscendingOrder)
    effects = [row.effect for row in table.rows.rows]
    assert effects == sorted(effects)
    assert table.sole_site() == HEADS[3]


def test_a_failed_run_says_why_and_the_list_goes_on(qtbot, panel):
    pick(panel.form.on, "a text")
    panel.form.text.set_path("/no/such/file.txt")
    panel.form.run_button.click()
    entry = panel.queue.runs[0]
    qtbot.waitUntil(lambda: entry.ended, timeout=WAIT)
    card = panel.runs.cards[entry]
    assert card.state.text().startswith("failed: /no/such/file.txt")
    assert "failed" in panel.results.title.text()
    pick(panel.form.on, "this prompt")
    assert measure(qtbot, panel).state == "done"


def test_a_run_is_taken_off_the_list_by_its_button(qtbot, measured):
    (entry,) = measured.queue.runs
    measured.pages.button(1).click()
    qtbot.mouseClick(measured.runs.cards[entry].button, Qt.MouseButton.LeftButton)
    assert measured.queue.runs == []
    assert measured.results.entry is None
    assert measured.results.points() == ()


# --- keeping, repeating, exporting ---------------------------------------------------------------


def test_a_run_is_exported_as_the_json_of_the_command(measured, tmp_path):
    measured.menu.write_json(tmp_path / "run.json")
    found = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert found == json.loads(json.dumps(as_json(measured.shown_run.run)))
    assert found["rows"]
    assert {"what", "contribution", "effect", "value", "stderr"} <= set(found["rows"][0])
    measured.menu.write_json(tmp_path / "nowhere" / "run.json")
    assert "can't write" in measured.document.snapshot.failure


def test_a_run_is_saved_and_opened_again(qtbot, measured, analysed, tmp_path):
    (entry,) = measured.queue.runs
    measured.menu.save_to(tmp_path / "kept")
    measured.queue.clear_ended()
    again = measured.menu.open_from(tmp_path / "kept")
    assert measured.results.entry is again
    assert list(again.rows.values()) == list(entry.rows.values())
    assert measured.runs.cards[again].state.text() == "from a file"
    measured.menu.save_to(tmp_path / "kept")  # never in the place of another
    assert "kept" in analysed.snapshot.failure
    assert measured.menu.open_from(tmp_path) is None


def test_the_command_line_is_copied(measured):
    measured.menu.copy_command()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("circuitview ablate induction-by-hand --what heads --with zero --free")


def test_csv_is_that_of_the_table(measured, analysed):
    rows = list(csv.DictReader(io.StringIO(measured.csv(analysed.snapshot))))
    assert [row["what"] for row in rows] == [str(site) for site in HEADS]
    for row in rows:
        assert float(row["value"]) - float(row["effect"]) == pytest.approx(8.7, abs=1e-3)


def test_the_exported_figure_names_every_head(measured, analysed):
    figure = measured.figure(analysed.snapshot, LIGHT, 900, 600)
    assert {str(site) for site in HEADS} <= set(texts(figure))
    assert "effect = −contribution" in texts(figure)


# --- room ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "both"),
    [((900, 420), True), ((683, 130), False), ((320, 400), False), ((330, 700), True)],
)
def test_form_and_results_share_the_room_there_is(qtbot, measured, size, both):
    measured.resize(*size)
    measured.pages.button(0).click()
    assert measured.form.isVisible()
    assert measured.results.isVisible() == both
    if not both:
        measured.pages.button(2).click()
        assert measured.results.isVisible()
        assert not measured.form.isVisible()
    assert measured.minimumSizeHint().width() <= size[0]


def test_the_window_closes_in_the_middle_of_a_run(qtbot, make_window, document):
    window = make_window([AblationPanel])
    panel = window.host.docks["ablation"].panel
    panel.form.choose("pairs")
    for _ in range(3):
        panel.run()
    window.close()
    assert not document.jobs.busy
    assert all(entry.state != "failed" for entry in document.lab.runs)


def test_pairs_show_effects_or_interactions_on_the_screen_and_in_files(qtbot, panel):
    measure(qtbot, panel)
    switches = panel.results.switches
    assert not switches.values.isVisible()
    measure(qtbot, panel, "pairs")
    assert switches.values.isVisible()

    def shown():
        figure = panel.figure(panel.document.snapshot, LIGHT, 1280, 720)
        return texts(panel.results.whole.drawn()), texts(figure)

    assert all(any("effect of removing both" in text for text in of) for of in shown())
    switches.values.button(1).click()
    assert all(any(text.startswith("interaction:") for text in of) for of in shown())
    switches.values.button(0).click()
    assert not any(text.startswith("interaction:") for of in shown() for text in of)


def test_a_table_of_many_rows_is_handed_out_as_it_is_scrolled(qtbot):
    """Ten thousand pairs were gone through by the view each time that a few more came."""
    table = LabTable()
    qtbot.addWidget(table)
    table.resize(500, 200)
    table.show()
    model, rows = table.rows, pair_rows(2, 20)  # 820 rows
    model.show_run((), "logit", by_order=False)
    for start in range(0, len(rows), 100):
        model.put(rows[start : start + 100])
    assert (model.rowCount(), len(model.rows)) == (400, 820)
    table.select(rows[700].site)  # wherever it is, it can be selected
    assert table.sole_site() == rows[700].site
    model.order_by(EFFECT, descending=True)
    assert [row.effect for row in model.rows] == sorted((r.effect for r in rows), reverse=True)
    table.selectAll()
    assert len(table.selectionModel().selectedRows()) == 820
