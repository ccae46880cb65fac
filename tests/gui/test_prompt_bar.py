"""The fields: typing, BOS, tokens completed from the vocabulary."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from circuitview.gui.prompt_bar import PromptBar, with_bos
from circuitview.gui.token_field import TokenField
from circuitview.session.state import Selection, State
from tests.gui.conftest import MODEL, PROMPT, WAIT, ask, begin


@pytest.fixture
def bar(qtbot, document):
    made = PromptBar(document)
    qtbot.addWidget(made)
    made.show()
    begin(qtbot, document)
    return made


def type_over(qtbot, field, text):
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)


def test_typed_prompt_is_analysed_when_the_typing_halts(qtbot, bar, document):
    type_over(qtbot, bar.prompt, "so I drink tea so I")
    assert document.state.prompt == PROMPT
    qtbot.waitUntil(lambda: document.snapshot.state.prompt == "so I drink tea so I", timeout=WAIT)
    assert bar.prompt.text() == "so I drink tea so I"


def test_enter_does_not_wait_for_the_pause(qtbot, bar, document):
    type_over(qtbot, bar.prompt, "I like")
    qtbot.keyClick(bar.prompt, Qt.Key.Key_Return)
    assert document.state.prompt == "I like"
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)


def test_prompt_that_fails_keeps_its_wording_and_is_framed(qtbot, bar, document):
    type_over(qtbot, bar.prompt, "nonsense words")
    qtbot.waitUntil(lambda: document.snapshot.failure is not None, timeout=WAIT)
    assert bar.prompt.text() == "nonsense words"
    assert bar.prompt.property("wrong")
    assert document.snapshot.state.prompt == PROMPT
    type_over(qtbot, bar.prompt, "I like")
    assert not bar.prompt.property("wrong")
    qtbot.waitUntil(lambda: document.snapshot.state.prompt == "I like", timeout=WAIT)


def test_newlines_of_a_pasted_prompt_are_seen_and_kept(qtbot, bar, document):
    bar.prompt.setFocus()
    bar.prompt.selectAll()
    bar.prompt.insert("I\nlike")
    bar.prompt.textEdited.emit(bar.prompt.text())
    assert bar.prompt.text() == "I↵like"
    qtbot.keyClick(bar.prompt, Qt.Key.Key_Return)
    assert document.state.prompt == "I\nlike"
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)


def test_prompt_under_the_users_hands_is_not_overwritten_by_an_answer(qtbot, bar, document):
    document.edit(lambda state: replace(state, dest=3))
    type_over(qtbot, bar.prompt, "I li")
    qtbot.waitUntil(lambda: document.snapshot.state.dest == 3, timeout=WAIT)
    assert bar.prompt.text() == "I li"
    qtbot.waitUntil(lambda: document.snapshot.failure is not None, timeout=WAIT)


def test_bos_off_keeps_the_same_token_as_dest(qtbot, bar, document):
    ask(qtbot, document, lambda state: replace(state, dest=4))
    label = document.snapshot.results.expansion.recording.prompt.labels[4]
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        bar.bos.click()
    expansion = document.snapshot.results.expansion
    assert expansion.recording.prompt.labels[expansion.target.dest] == label
    assert expansion.recording.prompt.labels[0] != "BOS"
    assert not bar.bos.isChecked()


def test_bos_is_disabled_with_the_reason_where_the_model_has_none(qtbot, bar, document):
    ask(qtbot, document, lambda state: state.with_model("cat-on-the-mat"))
    assert not bar.bos.isEnabled()
    assert not bar.bos.isChecked()
    assert "no BOS" in bar.bos.toolTip()
    ask(qtbot, document, lambda state: state.with_model(MODEL))
    assert bar.bos.isEnabled()
    assert bar.bos.isChecked()


def test_with_bos_moves_dest_and_forgets_the_source():
    state = State(dest=4, selection=Selection(source=2))
    assert with_bos(state, False).dest == 3
    assert with_bos(replace(state, prepend_bos=False), True).dest == 5
    assert with_bos(replace(state, dest=None), False).dest is None
    assert with_bos(replace(state, dest=0), False).dest == 0
    assert with_bos(state, False).selection.source is None


def test_target_typed_and_entered_becomes_the_target(qtbot, bar, document):
    type_over(qtbot, bar.target, "drink")
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        qtbot.keyClick(bar.target, Qt.Key.Key_Return)
    assert document.snapshot.results.expansion.target.label == "drink"
    assert document.snapshot.state.target == "drink"


def test_cleared_target_is_the_top_prediction_again(qtbot, bar, document):
    ask(qtbot, document, lambda state: replace(state, target="drink"))
    assert bar.target.text() == "drink"
    assert "tea" in bar.target.placeholderText()
    bar.target.setFocus()
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        bar.target.clear()
    assert document.snapshot.state.target is None
    assert document.snapshot.results.expansion.target.label == "tea"


def test_versus_gives_the_difference(qtbot, bar, document):
    type_over(qtbot, bar.versus, "like")
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        qtbot.keyClick(bar.versus, Qt.Key.Key_Return)
    assert str(document.snapshot.results.expansion.target) == "tea − like"


def test_target_that_is_no_token_is_framed_and_the_last_one_stays(qtbot, bar, document):
    type_over(qtbot, bar.target, "I like")
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        qtbot.keyClick(bar.target, Qt.Key.Key_Return)
    assert document.snapshot.failure
    assert bar.target.property("wrong")
    assert bar.target.text() == "I␣like"
    assert document.snapshot.results.expansion.target.label == "tea"


def leave(field):
    field._popup.hide()  # as a click elsewhere does
    field.clearFocus()


@pytest.fixture
def field(qtbot):
    made = TokenField("Target token", "top prediction")
    qtbot.addWidget(made)
    made.set_labels(("a", "␣a", "tea", "␣tea", "␣team", "steam"))
    made.show()
    qtbot.waitExposed(made)
    made.setFocus()
    return made


def test_typed_space_is_seen(qtbot, field):
    qtbot.keyClicks(field, " te")
    assert field.text() == "␣te"
    assert field.matches() == ("␣tea", "␣team")


def test_best_matches_come_first(qtbot, field):
    qtbot.keyClicks(field, "tea")
    assert field.matches() == ("tea", "␣tea", "␣team", "steam")


def test_half_a_word_is_put_back_when_the_field_is_left(qtbot, field):
    field.show_token("tea")
    taken = []
    field.taken.connect(taken.append)
    field.selectAll()
    qtbot.keyClicks(field, "st")
    leave(field)
    assert field.text() == "tea"
    assert taken == []


def test_whole_token_is_taken_when_the_field_is_left(qtbot, field):
    taken = []
    field.taken.connect(taken.append)
    qtbot.keyClicks(field, " tea")
    leave(field)
    assert taken == ["␣tea"]


def test_escape_puts_back_what_was_asked(qtbot, field):
    field.show_token("␣tea")
    field.selectAll()
    qtbot.keyClicks(field, "st")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "␣tea"


def test_a_second_prompt_is_opened_with_all_of_it_selected_to_be_typed_over(qtbot, bar, document):
    bar.activateWindow()
    bar.compare()
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)
    assert bar.other.text() == bar.other.selectedText() == PROMPT
