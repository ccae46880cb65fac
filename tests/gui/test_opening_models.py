"""Opening any checkpoint in the window: menus follow the model, what is refused changes nothing."""

from dataclasses import replace

import pytest
import torch
from PySide6.QtCore import QMimeData, QUrl
from PySide6.QtWidgets import QDialogButtonBox, QFileDialog, QMessageBox

from circuitview.core import memory
from circuitview.gui.app import Asked, first_state
from circuitview.gui.opening import dropped_model
from circuitview.session.settings import Answers, Settings
from circuitview.session.state import State
from tests.broken_checkpoints import CASES, TRACE
from tests.gui.conftest import MODEL, PROMPT, WAIT, ask
from tests.hf_families import save_family
from tests.tiny_models import MLP_KINDS, Tiny, build_bundle, state_dict, word_tokenizer

BARE = Tiny(normalization_type="LNPre")


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    made = {}

    def folder(family):
        if family not in made:
            made[family] = str(save_family(family, tmp_path_factory.mktemp("hf") / family))
        return made[family]

    return folder


@pytest.fixture
def weights(tmp_path):
    """A bare state dict; its file does not say which norm it has."""
    path = tmp_path / "mine.pth"
    torch.save(state_dict(BARE), path)
    word_tokenizer(BARE.d_vocab).save(str(tmp_path / "tokenizer.json"))
    return path


def opened(qtbot, window, model):
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        window.opener.open_model(str(model))
    qtbot.waitUntil(lambda: not window.document.computing, timeout=WAIT)
    return window.document.snapshot


def action(window, name):
    return window.menus.actions_by_name[name]


# --- a Hugging Face folder -----------------------------------------------------------------------


def test_hugging_face_folder_opens_by_the_dialog(qtbot, window, families, monkeypatch):
    folder = families("llama")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: folder)
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        action(window, "Open folder").trigger()
    results = window.document.snapshot.results
    assert window.document.snapshot.failure is None
    assert results.model.name == "llama"
    assert results.expansion.balanced
    assert window.store.settings.recent == (folder,)
    assert "MLP outputs held" in window.balance.held.text()


def test_file_of_the_folder_opens_it_by_the_dialog(qtbot, window, families, monkeypatch):
    file = families("gpt2") + "/model.safetensors"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (file, ""))
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        action(window, "Open file").trigger()
    assert window.document.snapshot.results.model.name == "gpt2"
    assert window.opener.dialog is None  # a whole model leaves no question open


def test_menus_follow_what_the_model_can_do(qtbot, window, families):
    sources, through = window.menus.expansion_group.actions()
    assert action(window, "Compute in float64").isEnabled()
    assert not sources.isEnabled()
    assert not through.isEnabled()
    assert through.toolTip() == f"{MODEL} has no MLPs"
    assert not window.expansion_choice.isVisible()
    opened(qtbot, window, families("llama"))
    assert not action(window, "Compute in float64").isEnabled()
    assert "runs in float32, not in float64" in action(window, "Compute in float64").toolTip()
    assert sources.isChecked()
    assert through.isEnabled()
    assert window.expansion_choice.isVisible()
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        window.opener.open_model(MODEL)
    assert action(window, "Compute in float64").isEnabled()
    assert not window.expansion_choice.isVisible()


def test_devices_that_are_not_there_are_grey_with_the_reason(window):
    cpu, cuda, mps = window.menus.device_group.actions()
    assert cpu.isEnabled()
    assert cpu.isChecked()
    for device, there in (
        (cuda, torch.cuda.is_available()),
        (mps, torch.backends.mps.is_available()),
    ):
        assert device.isEnabled() == there
        assert there or ": " in device.text()
    assert window.document.state.device == "cpu"


def test_device_that_is_not_there_changes_nothing(qtbot, window, monkeypatch):
    monkeypatch.setattr("circuitview.core.device.why_not", lambda _: "it is not plugged in")
    before = window.document.snapshot.results
    ask(qtbot, window.document, lambda state: replace(state, device="cuda"))
    assert "an't compute on cuda: it is not plugged in" in window.message_strip.text.text()
    assert window.document.state.device == "cpu"
    assert window.document.snapshot.results is before


