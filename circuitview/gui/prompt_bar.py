"""What is asked, as fields: model, prompt, a second prompt B, BOS, target and versus.

The fields show the state that was asked last. What can't be computed keeps its wording, framed,
until it is mended; the window's strip says why.
"""

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QLabel,
    QMenu,
    QToolButton,
    QWidget,
)

from circuitview.figures.theme import theme
from circuitview.gui.document import Document
from circuitview.gui.field_marks import mark_wrong
from circuitview.gui.prompt_line import PromptLine
from circuitview.gui.segments import Segments
from circuitview.gui.token_field import TokenField
from circuitview.session.state import Shown, Snapshot, State

_SHOWN: tuple[Shown, ...] = ("a", "b", "difference")
_NAMES = ("A", "B", "B − A")
_HINTS = (
    "Show prompt A",
    "Show prompt B",
    "Show what differs: every number of B minus the same of A",
)
# The same from the menu.
COMPARE_KEYS = "Ctrl+Shift+B"
SHOW_KEYS = ("Alt+1", "Alt+2", "Alt+3")


class PromptBar(QWidget):
    """One line over the whole window; a second one where there is a second prompt."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.model_button = QToolButton()
        self.prompt = PromptLine("Prompt")
        self.other = PromptLine("Second prompt")
        self.add_button, self.close_button = QToolButton(), QToolButton()
        self.shown = Segments(
            _NAMES, [_hint(*pair) for pair in zip(_HINTS, SHOW_KEYS, strict=True)]
        )
        self.bos = QCheckBox("BOS")
        self.target = TokenField("Target token", "top prediction")
        self.versus = TokenField("Versus token", "none")
        self._build()
        self._connect()
        self._show_state(document.state)

    def _build(self) -> None:
        self.model_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.model_button.setObjectName("model-button")
        self.model_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.model_button.setToolTip("The open model; click for others")
        self.model_button.setAccessibleName("Model")
        self.bos.setToolTip("Put the model's BOS token in front of the prompt")
        self.target.setToolTip("The token whose logit is explained; empty: the top prediction")
        self.versus.setToolTip("A token to subtract: explain the difference of two logits")
        for field in (self.target, self.versus):
            character = self.fontMetrics().averageCharWidth()
            field.setMinimumWidth(16 * character)
            field.setMaximumWidth(24 * character)
        self.add_button.setText("+ B")
        self.add_button.setToolTip(_hint("Compare with a second prompt", COMPARE_KEYS))
        self.add_button.setAccessibleName("Compare with a second prompt")
        self.close_button.setText("×")
        self.close_button.setAutoRaise(True)
        self.close_button.setToolTip("Remove prompt B")
        self.close_button.setAccessibleName("Remove the second prompt")
        self.shown.setAccessibleName("Which prompt is shown")
        self._lay_out()

    def _lay_out(self) -> None:
        self._name, self._other_name = (
            _label("&Prompt", self.prompt),
            _label("Prompt B", self.other),
        )
        first = (
            self.model_button,
            self._name,
            self.prompt,
            self.add_button,
            self.bos,
            _label("&Target", self.target),
            self.target,
            _label("ver&sus", self.versus),
            self.versus,
        )
        grid = QGridLayout(self)
        grid.setContentsMargins(8, 6, 8, 6)
        grid.setSpacing(8)
        for column, widget in enumerate(first):
            grid.addWidget(widget, 0, column)
        # The prompt has what the token fields, up to their full width, leave.
        for widget, stretch in ((self.prompt, 3), (self.target, 1), (self.versus, 1)):
            grid.setColumnStretch(first.index(widget), stretch)
        grid.addWidget(self._other_name, 1, 1)
        grid.addWidget(self.other, 1, 2)
        grid.addWidget(self.close_button, 1, 3)
        left = Qt.AlignmentFlag.AlignLeft
        grid.addWidget(self.shown, 1, 4, 1, len(first) - 4, left)
        self._second_line = (self._other_name, self.other, self.close_button, self.shown)
        for widget in self._second_line:
            widget.hide()

    def _connect(self) -> None:
        self.prompt.taken.connect(self._ask_prompt)
        self.other.taken.connect(self._ask_other)
        self.add_button.clicked.connect(self.compare)
        self.close_button.clicked.connect(self.stop_comparing)
        self.shown.chosen.connect(self._on_shown)
        self.bos.clicked.connect(self._on_bos)
        self.target.taken.connect(self._on_target)
        self.versus.taken.connect(self._on_versus)
        self._document.asked.connect(self._show_state)
        self._document.changed.connect(self._on_changed)

    def set_model_menu(self, menu: QMenu) -> None:
        """The menu behind the model's name."""
        self.model_button.setMenu(menu)

    # --- asking ----------------------------------------------------------------------------------

    def _ask_prompt(self, text: str) -> None:
        if text != self._document.state.prompt:
            self._document.edit(lambda state: state.with_prompt(text))

    def _ask_other(self, text: str) -> None:
        if self._document.state.other not in (None, text):
            self._document.edit(lambda state: state.with_other(text))

    def compare(self) -> None:
        """Open the second line, on the same text at first, and go there."""
        if self._document.state.other is None:
            self._document.edit(lambda state: replace(state, other=state.prompt, shown="b"))
        self.other.setFocus()
        self.other.selectAll()  # typing replaces it, an arrow key goes to where a word is changed

    def stop_comparing(self) -> None:
        """Take the second prompt away."""
        self.other.forget()
        if self.other.hasFocus():
            self.prompt.setFocus()
        lengths = self._document.snapshot.results.lengths

        def alone(state: State) -> State:
            # B may have been the longer one.
            beyond = state.dest is not None and lengths and state.dest >= lengths[0]
            return replace(state.with_other(None), dest=None if beyond else state.dest)

        self._document.edit(alone)

    def show_prompt(self, shown: Shown) -> None:
        """Show A, B or B − A, where there is a B."""
        if self._document.state.other is not None:
            self._document.edit(lambda state: replace(state, shown=shown))

    def show_a(self) -> None:
        self.show_prompt("a")

    def show_b(self) -> None:
        self.show_prompt("b")

    def show_difference(self) -> None:
        self.show_prompt("difference")

    def _on_shown(self, place: int) -> None:
        self.show_prompt(_SHOWN[place])

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
        self.prompt.show_prompt(state.prompt)
        self._show_other(state)
        self.target.show_token(state.target)
        self.versus.show_token(state.versus)

    def _show_other(self, state: State) -> None:
        two = state.other is not None
        if two != self.add_button.isHidden():
            self.add_button.setHidden(two)
            self._name.setText("&Prompt A" if two else "&Prompt")
            for widget in self._second_line:
                widget.setHidden(not two)
        if state.other is not None:
            self.other.show_prompt(state.other)
            self.shown.show_choice(_SHOWN.index(state.shown), theme(state.theme))

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        results, state = snapshot.results, snapshot.state
        if results.model is not None:
            self._show_model(snapshot)
            self.target.set_labels(results.model.labels)
            self.versus.set_labels(results.model.labels)
        if results.expansion is not None and (results.predictions or state.target is None):
            # The top prediction of A is the target of B and of B − A too.
            unnamed, top = state.target is None, results.expansion.target.label
            if not unnamed:
                top = results.predictions[0].label
            self.target.setPlaceholderText(f"{top}  (top prediction)")
        if snapshot.failure and snapshot.failure != before.failure:
            # Keep the wording that failed, and say which field it is in.
            mark_wrong(self.prompt, self.prompt.prompt != state.prompt)
            mark_wrong(self.other, state.other is not None and self.other.prompt != state.other)
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


def _hint(text: str, keys: str) -> str:
    return f"{text} ({QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)})"


def _label(text: str, buddy: QWidget) -> QLabel:
    label = QLabel(text)
    label.setBuddy(buddy)
    return label
