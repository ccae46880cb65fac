"""A field for one token: spaces visible, completed from the vocabulary.

What is typed is looked up while one types; Enter or a choice from the list takes it. Half a word
that is no token is put back when the field is left, so that nothing is asked by accident; where
nothing is asked before a button is pressed it is kept, and told.
"""

from PySide6.QtCore import QEvent, QStringListModel, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QCompleter, QLineEdit, QListView, QWidget

from circuitview.gui.field_marks import mark_wrong
from circuitview.session.vocabulary import completions, typed_label, untyped_label

_ROWS = 14


class TokenField(QLineEdit):
    """Signals, each with a token's label, or what was typed where that is none:
    taken: it is to be asked for; "" for none.
    kept: the field was left with what is no label.
    """

    taken = Signal(str)
    kept = Signal(str)

    def __init__(
        self, name: str, empty: str, parent: QWidget | None = None, *, keeps: bool = False
    ) -> None:
        """Args:
        name: for assistive programs.
        empty: what an empty field stands for.
        keeps: whether what is no token stays when the field is left.
        """
        super().__init__(parent)
        self._keeps = keeps
        self.setAccessibleName(name)
        self.setPlaceholderText(empty)
        self.setClearButtonEnabled(True)
        self.setMaxLength(200)
        self._labels: tuple[str, ...] = ()
        self._known: frozenset[str] = frozenset()
        self._shown = ""
        self._found = QStringListModel(self)
        completer = QCompleter(self._found, self)
        # The matches are found and ranked here; the completer only shows them.
        completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        completer.setMaxVisibleItems(_ROWS)
        self.setCompleter(completer)
        self._popup = QListView(self)
        completer.setPopup(self._popup)
        completer.activated.connect(self._on_picked)
        self.textEdited.connect(self._on_edited)
        self.textChanged.connect(self._on_changed)
        self.returnPressed.connect(self._take)

    def set_labels(self, labels: tuple[str, ...]) -> None:
        """The vocabulary to complete from."""
        if labels is not self._labels:
            self._labels, self._known = labels, frozenset(labels)

    def show_token(self, text: str | None) -> None:
        """Show what is asked; the user's unfinished typing is not overwritten by the same."""
        shown = typed_label(text or "")
        if shown != self._shown or not self.hasFocus():
            self._shown = shown
            if self.text() != shown:
                self.setText(shown)
        mark_wrong(self, False)

    @property
    def token(self) -> str:
        """The label in the field; where it is none, what was typed: its spaces are spaces."""
        text = self.text()
        return text if text in self._known else untyped_label(text)

    def matches(self) -> tuple[str, ...]:
        """What the list offers."""
        return tuple(self._found.stringList())

    def _on_edited(self, text: str) -> None:
        seen = typed_label(text)
        if seen != text:
            place = self.cursorPosition()
            self.setText(seen)
            self.setCursorPosition(place)
        mark_wrong(self, False)
        self._offer(seen)

    def _offer(self, typed: str) -> None:
        self._found.setStringList(list(completions(self._labels, typed)) if typed else [])
        if typed:
            self.completer().complete()

    def _on_changed(self, text: str) -> None:
        # The clear button empties the field without an Enter.
        if not text and self._shown and self.hasFocus():
            self._take()

    def _on_picked(self, text: str) -> None:
        self.setText(text)
        self._take()

    def _take(self) -> None:
        text = self.text()
        self._popup.hide()
        if text != self._shown:
            self._shown = text
            self.taken.emit(self.token)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() == Qt.FocusReason.PopupFocusReason or self.text() == self._shown:
            return
        if self.text() in self._known or not self.text():
            self._take()
        elif self._keeps:
            self.kept.emit(self.token)
        else:
            self.setText(self._shown)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down and self.text() and not self._popup.isVisible():
            self._offer(self.text())
            return
        if event.key() == Qt.Key.Key_Escape and self.text() != self._shown:
            self.setText(self._shown)
            return
        super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # Escape mends the field before a dialog or the window may take it.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self.text() != self._shown
        ):
            event.accept()
            return True
        return super().event(event)