def test_choice_between_the_two_sums_is_shown_and_made_beside_the_balance(qtbot, window, families):
    first = opened(qtbot, window, families("llama")).results.expansion
    choice = window.expansion_choice.segments
    assert (first.through_mlps, choice.place) == (False, 0)
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        choice.button(1).click()
    second = window.document.snapshot.results.expansion
    assert second.through_mlps
    assert second.logit == pytest.approx(first.logit, abs=1e-4)  # one float32 run, summed twice
    assert any("mlp 0" in path.label for path in second.paths)
    assert choice.place == 1
    assert "activation ratios held" in window.balance.held.text()
    assert window.menus.expansion_group.actions()[1].isChecked()
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        window.menus.expansion_group.actions()[0].trigger()
    assert not window.document.snapshot.results.expansion.through_mlps
    assert choice.place == 0


def test_mixture_of_experts_offers_no_paths_through_it(qtbot, window, families):
    opened(qtbot, window, families("mixtral"))
    through = window.menus.expansion_group.actions()[1]
    assert not through.isEnabled()
    assert "mixtures of experts" in through.toolTip()
    assert not window.expansion_choice.segments.button(1).isEnabled()


def test_soft_cap_is_said_where_the_models_logit_is(qtbot, window, families):
    snapshot = opened(qtbot, window, families("gemma2"))
    cap = snapshot.results.model.config.output_logits_soft_cap
    assert f"before the soft cap of {cap:g}" in window.balance.text()
    top = snapshot.results.predictions[0]
    bent = cap * torch.tanh(snapshot.results.expansion.recording.logits[-1].double() / cap)
    assert top.probability == pytest.approx(float(bent.softmax(-1)[top.token]), rel=1e-9)


def test_scores_are_computed_where_the_run_kept_none(qtbot, window, families):
    opened(qtbot, window, families("llama"))
    ask(qtbot, window.document, lambda state: replace(state, heatmap_mode="scores"))
    snapshot = window.document.snapshot
    assert snapshot.failure is None
    assert snapshot.results.heatmap.shape[0] == len(snapshot.results.expansion.recording.tokens)


# --- what a model can't do -----------------------------------------------------------------------


def test_float64_falls_back_and_says_so(qtbot, window, families):
    ask(qtbot, window.document, lambda state: replace(state, dtype="float64"))
    snapshot = opened(qtbot, window, families("llama"))
    assert snapshot.results.expansion.dtype == "float32"
    assert snapshot.failure is None
    assert "runs in float32, not in float64: computed in float32" in snapshot.notice
    assert window.message_strip.isVisible()
    assert window.message_strip.text.text().startswith("llama runs in float32")
    assert not action(window, "Compute in float64").isChecked()
    window.document.dismiss()
    assert not window.message_strip.isVisible()


def test_paths_through_mlps_fall_back_and_say_so(qtbot, window, families):
    opened(qtbot, window, families("llama"))
    ask(qtbot, window.document, lambda state: replace(state, through_mlps=True))
    snapshot = opened(qtbot, window, families("mixtral"))
    assert not snapshot.results.expansion.through_mlps
    assert "its MLPs are shown as sources" in snapshot.notice


@pytest.mark.parametrize("name", CASES)
def test_broken_checkpoint_keeps_the_last_model(name, qtbot, window, tmp_path):
    broken = CASES[name]
    path = broken.build(tmp_path)
    before = window.document.snapshot
    snapshot = opened(qtbot, window, path)
    assert snapshot.results is before.results
    assert window.document.state == before.state
    assert "\n" not in snapshot.failure
    assert broken.file in snapshot.failure
    assert all(word in snapshot.failure for word in broken.words)
    assert window.message_strip.isVisible()
    assert "The last good analysis stays." in window.message_strip.text.text()
    assert window.store.settings.recent == ()
    assert not (tmp_path / TRACE).exists()
    ask(qtbot, window.document, lambda state: replace(state, dest=3))
    assert window.document.snapshot.failure is None


# --- a bare state dict ---------------------------------------------------------------------------


@pytest.fixture
def dialog(qtbot, window, weights):
    window.opener.open_model(str(weights))
    qtbot.waitUntil(lambda: window.opener.dialog is not None, timeout=WAIT)
    return window.opener.dialog


def press(dialog, button):
    dialog.buttons.button(button).click()


