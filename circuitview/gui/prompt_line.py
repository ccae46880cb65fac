"""A line for a prompt: read when the typing halts, or at once on Enter; newlines can be seen."""

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLineEdit, QSizePolicy

from circuitview.gui.field_marks import mark_wrong

_TYPING_PAUSE = 180  # ms; a prompt is analysed when the typing halts
_NEWLINE = "↵"


class PromptLine(QLineEdit):
    """Signals: taken(the prompt as it was typed)."""

    taken = Signal(str)

    def __init__(self, name: str) -> None:
        """Args: name: for assistive programs."""
        super().__init__()
        self.setPlaceholderText("Type a prompt")
        self.setAccessibleName(name)
        policy = QSizePolicy.Policy
        self.setSizePolicy(policy.Expanding, policy.Fixed)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_TYPING_PAUSE)
        self._pause.timeout.connect(self._take)
        self.textEdited.connect(self._on_typed)
        self.returnPressed.connect(self._take)

    @property
    def prompt(self) -> str:
        """What stands there."""
        return self.text().replace(_NEWLINE, "\n")

    def show_prompt(self, prompt: str) -> None:
        """Show what is asked, unless the user is typing."""
        if self._pause.isActive():
            return
        shown = prompt.replace("\n", _NEWLINE)
        if self.text() != shown:
            self.setText(shown)
            self.setCursorPosition(0)
        mark_wrong(self, False)

    def forget(self) -> None:
        """Drop what was typed and not taken yet."""
        self._pause.stop()

    def _on_typed(self, text: str) -> None:
        if "\n" in text:  # pasted; a line can't show it otherwise
            place = self.cursorPosition()
            self.setText(text.replace("\r\n", "\n").replace("\n", _NEWLINE))
            self.setCursorPosition(place)
        mark_wrong(self, False)
        self._pause.start()

    def _take(self) -> None:
        self._pause.stop()
        self.taken.emit(self.prompt)
