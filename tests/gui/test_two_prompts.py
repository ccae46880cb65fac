"""Two prompts in one window: B is added, looked at, subtracted, and taken away again."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt

from circuitview.core.model import NativeModel
from circuitview.figures.figure import texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.dock_host import find_panels
from circuitview.gui.export_job import ExportJob
from circuitview.session.settings import ExportChoices
from tests.gui.conftest import PROMPT, WAIT, ask

OTHER = "I like green cat , so I drink green"
LONGER = f"{OTHER} tea"


def settle(qtbot, document):
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)


def type_over(qtbot, field, text):
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def click(qtbot, window, place):
    """The segment A, B or B − A."""
    button = window.prompt_bar.shown.button(place)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    settle(qtbot, window.document)


@pytest.fixture
def window(make_window):
    """With all its panels."""
    return make_window(find_panels())


@pytest.fixture
def two(qtbot, window):
    """The window on two prompts, B shown."""
    bar = window.prompt_bar
    qtbot.mouseClick(bar.add_button, Qt.MouseButton.LeftButton)
    settle(qtbot, window.document)
    type_over(qtbot, bar.other, OTHER)
    settle(qtbot, window.document)
    return window


def test_second_line_opens_on_the_same_text_and_takes_the_keyboard(qtbot, window):
    bar, document = window.prompt_bar, window.document
    before = document.snapshot.results.expansion
    assert not bar.other.isVisible()
    action = window.menus.actions_by_name["Compare with a second prompt"]
    assert not action.shortcut().isEmpty()
    action.trigger()
    settle(qtbot, document)
    assert bar.other.isVisible()
    assert bar.close_button.isVisible()
    assert not bar.add_button.isVisible()
    assert bar.other.text() == PROMPT
    assert window.focusWidget() is bar.other
    assert (document.state.showing, bar.shown.place) == ("b", 1)
    made = document.snapshot.results.expansion
    assert made is not before
    assert made.contributions.tolist() == before.contributions.tolist()
    click(qtbot, window, 2)
    nothing = document.snapshot.results.expansion
    assert not nothing.contributions.any()
    assert nothing.logit == 0.0
    assert "= 0.00; model's B − A 0.00; error 0" in window.balance.text()


def test_a_b_and_the_difference_are_one_click_apart_and_run_nothing(qtbot, two, monkeypatch):
    document = two.document
    b = document.snapshot.results
    assert b.expansion.recording.prompt.labels[4] == "cat"
    click(qtbot, two, 0)
    a = document.snapshot.results
    monkeypatch.setattr(NativeModel, "run", None)  # whoever runs the model fails
    click(qtbot, two, 2)
    both = document.snapshot.results
    assert document.snapshot.failure is None
    assert both.expansion.between == (a.expansion, b.expansion)
    assert both.expansion.logit == b.expansion.logit - a.expansion.logit
    assert both.expansion.recording.prompt.labels[4] == "tea → cat"
    for place, results in ((1, b), (0, a), (2, both)):
        click(qtbot, two, place)
        assert document.snapshot.results.expansion is results.expansion
    assert "model's B − A" in two.balance.text()
    assert "B − A" in two.token_strip.caption.text()
    assert two.windowTitle().startswith("B − A: ")
    assert "tea → cat" in [chip.text for chip in two.token_strip.tokens.chips]


def test_the_shortcuts_show_a_b_and_the_difference(qtbot, two):
    for name, shown in (
        ("Show prompt A", "a"),
        ("Show B − A", "difference"),
        ("Show prompt B", "b"),
    ):
        action = two.menus.actions_by_name[name]
        assert action.isEnabled()
        assert not action.shortcut().isEmpty()
        action.trigger()
        assert two.document.state.showing == shown
        settle(qtbot, two.document)


def test_different_lengths_refuse_the_difference_and_nothing_else(qtbot, two):
    document, bar = two.document, two.prompt_bar
    click(qtbot, two, 2)
    type_over(qtbot, bar.other, LONGER)
    settle(qtbot, document)
    snapshot = document.snapshot
    assert snapshot.refused
    assert snapshot.failure.startswith("A has 10 tokens, B has 11")
    assert "A has 10 tokens, B has 11" in two.balance.text()
    assert snapshot.results.expansion is None
    assert bar.other.text() == LONGER  # nothing that was typed is lost
    assert document.state.other == LONGER
    assert not bar.other.property("wrong")
    click(qtbot, two, 0)
    assert len(document.snapshot.results.expansion.recording.prompt) == 10
    click(qtbot, two, 1)
    assert len(document.snapshot.results.expansion.recording.prompt) == 11
    assert document.snapshot.failure is None
    click(qtbot, two, 2)
    assert document.snapshot.refused
    type_over(qtbot, bar.other, OTHER)
    settle(qtbot, document)
    assert document.snapshot.results.expansion.between is not None


def test_a_slip_after_a_refusal_keeps_both_prompts(qtbot, two):
    document, bar = two.document, two.prompt_bar
    click(qtbot, two, 2)
    type_over(qtbot, bar.other, LONGER)
    settle(qtbot, document)
    type_over(qtbot, bar.target, "xylophone")
    settle(qtbot, document)
    assert "xylophone" in document.snapshot.failure
    assert document.state.other == bar.other.text() == LONGER
    click(qtbot, two, 1)
    assert document.snapshot.failure is None
    assert len(document.snapshot.results.expansion.recording.prompt) == 11


def test_second_prompt_that_fails_keeps_its_wording_and_is_framed(qtbot, two):
    bar, document = two.prompt_bar, two.document
    type_over(qtbot, bar.other, "nonsense words")
    settle(qtbot, document)
    assert document.snapshot.failure.startswith("second prompt: ")
    assert bar.other.text() == "nonsense words"
    assert bar.other.property("wrong")
    assert not bar.prompt.property("wrong")
    assert document.snapshot.state.other == OTHER


def test_closing_b_leaves_a_as_it_was(qtbot, two):
    document, bar = two.document, two.prompt_bar
    click(qtbot, two, 0)
    a = document.snapshot.results.expansion
    click(qtbot, two, 2)
    qtbot.mouseClick(bar.close_button, Qt.MouseButton.LeftButton)
    settle(qtbot, document)
    assert document.state.other is None
    assert document.snapshot.results.expansion is a
    assert not bar.other.isVisible()
    assert bar.add_button.isVisible()
    assert bar.prompt.text() == PROMPT
    assert not two.menus.actions_by_name["Show B − A"].isEnabled()


def test_closing_a_longer_b_does_not_leave_dest_beyond_a(qtbot, two):
    document = two.document
    type_over(qtbot, two.prompt_bar.other, LONGER)
    settle(qtbot, document)
    ask(qtbot, document, lambda state: replace(state, dest=10))
    assert document.snapshot.results.expansion.target.dest == 10
    two.prompt_bar.stop_comparing()
    settle(qtbot, document)
    assert document.snapshot.failure is None
    assert document.snapshot.results.expansion.target.dest == 9


def test_target_of_b_is_the_top_prediction_of_a(two):
    document = two.document
    label = document.snapshot.results.expansion.target.label
    assert document.snapshot.results.predictions[0].label != label
    assert two.prompt_bar.target.placeholderText().startswith(label)


def test_typing_in_a_prompt_shows_it_unless_the_difference_is_shown(qtbot, two):
    document, bar = two.document, two.prompt_bar
    type_over(qtbot, bar.prompt, "I like green hat , so I drink green")
    assert document.state.showing == "a"
    settle(qtbot, document)
    click(qtbot, two, 2)
    type_over(qtbot, bar.prompt, PROMPT)
    assert document.state.showing == "difference"
    settle(qtbot, document)
    assert document.snapshot.results.expansion.between is not None


def test_heatmap_of_the_difference_has_signed_colours_and_says_so(qtbot, two):
    document, panel = two.document, two.host.docks["attention"].panel
    # Another token is looked at: "green" stood before tea alone.
    type_over(qtbot, two.prompt_bar.other, "I like drink tea , so I drink green")
    settle(qtbot, document)
    click(qtbot, two, 2)
    values = document.snapshot.results.heatmap
    assert values.min() < 0 < values.max()
    assert values.sum(1) == pytest.approx(np.zeros(len(values)), abs=1e-6)  # rows sum to 1 each
    panel.show_snapshot(document.snapshot)
    assert "B − A" in panel.readout.text()
    figure = panel.figure(document.snapshot, LIGHT, 600.0, 600.0)
    assert texts(figure)[0].endswith("B − A")
    assert "green → drink" in texts(figure)
    assert "B: 10 tokens" in figure.description


def test_bars_of_a_product_are_not_subtracted(qtbot, two):
    panel = two.host.docks["ov"].panel
    click(qtbot, two, 2)
    panel.show_snapshot(two.document.snapshot)
    assert "show A or B" in panel.explanation.text()
    assert panel.scroll_area.isHidden()
    click(qtbot, two, 1)
    panel.show_snapshot(two.document.snapshot)
    assert not panel.scroll_area.isHidden()


def test_freezing_is_of_the_prompt_shown_and_a_row_of_a_beside_b(qtbot, two):
    panel = two.host.docks["freezing"].panel
    panel.show_snapshot(two.document.snapshot)
    expansion = two.document.snapshot.results.expansion
    about = panel.form.question().about
    assert (about.prompt, about.other) == (OTHER, None)
    assert (about.target, about.dest) == (expansion.target.label, expansion.target.dest)
    labels = expansion.recording.prompt.labels
    places = range(panel.form.position.count())
    assert [panel.form.position.itemText(src) for src in places] == [
        f"{src} {labels[src]}" for src in places
    ]
    panel.experiments.button(2).click()
    row = panel.form.question()
    assert (row.about.prompt, row.other) == (PROMPT, OTHER)
    assert panel.form.prompt_b.text() == OTHER


def test_freezing_beside_a_difference_is_of_a(qtbot, two):
    click(qtbot, two, 2)
    panel = two.host.docks["freezing"].panel
    panel.show_snapshot(two.document.snapshot)
    assert panel.form.question().about.prompt == PROMPT
    assert not any("→" in panel.form.position.itemText(src) for src in range(10))


def test_the_file_of_what_was_found_on_a_bears_its_name(qtbot, two):
    """It was named after B − A, which was never run."""
    click(qtbot, two, 2)
    panel = two.host.docks["freezing"].panel
    panel.show_snapshot(two.document.snapshot)
    job = ExportJob(panel, two.document.snapshot, ExportChoices())
    assert job.file_name() == "i-like-green-tea-so-freezing.svg"
    panel.run()
    qtbot.waitUntil(lambda: "linearity" in panel.answers, timeout=WAIT)
    click(qtbot, two, 1)
    later = ExportJob(panel, two.document.snapshot, ExportChoices())
    assert later.file_name() == job.file_name()  # the answer is still that of A


def test_what_is_found_on_a_prompt_stays_of_it_when_another_comes_and_goes(qtbot, two):
    click(qtbot, two, 0)
    panel = two.host.docks["freezing"].panel
    panel.show_snapshot(two.document.snapshot)
    panel.run()
    qtbot.waitUntil(lambda: "linearity" in panel.answers, timeout=WAIT)
    assert not panel.told.text()
    click(qtbot, two, 1)
    panel.show_snapshot(two.document.snapshot)
    assert "another question" in panel.told.text()
    two.prompt_bar.close_button.click()
    settle(qtbot, two.document)
    panel.show_snapshot(two.document.snapshot)
    assert two.document.snapshot.state.other is None
    assert not panel.told.text()


def test_what_is_measured_on_one_prompt_is_measured_on_the_one_shown(qtbot, two):
    document = two.document
    alone = document.snapshot.alone
    assert (alone.prompt, alone.other) == (OTHER, None)
    assert alone.target == document.snapshot.results.expansion.target.label
    click(qtbot, two, 0)
    assert document.snapshot.alone.prompt == PROMPT
    # A's own top prediction is what it is without B too: the same question, not a former one.
    assert document.snapshot.alone.target is None
