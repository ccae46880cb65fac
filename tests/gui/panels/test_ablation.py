"""The ablation panel: what the form asks, rows that arrive, and results that are never shown for
what they are not."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, Qt

from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.figures.figure import texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_table import LabTable
from circuitview.gui.panels.ablation import AblationPanel
from circuitview.gui.tables.amount_delegate import AMOUNT_ROLE
from circuitview.session.lab import Question
from tests.figures.lab_rows import pair_rows
from tests.gui.conftest import MODEL, WAIT, ask
from tests.gui.panels.conftest import measure, pick

HEADS = [Site(heads=(Head(layer, head),)) for layer in (0, 1) for head in (0, 1)]
CONTRIBUTION, EFFECT = 1, 2  # columns


def amounts(panel, column):
    model = panel.results.table.rows
    return {
        row.site: model.index(place, column).data(AMOUNT_ROLE)
        for place, row in enumerate(model.rows)
    }


# --- results -------------------------------------------------------------------------------------


def test_rows_say_what_each_head_contributes_and_what_zeroing_does(measured):
    contributions, effects = amounts(measured, CONTRIBUTION), amounts(measured, EFFECT)
    assert list(contributions) == HEADS
    assert contributions[HEADS[2]] == pytest.approx(5.4, abs=1e-4)
    # The head that notes the word before is worth 1 in the books, and 6.4 in the experiment.
    assert contributions[HEADS[0]] == pytest.approx(1.0, abs=1e-4)
    assert effects[HEADS[0]] == pytest.approx(2.3 - 8.7, abs=1e-3)
    assert measured.results.head.title.text() == "each head · zero · free"
    assert measured.results.of.text().startswith("target logit (tea), clean 8.70 logits")


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


def test_of_a_text_contributions_are_to_its_next_tokens_and_the_plot_says_so(
    qtbot, panel, text_file
):
    pick(panel.form.on, "a text")
    panel.form.text.set_path(str(text_file))
    panel.form.length.setValue(9)
    entry = measure(qtbot, panel, "heads")
    assert not panel.results.table.isColumnHidden(CONTRIBUTION)
    points = {point.label: point.x for point in panel.results.points()}
    assert points == {str(row.site): row.contribution for row in entry.run.table.rows}
    assert panel.results.plots.currentWidget() is panel.results.plot
    assert "mean" in panel.results.plot._words.x
    panel.resize(1300, 500)
    qtbot.waitUntil(lambda: "to the next tokens" in panel.results.plot._words.x)


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
    assert measured.results.head.state.text().startswith("of another question")
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
    assert measured.results.head.state.text().startswith("of another model")
    assert "induction-by-hand" in measured.results.of.text()
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


def test_a_failed_run_says_why_and_the_list_goes_on(qtbot, panel, tmp_path):
    pick(panel.form.on, "a text")
    file = tmp_path / "no.txt"
    file.write_bytes(b"\xff\xfe\xff")
    panel.form.text.set_path(str(file))
    panel.form.run_button.click()
    entry = panel.queue.runs[0]
    qtbot.waitUntil(lambda: entry.ended, timeout=WAIT)
    card = panel.runs.cards[entry]
    assert card.state.text().startswith(f"failed: {file}")
    assert panel.results.head.state.text() == "failed"
    pick(panel.form.on, "this prompt")
    assert measure(qtbot, panel).state == "done"


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("mean", (("text", "/a/long/way/to/hyde.txt"),), "each head · mean over hyde.txt · free"),
        ("mean", (), "each head · mean over what is run · free"),
        ("pattern", (), "each head · own pattern · free"),
        (
            "resample",
            (("prompt", "I like  milk"),),
            "each head · resampled from “I like milk” · free",
        ),
        ("resample", (("text", "/to/hyde.txt"),), "each head · resampled from hyde.txt · free"),
        ("pattern", (("prompt", "x" * 60),), f"each head · pattern of “{'x' * 23}…” · free"),
    ],
)
def test_list_and_header_name_what_a_kind_reads(panel, kind, parameters, said):
    entry = LabRun(Question(model=MODEL, kind=kind, parameters=parameters, prompts=("a",)), MODEL)
    panel.queue.runs.append(entry)
    panel.queue.listed.emit()
    assert panel.runs.cards[entry].title.text() == said
    assert panel.results.head.title.text() == said


def test_a_run_is_taken_off_the_list_by_its_button(qtbot, measured):
    (entry,) = measured.queue.runs
    measured.pages.button(1).click()
    qtbot.mouseClick(measured.runs.cards[entry].button, Qt.MouseButton.LeftButton)
    assert measured.queue.runs == []
    assert measured.results.entry is None
    assert measured.results.points() == ()


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


def test_words_among_the_buttons_have_the_room_of_what_can_not_be_used(panel, measured):
    button = measured.results.switches.colouring
    measured.resize(683, 260)
    measured.pages.button(2).click()
    assert button.isVisible()  # the run is of what the diagram shows
    assert measured.results.head.parentWidget() is measured.side
    measured.document.effects.look_at(None)
    assert not button.isVisible()
    measured.resize(900, 420)
    assert button.isVisible()  # with the reason in its tool tip
    assert measured.results.head.parentWidget() is measured.results


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
