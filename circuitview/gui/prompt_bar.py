"""What is asked, as fields: model, prompt, BOS, target and versus.

The fields show the state that was asked last. What can't be computed keeps its wording, framed,
until it is mended; the window's strip says why.
"""

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from circuitview.gui.document import Document
from circuitview.gui.field_marks import mark_wrong
from circuitview.gui.token_field import TokenField
from circuitview.session.state import Snapshot, State

_TYPING_PAUSE = 180  # ms; a prompt is analysed when the typing halts
_NEWLINE = "↵"


class PromptBar(QWidget):
    """One line over the whole window."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.model_button = QToolButton()
        self.prompt = QLineEdit()
        self.bos = QCheckBox("BOS")
        self.target = TokenField("Target token", "top prediction")
        self.versus = TokenField("Versus token", "none")
        self._pause = QTimer(self)
        self._build()
        self._connect()
        self._show_state(document.state)

    def _build(self) -> None:
        self.model_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.model_button.setObjectName("model-button")
        self.model_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.model_button.setToolTip("The open model; click for others")
        self.model_button.setAccessibleName("Model")
        self.prompt.setPlaceholderText("Type a prompt")
        self.prompt.setAccessibleName("Prompt")
        self.bos.setToolTip("Put the model's BOS token in front of the prompt")
        self.target.setToolTip("The token whose logit is explained; empty: the top prediction")
        self.versus.setToolTip("A token to subtract: explain the difference of two logits")
        for field in (self.target, self.versus):
            field.setFixedWidth(self.fontMetrics().averageCharWidth() * 24)
        policy = QSizePolicy.Policy
        self.prompt.setSizePolicy(policy.Expanding, policy.Fixed)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_TYPING_PAUSE)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 6, 8, 6)
        row.setSpacing(8)
        row.addWidget(self.model_button)
        row.addWidget(_label("&Prompt", self.prompt))
        row.addWidget(self.prompt, 1)
        row.addWidget(self.bos)
        row.addWidget(_label("&Target", self.target))
        row.addWidget(self.target)
        row.addWidget(_label("ver&sus", self.versus))
        row.addWidget(self.versus)

    def _connect(self) -> None:
        self.prompt.textEdited.connect(self._on_typed)
        self.prompt.returnPressed.connect(self._ask_prompt)
        self._pause.timeout.connect(self._ask_prompt)
        self.bos.clicked.connect(self._on_bos)
        self.target.taken.connect(self._on_target)
        self.versus.taken.connect(self._on_versus)
        self._document.asked.connect(self._show_state)
        self._document.changed.connect(self._on_changed)

    def set_model_menu(self, menu: QMenu) -> None:
        """The menu behind the model's name."""
        self.model_button.setMenu(menu)

    # --- asking ----------------------------------------------------------------------------------

    def _on_typed(self, text: str) -> None:
        if "\n" in text:  # pasted; a line can't show it otherwise
            place = self.prompt.cursorPosition()
            self.prompt.setText(text.replace("\r\n", "\n").replace("\n", _NEWLINE))
            self.prompt.setCursorPosition(place)
        mark_wrong(self.prompt, False)
        self._pause.start()

    def _ask_prompt(self) -> None:
        self._pause.stop()
        text = self.prompt.text().replace(_NEWLINE, "\n")
        if text != self._document.state.prompt:
            self._document.edit(lambda state: state.with_prompt(text))

    def _on_bos(self, checked: bool) -> None:
        self._document.edit(lambda state: with_bos(state, checked))

    def toggle_bos(self) -> None:
        """The same from the menu."""
        if self.bos.isEnabled():
            self.bos.click()

    def _on_target(self, text: str) -> None:
        self._document.edit(lambda state: replace(state, target=text or None))

    def _on_versus(self, text: str) -> None:
        self._document.edit(lambda state: replace(state, versus=text or None))

    # --- showing ---------------------------------------------------------------------------------

    def _show_state(self, state: State) -> None:
        if not self._pause.isActive():  # else the user is typing
            self._show_prompt(state.prompt)
        self.target.show_token(state.target)
        self.versus.show_token(state.versus)

    def _show_prompt(self, prompt: str) -> None:
        shown = prompt.replace("\n", _NEWLINE)
        if self.prompt.text() != shown:
            self.prompt.setText(shown)
            self.prompt.setCursorPosition(0)
        mark_wrong(self.prompt, False)

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        results, state = snapshot.results, snapshot.state
        if results.model is not None:
            self._show_model(snapshot)
            self.target.set_labels(results.model.labels)
            self.versus.set_labels(results.model.labels)
        if results.predictions:
            top = results.predictions[0].label
            self.target.setPlaceholderText(f"{top}  (top prediction)")
        if snapshot.failure and snapshot.failure != before.failure:
            # Keep the wording that failed, and say which field it is in.
            mark_wrong(self.prompt, self.prompt.text().replace(_NEWLINE, "\n") != state.prompt)
            for field, asked in ((self.target, state.target), (self.versus, state.versus)):
                mark_wrong(field, bool(field.text()) and field.text() != (asked or ""))
        elif not snapshot.failure and snapshot is not before:
            self._show_state(self._document.state)

    def _show_model(self, snapshot: Snapshot) -> None:
        facts = snapshot.results.model
        assert facts is not None
        self.model_button.setText(f"{facts.name} ▾")
        self.model_button.setToolTip(f"The open model, stored in {facts.stored}; click for others")
        has_bos = facts.config.bos_token_id is not None
        self.bos.setEnabled(has_bos)
        self.bos.setToolTip(
            "Put the model's BOS token in front of the prompt"
            if has_bos
            else f"{facts.name} has no BOS token"
        )
        asked = self._document.state.prepend_bos
        self.bos.setChecked(has_bos and (facts.bos_by_default if asked is None else asked))


def with_bos(state: State, wanted: bool) -> State:
    """`state` with or without BOS; positions shift by one, so the same token stays dest."""
    dest = state.dest
    if dest is not None:
        dest = max(dest + (1 if wanted else -1), 0)
    selection = replace(state.selection, source=None)
    return replace(state, prepend_bos=wanted, dest=dest, selection=selection)


def _label(text: str, buddy: QWidget) -> QLabel:
    label = QLabel(text)
    label.setBuddy(buddy)
    return label
