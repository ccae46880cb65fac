"""What a freezing experiment is asked about: its fields, and the question that they make."""

from dataclasses import replace

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from circuitview.core.names import Head
from circuitview.gui.field_grid import FieldGrid
from circuitview.gui.lab_fields import spin
from circuitview.gui.token_field import TokenField
from circuitview.session.freezing import Experiment, FreezingQuestion
from circuitview.session.state import Snapshot, State
from circuitview.session.tokens import token_contributions

_FIELDS: dict[Experiment, tuple[str, ...]] = {
    "linearity": ("summand", "seed"),
    "swap": ("position", "token"),
    "row": ("prompt_b", "head"),
}


def subject_of(snapshot: Snapshot, experiment: Experiment) -> State:
    """The state that an experiment is about: of the prompt that is shown, its target and dest as
    they came out. A row is always that of A beside another's, so that the two keep their names."""
    state, expansion = snapshot.alone, snapshot.results.expansion
    if expansion is not None:
        target = expansion.target
        state = replace(state, target=target.label, versus=target.versus_label, dest=target.dest)
    return replace(state, prompt=snapshot.state.prompt) if experiment == "row" else state


class FreezingForm(QScrollArea):
    """The fields of one experiment at a time.

    Signals:
        entered: the user has ended an entry with Enter: run it.
        token_kept: the field of the new token was left with what may be no token.
        token_edited: another is being typed.
        prompt_edited: another prompt B is being typed.
    """

    entered = Signal()
    token_kept = Signal(str)
    token_edited = Signal()
    prompt_edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._snapshot = Snapshot()
        self._experiment: Experiment = "linearity"
        self._tokens: tuple[str, ...] = ()
        self._source: int | None = None
        self._prompt_written = False
        self._other: str | None = None  # the window's prompt B
        self.summand = QLineEdit()
        self.summand.setPlaceholderText("its own, in another order")
        self.summand.setToolTip("b: a prompt of as many tokens; empty takes this prompt's own")
        self.seed = spin(0, 2**31 - 1, 0, "of the other order: the same seed draws the same")
        self.position = QComboBox()
        self.position.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.position.setToolTip("which token is replaced; a click on a token chooses it too")
        self.token = TokenField("new token", "a token", self, keeps=True)
        self.token.taken.connect(self._take_token)
        self.token.kept.connect(self.token_kept)
        self.token.textChanged.connect(self.token_edited)
        self.prompt_b = QLineEdit()
        self.prompt_b.setPlaceholderText("prompt B")
        self.prompt_b.setToolTip("prompt B: it needs a token at dest")
        self.prompt_b.textEdited.connect(self._write_prompt)
        self.head = QLabel()
        self.head.setToolTip(
            "the selected head, else the one that is shown; dest is the position that predicts"
        )
        self.head.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        for line in (self.summand, self.prompt_b):
            line.returnPressed.connect(self.entered)
        self._names = {
            "summand": ("other tokens", self.summand),
            "seed": ("seed", self.seed),
            "position": ("replace", self.position),
            "token": ("by", self.token),
            "prompt_b": ("prompt B", self.prompt_b),
            "head": ("row", self.head),
        }
        self._lay_out()

    def _lay_out(self) -> None:
        self.grid = FieldGrid()
        for title, field in self._names.values():
            self.grid.add(title, field)
        self.setWidget(self.grid)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)
        self.show_experiment(self._experiment)

    def show_experiment(self, experiment: Experiment) -> None:
        """Show the fields of this one."""
        self._experiment = experiment
        for name, (_, field) in self._names.items():
            self.grid.show_field(field, name in _FIELDS[experiment])
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        # What is said of the fields stands right under them.
        return QSize(super().sizeHint().width(), self.grid.sizeHint().height())

    def first_field(self) -> QWidget:
        """Where to type first."""
        return self._names[_FIELDS[self._experiment][0]][1]

    # --- following the document ------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Ask about the prompt, the target and the selection of `snapshot`."""
        self._snapshot = snapshot
        expansion, model = snapshot.results.expansion, snapshot.results.model
        if expansion is None or model is None:
            return
        self.token.set_labels(model.labels)
        if expansion.between is not None:  # of the difference, A: as what is run
            expansion, _ = expansion.between
        dest, prompt = expansion.target.dest, expansion.recording.prompt
        shown = tuple(f"{src} {prompt.labels[src]}" for src in range(dest + 1))
        source = snapshot.state.selection.source
        if shown != self._tokens:
            self._tokens = shown
            self.position.clear()
            self.position.addItems(shown)
            self.position.setCurrentIndex(int(abs(token_contributions(expansion)).argmax()))
            self._source = None
        if source != self._source:
            self._source = source
            if source is not None and source <= dest:
                self.position.setCurrentIndex(source)
        self._follow_prompt(snapshot.state)
        self.head.setText(f"head {self.chosen_head} at dest {dest}")

    def _follow_prompt(self, state: State) -> None:
        """Prompt B is the window's until it is edited here, and again once the window is given
        another; without one it is the first prompt, for a word to be changed."""
        if state.other != self._other:
            self._other = state.other
            if state.other is not None and state.other != state.prompt:
                self._prompt_written = False
        if not self._prompt_written:
            text = state.prompt if state.other is None else state.other
            if self.prompt_b.text() != text:
                self.prompt_b.setText(text)
                self.prompt_b.setCursorPosition(0)  # where it is longer than the field, its start

    @property
    def chosen_head(self) -> Head | None:
        """The selected head, else the last of the chain that the panels show."""
        chain = self._snapshot.results.chain
        return self._snapshot.state.selection.head or (chain[-1] if chain else None)

    def question(self) -> FreezingQuestion:
        """What the fields ask."""
        experiment = self._experiment
        other = {"linearity": self.summand, "row": self.prompt_b}.get(experiment)
        return FreezingQuestion(
            about=subject_of(self._snapshot, experiment),
            experiment=experiment,
            other="" if other is None else other.text(),
            position=max(0, self.position.currentIndex()) if experiment == "swap" else 0,
            new_token=self.token.token if experiment == "swap" else "",
            head=self.chosen_head if experiment == "row" else None,
            seed=self.seed.value() if experiment == "linearity" else 0,
        )

    # --- what the user does ----------------------------------------------------------------------

    def set_token(self, text: str) -> None:
        """Replace by this token from now on."""
        self.token.show_token(text)

    def _take_token(self, text: str) -> None:
        self.set_token(text)
        if text:
            self.entered.emit()

    def _write_prompt(self, text: str) -> None:
        self._prompt_written = bool(text)
        self.prompt_edited.emit()
