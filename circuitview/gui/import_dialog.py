"""What a bare weights file does not say of its model, asked before it is opened.

Sizes that follow from the arrays are shown and can't be changed; each open question has the reason
why it is asked and, where there is one, the usual answer.
"""

from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.answers import Question
from circuitview.gui.document import Document
from circuitview.session.settings import Answers
from circuitview.session.state import Snapshot

if TYPE_CHECKING:  # torch is loaded in the worker, with the description
    from circuitview.core.checkpoint.state_dict import Described

TOKENIZER, POSITIONS = "tokenizer", "positional_embedding_type"
_ROTARY = "rotary"
_CHOOSE = "choose…"
_WORDS = {
    "n_layers": "layers",
    "n_heads": "heads a layer",
    "d_model": "d_model",
    "d_head": "d_head",
    "d_vocab": "vocabulary",
    "n_ctx": "longest prompt",
    "d_mlp": "neurons of each MLP",
    "attn_only": "attention only",
    "gated_mlp": "gated MLPs",
    "act_fn": "nonlinearity",
    "normalization_type": "norm",
    "positional_embedding_type": "positions",
    "n_key_value_heads": "key and value heads",
    "rotary_dim": "numbers that turn",
    "rotary_base": "base of the angles",
    "rotary_adjacent_pairs": "neighbours turn together",
    "parallel_attn_mlp": "MLP beside attention",
    "attn_scale": "scores are divided by",
    "eps": "epsilon of the norms",
    "bos_token_id": "BOS token",
    TOKENIZER: "tokenizer",
}


class ImportDialog(QDialog):
    """Asks, then opens; what goes wrong is said here and can be mended."""

    def __init__(
        self,
        document: Document,
        path: FilePath,
        described: "Described",
        remembered: Answers | None,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._document, self._path = document, path
        self.fields: dict[str, _Field] = {}
        self.error = QLabel()
        self.error.setObjectName("dialog-error")
        self.error.setTextFormat(Qt.TextFormat.PlainText)
        self.error.setWordWrap(True)
        self.error.hide()
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel
        )
        self.setWindowTitle(f"Open {path.name}")
        self._build(described, _known_answers(remembered))
        self.buttons.accepted.connect(self.open_model)
        self.buttons.rejected.connect(self.reject)
        document.changed.connect(self._on_changed)

    def _build(self, described: "Described", known: dict[str, str]) -> None:
        lead = QLabel(f"{self._path.name} holds weights alone. By their names and shapes:")
        lead.setWordWrap(True)
        sizes = QLabel(_sizes(described.known))
        sizes.setObjectName("known-sizes")
        sizes.setWordWrap(True)
        sizes.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setVerticalSpacing(10)
        for question in described.questions:
            field = _Field(question, known.get(question.field), self._path.parent, self)
            self.fields[question.field] = field
            label = QLabel(_WORDS.get(question.field, question.field))
            label.setBuddy(field.focus)
            form.addRow(label, field)
        positions = self.fields.get(POSITIONS)
        if positions is not None and positions.choice is not None:
            positions.choice.currentTextChanged.connect(self._enable)
        self._enable()
        inside = QWidget()
        inside.setLayout(form)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(inside)
        column = QVBoxLayout(self)
        column.setSpacing(10)
        column.addWidget(lead)
        column.addWidget(sizes)
        column.addWidget(QLabel("What they do not say:"))
        column.addWidget(area, 1)
        column.addWidget(self.error)
        column.addWidget(self.buttons)
        wanted = inside.sizeHint().height() + 240
        self.resize(620, min(wanted, int(self.screen().availableSize().height() * 0.9)))

    # --- asking ----------------------------------------------------------------------------------

    def answers(self) -> tuple[tuple[tuple[str, str], ...], str | None]:
        """What is answered, as State has it: (field, answer) pairs and the tokenizer."""
        said = {name: field.answer() for name, field in self.fields.items()}
        tokenizer = said.pop(TOKENIZER, None)
        return tuple((name, text) for name, text in said.items() if text), tokenizer or None

    def open_model(self) -> None:
        """Ask for the model with the answers as they stand."""
        given, tokenizer = self.answers()
        self._wait(True)
        state = self._document.state
        asked = state.with_model(str(self._path), given=given, tokenizer=tokenizer)
        if asked == state:  # open already
            self.accept()
            return
        self._document.set(asked)

    def _wait(self, waiting: bool) -> None:
        self.error.hide()
        self.buttons.button(QDialogButtonBox.StandardButton.Open).setEnabled(not waiting)
        self._enable()

    def _enable(self) -> None:
        """Let be answered what matters, while nothing is being opened."""
        positions = self.fields.get(POSITIONS)
        rotary = positions is None or positions.answer() == _ROTARY
        for name, field in self.fields.items():
            field.setEnabled(not self.waiting and (rotary or not name.startswith(_ROTARY)))

    @property
    def waiting(self) -> bool:
        return not self.buttons.button(QDialogButtonBox.StandardButton.Open).isEnabled()

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:
        if not self.waiting or self._document.computing:
            return
        facts = snapshot.results.model
        if facts is not None and facts.key == str(self._path) and not snapshot.failure:
            self.accept()
        elif snapshot.failure and snapshot is not before:
            self._wait(False)
            self.error.setText(snapshot.failure)
            self.error.show()


