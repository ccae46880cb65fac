"""The lab's runs on the screen: list, state, key facts and what was cut short, in any room."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from circuitview.figures.figure import texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.elided_label import FittedLabel
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_words import state_words
from circuitview.gui.panels.ablation import AblationPanel
from circuitview.gui.theming import ALARM, palette
from circuitview.session.lab import Question
from tests.figures.lab_rows import pair_rows
from tests.gui.conftest import MODEL, PROMPT, WAIT
from tests.gui.panels.conftest import measure

_RESULT = 2  # page
LOW = (683, 260)  # the panel in a window of 1280 x 800


@pytest.fixture
def panel(put_up):
    panel = put_up(AblationPanel)
    panel.resize(*LOW)
    return panel


def listed(panel, entry):
    panel.queue.runs.append(entry)
    panel.queue.listed.emit()
    panel.show_run(entry)
    return entry


def cut_short(n=4, **asked):
    """A run of pairs on a text, cancelled after `n` windows."""
    question = Question(
        **{"model": MODEL, "text": "/to/a.txt", "what": "pairs", "metric": "loss"} | asked
    )
    rows = {row.site: replace(row, n=n) for row in pair_rows(2, 2)}
    return LabRun(question, MODEL, "cancelled", rows=rows)


def shown_whole(label):
    """Whether nothing of the shortest wording of a label is cut."""
    return label.width() >= label.minimumSizeHint().width() and "…" not in label.shown_text()


# --- the list ------------------------------------------------------------------------------------


@pytest.mark.parametrize("widths", [(683, 269), (269, 683)])
def test_cards_are_as_wide_as_their_list(qtbot, panel, widths):
    """They kept the width of a wider list, with their buttons out of reach."""
    for seed in range(2):
        listed(panel, LabRun(Question(model=MODEL, prompts=(PROMPT,), seed=seed), MODEL))
    panel.pages.button(1).click()
    for width in widths:
        panel.resize(width, 240)
        for card in panel.runs.cards.values():
            wanted = panel.runs.viewport().width
            qtbot.waitUntil(lambda card=card, wanted=wanted: card.width() == wanted())
            assert panel.runs.viewport().rect().contains(card.geometry().topRight())


def test_a_card_cuts_a_long_prompt_in_its_middle_and_its_hint_has_all_of_it(panel):
    shared = "the same words again and again, and more of them until the line is full, "
    prompts = (f"{shared}then A", f"{shared}then B")
    entries = [listed(panel, LabRun(Question(model=MODEL, prompts=(p,)), MODEL)) for p in prompts]
    panel.pages.button(1).click()
    panel.resize(320, 260)
    QApplication.processEvents()
    cards = [panel.runs.cards[entry] for entry in entries]
    for card, prompt in zip(cards, prompts, strict=True):
        assert card.of.shown_text().endswith(f"{prompt[-6:]}”")
        assert "…" in card.of.shown_text()
        assert prompt in card.of.toolTip()


def test_of_wordings_the_fullest_that_fits_is_shown(qtbot):
    label = FittedLabel()
    qtbot.addWidget(label)
    label.show_wordings("all of it, and then some more", "all of it", "all")
    shown = []
    for wording in ("all of it, and then some more", "all of it", "all"):
        label.resize(label.fontMetrics().horizontalAdvance(wording) + 1, 20)
        shown.append(label.shown_text())
    assert shown == ["all of it, and then some more", "all of it", "all"]
    assert label.minimumSizeHint().width() == label.fontMetrics().horizontalAdvance("all")
    label.resize(label.fontMetrics().horizontalAdvance("al"), 20)
    assert label.shown_text() != "all"


# --- how a run stands ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [LOW, (900, 300)])
@pytest.mark.parametrize("what", ["pairs", "heads"])
def test_a_cancelled_run_says_so_and_is_pale(panel, size, what):
    """At 1280 pixels its title ended in "canc…", and table and plot were those of a whole run."""
    panel.resize(*size)
    entry = listed(panel, cut_short(what=what))
    QApplication.processEvents()
    state = panel.results.head.state
    assert state.isVisible()
    assert shown_whole(state)
    assert state.shown_text().startswith("cancelled")
    assert panel.runs.cards[entry].state.text().startswith("cancelled · 10 rows of 4 windows")
    assert panel.results.table.rows.stale
    assert panel.results.whole._faded or what != "pairs"


def test_what_a_cancelled_run_has_measured_is_no_longer_so_far():
    assert state_words(cut_short()) == "cancelled · 10 rows of 4 windows"
    assert state_words(cut_short(n=1)) == "cancelled · 10 rows of 1 window"
    assert state_words(cut_short(text="", prompts=("a",))) == "cancelled · 10 rows"


def test_the_time_that_is_left_is_not_cut(panel):
    entry = cut_short()
    entry.state, entry.seconds_left = "running", 12.0
    listed(panel, entry)
    QApplication.processEvents()
    assert panel.results.head.state.shown_text() == "about 12 s left"
    assert not panel.results.table.rows.stale or not panel.results.is_current()


def test_a_run_that_goes_on_is_cancelled_from_its_result(qtbot, panel, text_file):
    panel.form.choose("pairs")
    panel.form.on.setCurrentIndex(2)
    panel.form._choose_on()
    panel.form.text.set_path(str(text_file))
    panel.form.length.setValue(9)
    panel.form.windows.setValue(16)
    panel.form.run_button.click()
    assert panel.pages.place == _RESULT
    head, (entry,) = panel.results.head, panel.queue.runs
    assert head.stop.isVisible()
    qtbot.mouseClick(head.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: entry.ended, timeout=WAIT)
    assert entry.state == "cancelled"
    assert not head.stop.isVisible()


def test_only_whole_runs_are_kept_and_the_menu_says_why(panel):
    menu = panel.menu
    hints = {}
    for state in ("running", "cancelled", "failed"):
        entry = cut_short()
        entry.state = state
        listed(panel, entry)
        menu._allow()
        assert not menu.save.isEnabled()
        assert menu.save.toolTip() == menu.json.toolTip()
        hints[state] = menu.save.toolTip()
    assert "not ended" in hints["running"]
    assert "cancelled" in hints["cancelled"]
    assert "failed" in hints["failed"]


# --- the key facts -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["heads", "pairs"])
def test_measure_and_clean_value_are_read_in_a_small_window(qtbot, panel, what):
    measure(qtbot, panel, what)
    assert panel.pages.place == _RESULT
    QApplication.processEvents()
    of = panel.results.of
    assert of.isVisible()
    assert of.shown_text().startswith("target logit (tea), clean 8.70 logits")
    assert of.width() > 600
    of.resize(220, of.height())
    assert of.shown_text() == "target logit (tea), clean 8.70 logits"


def test_in_a_panel_that_gets_small_the_chosen_run_is_shown(qtbot, panel):
    """Of list and result side by side the list was left, and the result gone."""
    panel.resize(860, 300)
    measure(qtbot, panel)
    assert panel.pages.place == 1
    panel.resize(*LOW)
    assert panel.pages.place == _RESULT
    assert panel.results.isVisible()
    panel.resize(860, 300)
    panel.pages.button(0).click()
    panel.resize(*LOW)  # who fills in the form goes on with it
    assert panel.pages.place == 0


# --- errors and hints ----------------------------------------------------------------------------


def test_errors_have_the_colour_of_alarm_and_hints_do_not(panel):
    form, why = panel.form, panel.why

    def ink():
        return palette(LIGHT).color(why.foregroundRole())

    panel.pages.button(0).click()
    form.choose("chosen")
    assert "nothing is selected" in why.text()
    assert ink() == QColor(LIGHT.muted)
    form.which.setText("9.9")
    assert "there is no head 9.9" in why.text()
    assert ink() == QColor(ALARM["light"])


def test_why_a_run_failed_stands_over_its_table_in_the_colour_of_alarm(panel):
    entry = cut_short()
    entry.state, entry.failure = "failed", "/to/a.txt: no text; name another"
    listed(panel, entry)
    of = panel.results.of
    assert of.text() == entry.failure
    assert of.foregroundRole() == QPalette.ColorRole.BrightText
    assert panel.results.head.state.text() == "failed"


def test_the_scale_of_pairs_says_what_it_is_beside_a_table(qtbot, panel):
    measure(qtbot, panel, "pairs")
    switches, whole = panel.results.switches, panel.results.whole
    for value, button in zip(("effect", "interaction"), (0, 1), strict=True):
        switches.values.button(button).click()
        whole.resize(330, 180)
        assert any(text.startswith(value) for text in texts(whole.drawn()))
