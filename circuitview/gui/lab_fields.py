"""Fields of the lab's form: a text file, and the settings of a kind of ablation.

A kind's fields come from its dataclass: unit, help and range of each are in the field's metadata.
"""

from dataclasses import Field, fields
from pathlib import Path as FilePath
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QWidget,
)

from circuitview.core.names import CircuitviewError
from circuitview.gui.field_grid import FieldGrid
from circuitview.resources import resource
from circuitview.session.lab import in_effect

_FILE, _PROMPT = "text file", "prompt"
_LENGTH = "length"  # what every kind that reads windows calls their tokens
_MOST = 1_000_000
_ENDINGS = "Texts (*.txt *.md);;All files (*)"


def bundled_texts() -> tuple[FilePath, ...]:
    """The texts that come with the program."""
    try:
        return tuple(sorted(resource("texts").glob("*.txt")))
    except CircuitviewError:
        return ()


class TextField(QWidget):
    """A text file: bundled ones and a file dialog behind a button.

    Signals: changed.
    """

    changed = Signal()

    def __init__(self, placeholder: str, hint: str) -> None:
        super().__init__()
        self.line = QLineEdit()
        self.line.setPlaceholderText(placeholder)
        self.line.setToolTip(hint)
        self.line.textChanged.connect(self.changed)
        self.menu = QMenu(self)
        for path in bundled_texts():
            action = QAction(path.stem.replace("_", " "), self.menu)
            action.setData(str(path))
            self.menu.addAction(action)
        self.menu.addSeparator()
        self.browsing = QAction("Choose a file…", self.menu)
        self.menu.addAction(self.browsing)
        self.menu.triggered.connect(self._choose)
        button = QToolButton()
        button.setText("…")
        button.setToolTip("A bundled text, or a file")
        button.setMenu(self.menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setObjectName("file-button")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.line, 1)
        row.addWidget(button)

    @property
    def path(self) -> str:
        return self.line.text().strip()

    def set_path(self, path: str) -> None:
        self.line.setText(path)

    def _choose(self, action: QAction) -> None:
        if action is not self.browsing:
            self.set_path(str(action.data()))
            return
        file, _ = QFileDialog.getOpenFileName(self, "A text", self.path, _ENDINGS)
        if file:
            self.set_path(file)


class KindFields:
    """The settings of one kind, as fields of a form."""

    def __init__(self, kind: Any, grid: FieldGrid, before: QWidget, changed: Any) -> None:
        self.widgets: dict[str, QWidget] = {}
        self._grid, self._defaults = grid, dict[str, Any]()
        self._said = dict[str, Any]()  # usual values that the model has made smaller
        for field in fields(kind):
            widget = _field(field, changed)
            self.widgets[field.name] = widget
            self._defaults[field.name] = field.default
            grid.add(_label(field), widget, before)

    def show(self, shown: bool) -> None:
        for widget in self.widgets.values():
            self._grid.show_field(widget, shown)

    def limit(self, n_ctx: int) -> None:
        """Let no window be longer than the model's context; the usual length is less there."""
        box, usual = self.widgets.get(_LENGTH), self._defaults.get(_LENGTH)
        if isinstance(box, QSpinBox) and isinstance(usual, int):
            self._said[_LENGTH] = limit_length(box, n_ctx, usual)

    def parameters(self) -> tuple[tuple[str, str | int], ...]:
        """What differs from the defaults and has an effect, by name and value."""
        said = ((name, _value(widget)) for name, widget in self.widgets.items())
        usual = self._defaults | self._said
        return in_effect(tuple((name, value) for name, value in said if value != usual[name]))


def limit_length(box: QSpinBox, n_ctx: int, usual: int) -> int:
    """How many tokens a window has where no one says more of it, as `box` then has it; it can't be
    set to more than `n_ctx`."""
    was, usual = min(box.maximum(), usual), min(n_ctx, usual)
    chosen = box.value() != was
    box.setMaximum(n_ctx)
    if not chosen:
        box.setValue(usual)
    return usual


def spin(low: int, high: int, value: int, hint: str, suffix: str = "") -> QSpinBox:
    """A whole number."""
    box = QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    box.setToolTip(hint)
    box.setSuffix(f" {suffix}" if suffix else "")
    box.setGroupSeparatorShown(True)
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setMinimumWidth(70)
    return box


def _field(field: "Field[Any]", changed: Any) -> QWidget:
    unit, hint = field.metadata["unit"], field.metadata["help"]
    if unit == _FILE:
        file = TextField("optional", hint)
        file.changed.connect(changed)
        return file
    if isinstance(field.default, int):
        low, high = field.metadata["low"], field.metadata["high"]
        least, most = (0 if low is None else int(low)), (_MOST if high is None else int(high))
        number = spin(least, most, field.default, hint, unit)
        number.valueChanged.connect(changed)
        return number
    line = QLineEdit()
    line.setPlaceholderText("optional")
    line.setToolTip(hint)
    line.textChanged.connect(changed)
    return line


def _label(field: "Field[Any]") -> str:
    unit = field.metadata["unit"]
    if unit in (_FILE, _PROMPT):  # not to be taken for what is run
        return "from text" if unit == _FILE else "from prompt"
    return field.name


def _value(widget: QWidget) -> str | int:
    if isinstance(widget, TextField):
        return widget.path
    if isinstance(widget, QSpinBox):
        return widget.value()
    assert isinstance(widget, QLineEdit)
    return widget.text() if widget.text().strip() else ""  # a leading space belongs to a prompt