def test_dialog_asks_what_the_file_does_not_say(dialog):
    known = dialog.findChild(object, "known-sizes").text()
    assert "layers 2, heads a layer 2, d_model 12" in known
    assert {"normalization_type", "eps", "tokenizer", "bos_token_id"} <= set(dialog.fields)
    assert "n_layers" not in dialog.fields
    norm = dialog.fields["normalization_type"].choice
    assert [norm.itemText(place) for place in range(norm.count())] == [
        "choose…", "LNPre", "RMSPre", "none",
    ]  # fmt: skip
    assert dialog.fields["eps"].line.placeholderText() == "1e-05"


def test_missing_answer_is_said_in_the_dialog_and_can_be_given(qtbot, window, dialog, weights):
    before = window.document.snapshot.results
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        press(dialog, QDialogButtonBox.StandardButton.Open)
    assert dialog.isVisible()
    assert "does not say normalization_type" in dialog.error.text()
    assert window.document.snapshot.results is before
    dialog.fields["normalization_type"].choice.setCurrentText("LNPre")
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        press(dialog, QDialogButtonBox.StandardButton.Open)
    assert window.opener.dialog is None
    snapshot = window.document.snapshot
    assert snapshot.failure is None
    assert snapshot.state.given == (
        ("positional_embedding_type", "standard"), ("normalization_type", "LNPre"),
    )  # fmt: skip
    assert snapshot.results.model.config.normalization_type == "LNPre"
    assert window.store.settings.answers[str(weights)].given == snapshot.state.given


def test_rotary_questions_wait_for_rotary_positions(qtbot, window, tmp_path):
    path = tmp_path / "free.pth"
    torch.save(state_dict(Tiny(positional_embedding_type="none")), path)
    window.opener.open_model(str(path))
    qtbot.waitUntil(lambda: window.opener.dialog is not None, timeout=WAIT)
    dialog = window.opener.dialog
    fields = [dialog.fields[name] for name in ("rotary_dim", "rotary_base")]
    assert not any(field.isEnabled() for field in fields)
    dialog.fields["positional_embedding_type"].choice.setCurrentText("rotary")
    assert all(field.isEnabled() for field in fields)
    dialog.reject()


def test_cancelled_dialog_changes_nothing(qtbot, window, dialog):
    before = window.document.snapshot
    press(dialog, QDialogButtonBox.StandardButton.Cancel)
    assert window.opener.dialog is None
    assert window.document.snapshot is before


def test_tokenizer_is_chosen_by_a_file_dialog_or_typed_as_numbers(dialog, monkeypatch):
    field = dialog.fields["tokenizer"]
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("/some/tokenizer.json", ""))
    field.browse()
    assert dialog.answers()[1] == "/some/tokenizer.json"
    field.take_numbers()
    assert dialog.answers()[1] == "numbers"


def test_recent_file_opens_with_the_same_answers(qtbot, window, weights):
    answers = Answers(given=(("normalization_type", "LNPre"),), tokenizer="numbers")
    window.store.change(lambda settings: settings.opened(str(weights), answers))
    window.opener.fill_recent()
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        window.opener.recent_menu.actions()[0].trigger()
    snapshot = window.document.snapshot
    assert window.opener.dialog is None
    assert snapshot.results.model.name == "mine"
    assert snapshot.results.model.labels[:3] == ("0", "1", "2")


def test_dropped_file_is_asked_about(qtbot, window, weights):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(weights))])
    window.opener.open_model(dropped_model(data))
    qtbot.waitUntil(lambda: window.opener.dialog is not None, timeout=WAIT)
    assert weights.name in window.opener.dialog.windowTitle()
    window.opener.dialog.reject()


def test_window_starts_with_the_answers_of_the_command_line_or_the_last_time(weights):
    given = (("normalization_type", "LNPre"),)
    asked = first_state(Settings(), Asked(str(weights), given=given, tokenizer="numbers"))
    assert (asked.given, asked.tokenizer) == (given, "numbers")
    known = Settings(model=str(weights), answers={str(weights): Answers(given=given)})
    assert first_state(known).given == given
    assert first_state(Settings(), Asked(device="cuda")).device == "cuda"


# --- size, and what is always there --------------------------------------------------------------


@pytest.fixture
def large(qtbot, window, tmp_path, monkeypatch):
    """A model that does not fit, and the question about it."""
    folder = build_bundle(tmp_path / "large", replace(MLP_KINDS[0], d_vocab=900))
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    window.opener.open_model(str(folder))
    qtbot.waitUntil(lambda: window.size_question.box is not None, timeout=WAIT)
    qtbot.waitUntil(lambda: not window.document.computing, timeout=WAIT)
    return folder


