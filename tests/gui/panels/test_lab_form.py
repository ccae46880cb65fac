"""The form of the ablation lab: what it asks, and why it can't."""

from dataclasses import replace

import msgspec
import pytest
from PySide6.QtCore import Qt

from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.gui.panels.ablation import AblationPanel
from circuitview.session.lab import Question
from tests.gui.conftest import MODEL, PROMPT
from tests.gui.panels.conftest import measure, pick


def test_the_form_asks_about_what_the_window_shows(panel):
    assert panel.form.question() == Question(model=MODEL, prompts=(PROMPT,))


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


def test_what_is_not_said_is_what_the_command_line_takes(panel):
    usual = Question(model="")
    form = panel.form
    assert (form.most.value(), form.windows.value()) == (usual.most, usual.windows)
    pick(form.on, "a text")
    assert form.question().length is None
    assert form.question().windows == usual.windows


def test_no_window_is_longer_than_the_context(panel, analysed, text_file):
    n_ctx = analysed.snapshot.results.model.config.n_ctx
    form = panel.form
    assert n_ctx < 64  # less than the usual windows have
    for box in (form.length, form._kinds["mean"].widgets["length"]):
        assert box.value() == n_ctx
        box.setValue(n_ctx + 1)
        assert box.value() == n_ctx
    pick(form.kind, "mean over a text")
    assert form.question().parameters == ()  # the usual length: nothing to be said
    form._kinds["mean"].widgets["length"].setValue(9)
    assert form.question().parameters == ()  # no text is read: the command line refuses a length
    form._kinds["mean"].widgets["text"].set_path(str(text_file))
    assert form.question().parameters == (("text", str(text_file)), ("length", 9))


def test_a_usual_length_grows_with_the_model_and_a_chosen_one_stays(panel, analysed):
    form, snapshot = panel.form, analysed.snapshot

    def with_context(n_ctx):
        model = snapshot.results.model
        larger = replace(model, config=msgspec.structs.replace(model.config, n_ctx=n_ctx))
        return replace(snapshot, results=replace(snapshot.results, model=larger))

    mean = form._kinds["mean"].widgets["length"]
    mean.setValue(9)
    form.show_snapshot(with_context(1024))
    assert (form.length.value(), mean.value()) == (128, 9)
    assert form.length.maximum() == mean.maximum() == 1024
    form.show_snapshot(with_context(100))
    assert (form.length.value(), mean.value()) == (100, 9)


@pytest.mark.parametrize("kind", ["mean over a text", "resampled"])
def test_a_text_that_is_not_there_is_named_before_it_runs(panel, kind, text_file):
    form = panel.form
    pick(form.kind, kind)
    field = form._kinds[form.kind.currentData()].widgets["text"]
    field.set_path("/no/such/place.txt")
    assert not form.run_button.isEnabled()
    assert "/no/such/place.txt: no such file; name a text file" in panel.why.text()
    assert panel.why.isVisible()
    panel.pages.button(1).click()
    assert not panel.why.isVisible()  # the fields are not seen
    panel.pages.button(0).click()
    field.set_path(str(text_file))
    assert form.run_button.isEnabled()
    assert not panel.why.isVisible()


def test_a_kind_says_what_it_does_and_needs(panel):
    pick(panel.form.kind, "resampled")
    assert "A single prompt needs" in panel.form.kind.toolTip()
    role = Qt.ItemDataRole.ToolTipRole
    assert panel.form.kind.itemData(panel.form.kind.currentIndex(), role)