class _Field(QWidget):
    """One question: where it is answered, and why it is asked."""

    def __init__(
        self, question: Question, known: str | None, folder: FilePath, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._folder = folder
        self._default = question.default or ""
        self.choice: QComboBox | None = None
        self.line: QLineEdit | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        if question.field == TOKENIZER:
            column.addLayout(self._file_row(question, known))
        elif question.choices:
            column.addWidget(self._choices(question, known))
        else:
            column.addWidget(self._line(known))
        why = QLabel(question.why)
        why.setWordWrap(True)
        why.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        column.addWidget(why)

    @property
    def focus(self) -> QWidget:
        """What takes the keyboard."""
        return self.choice or self.line or self

    def _choices(self, question: Question, known: str | None) -> QComboBox:
        self.choice = QComboBox()
        if question.default is None:
            self.choice.addItem(_CHOOSE)
        self.choice.addItems(question.choices)
        self.choice.setCurrentText(known or question.default or _CHOOSE)
        return self.choice

    def _line(self, known: str | None) -> QLineEdit:
        self.line = QLineEdit(known or "")
        self.line.setPlaceholderText(self._default)
        return self.line

    def _file_row(self, question: Question, known: str | None) -> QHBoxLayout:
        row = QHBoxLayout()
        line = self._line(known)
        if not self._default:
            line.setPlaceholderText("a tokenizer.json")
        browse = QPushButton("Choose…")
        browse.clicked.connect(self.browse)
        numbers = QPushButton(question.choices[0] if question.choices else "numbers")
        numbers.setToolTip("Type tokens as their numbers: 0 1 2 …")
        numbers.clicked.connect(self.take_numbers)
        row.addWidget(line, 1)
        row.addWidget(browse)
        row.addWidget(numbers)
        return row

    def browse(self) -> None:
        file, _ = QFileDialog.getOpenFileName(
            self, "The model's tokenizer.json", str(self._folder), "Tokenizers (*.json)"
        )
        if file and self.line is not None:
            self.line.setText(file)

    def take_numbers(self) -> None:
        if self.line is not None:
            self.line.setText("numbers")

    def answer(self) -> str:
        """The answer, or "" where the usual one is taken."""
        if self.choice is not None:
            return "" if self.choice.currentText() == _CHOOSE else self.choice.currentText()
        return "" if self.line is None else self.line.text().strip()


def _known_answers(remembered: Answers | None) -> dict[str, str]:
    if remembered is None:
        return {}
    known = dict(remembered.given)
    if remembered.tokenizer is not None:
        known[TOKENIZER] = remembered.tokenizer
    return known


def _sizes(known: dict[str, object]) -> str:
    yes_no = {True: "yes", False: "no"}
    parts = []
    for name, value in known.items():
        if value is None:
            continue
        shown = yes_no[value] if isinstance(value, bool) else value
        parts.append(f"{_WORDS.get(name, name)} {shown}")
    return ", ".join(parts)