def answer(box, role):
    next(button for button in box.buttons() if box.buttonRole(button) == role).click()


def test_model_that_does_not_fit_is_asked_about_and_no_is_the_default(window, large):
    box = window.size_question.box
    assert box.text().startswith("large takes 0.")
    assert "are free" in box.text()
    assert box.buttonRole(box.defaultButton()) == QMessageBox.ButtonRole.RejectRole
    answer(box, QMessageBox.ButtonRole.RejectRole)
    assert window.size_question.box is None
    assert window.document.snapshot.results.model.name == MODEL
    assert window.document.state.model == MODEL
    assert window.document.snapshot.failure is None


def test_model_that_does_not_fit_opens_all_the_same(qtbot, window, large):
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        answer(window.size_question.box, QMessageBox.ButtonRole.AcceptRole)
    assert window.document.snapshot.results.model.name == "large"
    ask(qtbot, window.document, lambda state: replace(state, dest=0))
    assert window.size_question.box is None  # it is open: nothing more is asked


def test_model_that_does_not_fit_at_the_start_makes_way_and_is_asked_about(
    qtbot, make_window, document, tmp_path, monkeypatch
):
    folder = build_bundle(tmp_path / "large", replace(MLP_KINDS[0], d_vocab=900))
    window, asked = make_window(begun=False), []
    document.too_large.connect(lambda state, why: asked.append((state.model, why)))
    monkeypatch.setattr(
        memory.Need, "require_free", lambda need: refuse(need) if need.name == "large" else None
    )
    document._state = document.state.with_model(str(folder))
    document.start(fallback=State(model=MODEL, prompt=PROMPT))
    qtbot.waitUntil(lambda: document.snapshot.results.expansion is not None, timeout=WAIT)
    assert document.snapshot.results.model.name == MODEL
    assert asked == [(str(folder), "large does not fit")]
    assert "large does not fit" in document.snapshot.failure
    window.size_question.box.reject()


def refuse(need):
    raise memory.TooLargeError(f"{need.name} does not fit")


def test_size_is_said_while_it_opens(qtbot, window, families):
    said = []
    window.document.computing_changed.connect(said.append)
    opened(qtbot, window, families("llama"))
    assert any(line.startswith("opening llama, 0.1 MB in memory") for line in said)


def test_offline_mark_is_always_there(window):
    assert window.offline.isVisible()
    assert window.offline.text() == "offline"
    assert "Nothing is fetched from the network" in window.offline.toolTip()


def test_cancel_keeps_what_is_shown(qtbot, window):
    before = window.document.snapshot
    window.document.edit(lambda state: state.with_model("attn-only-1l"))
    assert window.document.computing
    window.cancel.click()
    assert not window.document.computing
    assert window.document.state == before.state
    assert window.document.snapshot.results is before.results
    ask(qtbot, window.document, lambda state: replace(state, dest=2))
    assert window.document.snapshot.results.model.name == MODEL


def test_cancel_shows_only_where_it_takes_long(qtbot, window):
    document = window.document
    assert not window.cancel.isVisible()
    window.cancel._on_computing("computing")
    assert window.cancel._wait.isActive()
    window.cancel._on_computing("")
    assert not window.cancel._wait.isActive()
    document.edit(lambda state: state.with_model("attn-only-1l"))
    window.cancel._appear()
    assert window.cancel.isVisible()
    qtbot.waitUntil(lambda: not document.computing, timeout=WAIT)
    assert not window.cancel.isVisible()


def test_bos_box_follows_how_the_model_was_trained(qtbot, window, families):
    assert window.prompt_bar.bos.isChecked()
    opened(qtbot, window, families("qwen2"))  # which has a BOS token and was trained without
    assert window.prompt_bar.bos.isEnabled()
    assert not window.prompt_bar.bos.isChecked()
    n = len(window.document.snapshot.results.expansion.recording.prompt)
    with qtbot.waitSignal(window.document.changed, timeout=WAIT):
        window.prompt_bar.bos.click()
    labels = window.document.snapshot.results.expansion.recording.prompt.labels
    assert (len(labels), labels[0]) == (n + 1, "BOS")
    assert window.prompt_bar.bos.isChecked()
