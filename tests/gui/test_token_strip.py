"""The token strip: tints that add up, clicks, keys, long prompts."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from circuitview.core.names import TOKEN
from circuitview.figures.theme import DARK, LIGHT
from circuitview.gui.token_strip import TokenStrip, prediction_chips, tint, token_chips
from circuitview.session.state import Snapshot
from circuitview.session.tokens import token_contributions
from tests.gui.conftest import WAIT, ask, begin


@pytest.fixture
def strip(qtbot, document):
    made = TokenStrip(document)
    qtbot.addWidget(made)
    made.resize(1200, 90)
    made.show()
    qtbot.waitExposed(made)
    begin(qtbot, document)
    return made


def click(qtbot, flow, index, modifier=Qt.KeyboardModifier.NoModifier):
    place = flow.box(index).center().toPoint()
    qtbot.mouseClick(flow, Qt.MouseButton.LeftButton, modifier, place)


def test_values_under_the_tokens_are_the_sums_of_all_token_paths(analysed):
    expansion = analysed.snapshot.results.expansion
    listed = sum(term.by_source for term in expansion.terms if term.path.source == TOKEN)
    assert token_contributions(expansion) == pytest.approx(listed, abs=1e-5)


def test_click_makes_a_token_the_dest(qtbot, strip, document):
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        click(qtbot, strip.tokens, 4)
    assert document.snapshot.state.dest == 4
    outlined = [i for i, chip in enumerate(strip.tokens.chips) if chip.outlined]
    assert outlined == [4]


def test_tokens_after_dest_have_no_value(qtbot, strip, document):
    ask(qtbot, document, lambda state: replace(state, dest=4))
    assert [bool(chip.under) for chip in strip.tokens.chips] == [True] * 5 + [False] * 5


def test_shift_click_marks_the_source_and_unmarks_it(qtbot, strip, document):
    click(qtbot, strip.tokens, 3, Qt.KeyboardModifier.ShiftModifier)
    assert document.snapshot.state.selection.source == 3
    assert strip.tokens.chips[3].marked
    assert document.snapshot.state.dest is None
    click(qtbot, strip.tokens, 3, Qt.KeyboardModifier.ShiftModifier)
    assert document.snapshot.state.selection.source is None


def test_arrow_keys_move_dest_and_stop_at_the_ends(qtbot, strip, document):
    for _ in range(3):
        qtbot.keyClick(strip.tokens, Qt.Key.Key_Left)
    assert document.state.dest == 6  # each from where the last one went, answered or not
    qtbot.keyClick(strip.tokens, Qt.Key.Key_Home)
    qtbot.keyClick(strip.tokens, Qt.Key.Key_Left)
    assert document.state.dest == 0
    qtbot.keyClick(strip.tokens, Qt.Key.Key_End)
    qtbot.keyClick(strip.tokens, Qt.Key.Key_Right)
    assert document.state.dest == 9
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)


def test_click_on_a_token_of_the_prompt_before_is_ignored(qtbot, strip, document):
    document.edit(lambda state: state.with_prompt("I like"))
    click(qtbot, strip.tokens, 8)
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)
    assert document.snapshot.failure is None
    assert document.snapshot.state.prompt == "I like"


def test_click_on_a_prediction_makes_it_the_target(qtbot, strip, document):
    label = strip.predictions.chips[1].text
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        click(qtbot, strip.predictions, 1)
    assert document.snapshot.results.expansion.target.label == label
    assert [chip.outlined for chip in strip.predictions.chips][:2] == [False, True]


def test_target_that_was_versus_ends_the_difference(qtbot, strip, document):
    label = strip.predictions.chips[1].text
    ask(qtbot, document, lambda state: replace(state, versus=label))
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        click(qtbot, strip.predictions, 1)
    assert document.snapshot.failure is None
    assert document.snapshot.state.versus is None


def test_tip_tells_token_id_position_and_contribution(analysed):
    chip = token_chips(analysed.snapshot, LIGHT)[4]
    assert "position 4" in chip.tip
    assert "id " in chip.tip
    assert "logits to tea" in chip.tip


def test_strongest_token_has_the_strongest_tint():
    assert tint(0.0, LIGHT) != tint(1.0, LIGHT)
    assert tint(1.0, LIGHT) != tint(-1.0, LIGHT)
    assert tint(0.5, DARK) != tint(0.5, LIGHT)


def test_empty_results_have_no_chips():
    assert token_chips(Snapshot(), LIGHT) == ()
    assert prediction_chips(Snapshot(), LIGHT) == ()


def test_many_tokens_wrap_scroll_and_keep_dest_in_sight(qtbot, strip, document):
    words = " ".join(["I like green tea"] * 8)
    strip.resize(500, 90)
    ask(qtbot, document, lambda state: state.with_prompt(words))
    assert len(strip.tokens.chips) == 33
    assert strip.tokens.height() > strip._scroll.height()
    qtbot.waitUntil(lambda: not strip.tokens.visibleRegion().isEmpty(), timeout=WAIT)
    box = strip.tokens.box(32).toRect()

    def dest_is_seen():
        return strip.tokens.visibleRegion().boundingRect().contains(box.center())

    qtbot.waitUntil(dest_is_seen, timeout=WAIT)
    assert strip.height() < 200
