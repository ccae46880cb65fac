"""The form of the ablation lab: what is taken away, what is put there, on what, measured how.

It makes a Question of the fields and of what the document shows, and says why where that can't be
run. The kinds bring torch with them, so their fields are made when a model is there.
"""

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from circuitview.core.ablation.metric import METRICS
from circuitview.figures.theme import theme
from circuitview.gui.field_grid import FieldGrid
from circuitview.gui.lab_fields import (
    KindFields,
    TextField,
    bundled_texts,
    limit_length,
    spin,
)
from circuitview.gui.lab_match import question_of
from circuitview.gui.segments import Segments
from circuitview.session.lab import WHATS, Question, What
from circuitview.session.lab_inputs import LENGTH
from circuitview.session.lab_limits import count_sites, reason_against
from circuitview.session.state import Selection, Snapshot

_FREE, _FROZEN = range(2)
_LATER = ("free", "frozen")
_LATER_HINTS = (
    "everything after what is taken away is computed anew: later heads and norms react",
    "patterns, norm scales and MLP outputs stay as recorded: zeroing takes the contribution away",
)
_THIS, _SEVERAL, _TEXT = range(3)
_ON = ("this prompt", "several prompts", "a text")
_WHICH = {
    "heads": "all heads",
    "pairs": "all heads",
    "mlps": "all layers",
    "paths": "the largest",
    "chosen": "1.4, token > 0.3 > 1.4, mlp 0, order 1",
}
_WHICH_HINT = (
    "heads (1.4), paths (token > 0.3 > 1.4), mlp 0, order 1, or direct, with commas between; "
    "what is to be taken away together is joined by +"
)
_USUAL = Question(model="")  # what is asked where nothing is said
_PROMPT_LINES = 3
_BUTTON_RIM = 18  # pixels on each side of its word


class LabForm(QScrollArea):
    """The fields, and the button that runs what they ask.

    Signals:
        asked: (a Question, the short name of its model).
        judged: (why what the fields ask can't be run, or "", whether something in them is wrong).
    """

    asked = Signal(object, str)
    judged = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self._snapshot = Snapshot()
        self._kinds: dict[str, KindFields] = {}
        self._metric_chosen = self._which_written = False
        self._usual_length = LENGTH
        self.run_button = QPushButton("Run")
        self.run_button.setEnabled(False)
        # In every arrangement there must be room for it, beside the pages and the menu.
        words = self.run_button.fontMetrics().horizontalAdvance(self.run_button.text())
        self.run_button.setFixedWidth(words + 2 * _BUTTON_RIM)
        self.run_button.clicked.connect(self.ask)
        self.what, self.kind = _combo(), _combo()
        for name, title in WHATS.items():
            self.what.addItem(title, name)
        self.which = QLineEdit()
        self.which.setToolTip(_WHICH_HINT)
        self.most = spin(1, 10_000, _USUAL.most, "how many of the largest paths", "paths")
        self.later = Segments(_LATER, _LATER_HINTS)
        self.on, self.measure = _combo(), _combo()
        self.on.addItems(_ON)
        for metric in METRICS.values():
            self.measure.addItem(metric.title, metric.name)
        self._cases()
        self.seed = spin(0, 2**31 - 1, 0, "of what is drawn: the same seed draws the same")
        self._lay_out()
        self._connect()
        self._show_rows()

    def _cases(self) -> None:
        self.prompts = QPlainTextEdit()
        self.prompts.setPlaceholderText("one prompt a line")
        self.prompts.setTabChangesFocus(True)
        high = self.fontMetrics().lineSpacing() * _PROMPT_LINES + 12
        self.prompts.setFixedHeight(high)
        self.target, self.versus = QLineEdit(), QLineEdit()
        self.target.setPlaceholderText("each one's top prediction")
        self.versus.setPlaceholderText("no difference")
        self.versus.editingFinished.connect(self._suggest_metric)
        self.text = TextField("a text file", "read in windows, measured at every next token")
        texts = bundled_texts()
        if texts:
            self.text.set_path(str(texts[0]))
        hint = "how many windows of the text are read"
        self.windows = spin(1, 100_000, _USUAL.windows, hint, "windows")
        self.length = spin(2, 100_000, LENGTH, "tokens of a window, BOS included", "tokens")
        self.reading = QWidget()
        row = QHBoxLayout(self.reading)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.windows, 1)
        row.addWidget(self.length, 1)

    def _lay_out(self) -> None:
        self.grid = FieldGrid()
        self.grid.add("Without", self.what)
        self.grid.add("which", self.which)
        self.grid.add("at most", self.most)
        self.grid.add("Instead", self.kind)
        self.grid.add("Rest", self.later)
        self.grid.add("On", self.on)
        self.grid.add("prompts", self.prompts)
        self.grid.add("target", self.target)
        self.grid.add("minus", self.versus)
        self.grid.add("text", self.text)
        self.grid.add("read", self.reading)
        self.grid.add("Measure", self.measure)
        self.grid.add("seed", self.seed)
        self.setWidget(self.grid)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)

    def _connect(self) -> None:
        self.what.activated.connect(self._choose_what)
        self.which.textEdited.connect(self._write_which)
        self.kind.currentIndexChanged.connect(self._on_edited)
        self.later.chosen.connect(self._choose_later)
        self.on.activated.connect(self._choose_on)
        self.measure.activated.connect(self._choose_metric)
        self.measure.currentIndexChanged.connect(self._on_edited)
        for line in (self.which, self.target, self.versus):
            line.textChanged.connect(self._on_edited)
        self.prompts.textChanged.connect(self._on_edited)
        self.text.changed.connect(self._on_edited)
        for box in (self.most, self.windows, self.length, self.seed):
            box.valueChanged.connect(self._on_edited)

    # --- following the document ------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Ask about the model, the prompt and the selection of `snapshot`."""
        before, self._snapshot = self._snapshot, snapshot
        facts = snapshot.results.model
        if facts is not None and not self._kinds:
            self._make_kinds()
        if facts is not None:
            self._limit(facts.config.n_ctx)
        colours = theme(snapshot.state.theme)
        self.later.show_choice(max(self.later.place, _FREE), colours)
        if snapshot.state.selection != before.state.selection:
            self._take_selection()
        if snapshot.state.versus != before.state.versus:
            self._suggest_metric()
        self._on_edited()

    def _make_kinds(self) -> None:
        from circuitview.core.ablation.kinds import kinds

        self.kind.blockSignals(True)
        for name, kind in kinds().items():
            self.kind.addItem(kind.TITLE, name)
            self.kind.setItemData(self.kind.count() - 1, kind.HELP, Qt.ItemDataRole.ToolTipRole)
            self._kinds[name] = KindFields(kind, self.grid, self.later, self._on_edited)
        self.kind.blockSignals(False)

    def _limit(self, n_ctx: int) -> None:
        self._usual_length = limit_length(self.length, n_ctx, LENGTH)
        for fields in self._kinds.values():
            fields.limit(n_ctx)

    def _take_selection(self) -> None:
        """Name what is selected in the diagram, unless sites were written by hand."""
        if self.asks == "chosen" and not self._which_written:
            self.which.setText(selected_site(self._snapshot.state.selection))

    # --- what the user does ----------------------------------------------------------------------

    @property
    def asks(self) -> What:
        """What is taken away."""
        what: What = self.what.currentData()
        return what

    def choose(self, what: What) -> None:
        """Take that away."""
        self.what.setCurrentIndex(self.what.findData(what))
        self._choose_what()

    def _choose_what(self, _index: int = 0) -> None:
        self._which_written = False
        self.which.clear()
        self._take_selection()
        self._suggest_metric()
        self._on_edited()

    def _write_which(self, text: str) -> None:
        self._which_written = bool(text.strip())
        self._take_selection()

    def _choose_later(self, place: int) -> None:
        self.later.show_choice(place, theme(self._snapshot.state.theme))
        self._on_edited()

    def _choose_on(self, _index: int = 0) -> None:
        if self.on.currentIndex() == _SEVERAL and not self.prompts.toPlainText().strip():
            self.prompts.setPlainText(self._snapshot.state.prompt_shown)
        self._suggest_metric()
        self._on_edited()

    def _choose_metric(self, _index: int) -> None:
        self._metric_chosen = True

    def _suggest_metric(self) -> None:
        """The usual measure, until one is chosen: the loss of a text and for orders, else what the
        diagram explains."""
        if not self._metric_chosen:
            usual = "difference" if self._snapshot.state.versus is not None else "logit"
            if self.on.currentIndex() == _TEXT or self.asks == "orders":
                usual = "loss"
            elif self.on.currentIndex() == _SEVERAL:
                usual = "difference" if self.versus.text() else "logit"
            self.measure.setCurrentIndex(self.measure.findData(usual))

    def _on_edited(self, *_: object) -> None:
        self._show_rows()
        question, facts = self.question(), self._snapshot.results.model
        why = self.reason()
        self.run_button.setEnabled(why is None)
        if why is None and question is not None and facts is not None:
            count = count_sites(question, facts.config)
            rows = f"{count:,} row" + ("s" if count != 1 else "")
            self.run_button.setToolTip(f"Measure {rows}, in the background")
        else:
            self.run_button.setToolTip(why or "")
        self.kind.setToolTip(self.kind.currentData(Qt.ItemDataRole.ToolTipRole) or "")
        self.judged.emit(why or "", why is not None and not self._lacks(question))

    def _show_rows(self) -> None:
        asks, on = self.asks, self.on.currentIndex()
        self.grid.show_field(self.which, asks in _WHICH)
        self.which.setPlaceholderText(_WHICH.get(asks, ""))
        largest = asks == "paths" and not self.which.text().strip()
        self.grid.show_field(self.most, largest)
        kind = self.kind.currentData()
        for name, fields in self._kinds.items():
            fields.show(name == kind)
        self.grid.show_field(self.later, asks != "orders")  # orders hold all patterns
        for place, widgets in (
            (_SEVERAL, (self.prompts, self.target, self.versus)),
            (_TEXT, (self.text, self.reading)),
        ):
            for widget in widgets:
                self.grid.show_field(widget, on == place)
        draws = kind == "resample" and not dict(self._parameters()).get("prompt")
        self.grid.show_field(self.seed, draws)

    # --- asking ----------------------------------------------------------------------------------

    def question(self) -> Question | None:
        """What the fields ask; None before a model is there."""
        if self._snapshot.results.model is None or not self._kinds:
            return None
        which = self.which.text().split(",") if self.asks in _WHICH else []
        metric, of = self.measure.currentData(), question_of(self._snapshot)
        asked = replace(
            of,
            versus=of.versus if metric == "difference" else None,
            what=self.asks,
            chosen=tuple(part.strip() for part in which if part.strip()),
            kind=self.kind.currentData(),
            parameters=self._parameters(),
            frozen=self.later.place == _FROZEN or self.asks == "orders",
            metric=metric,
            seed=self.seed.value(),
            most=self.most.value(),
        )
        match self.on.currentIndex():
            case place if place == _SEVERAL:
                lines = self.prompts.toPlainText().splitlines()
                return replace(
                    asked,
                    prompts=tuple(line for line in lines if line.strip()),
                    target=self.target.text() or None,
                    versus=self.versus.text() or None if metric == "difference" else None,
                    dest=None,
                )
            case place if place == _TEXT:
                length = self.length.value()
                return replace(
                    asked,
                    prompts=(),
                    text=self.text.path,
                    length=None if length == self._usual_length else length,
                    windows=self.windows.value(),
                    target=None,
                    versus=None,
                    dest=None,
                )
        return asked

    def _parameters(self) -> tuple[tuple[str, str | int], ...]:
        fields = self._kinds.get(self.kind.currentData())
        return () if fields is None else fields.parameters()

    def reason(self) -> str | None:
        """Why what the fields ask can't be run."""
        facts, question = self._snapshot.results.model, self.question()
        if facts is None or question is None:
            return "no model is open yet"
        if self._snapshot.state.showing == "difference":
            return "B − A is of two runs: show A or B to measure"
        if self._snapshot.refused:
            return "the model was refused: its paths don't add up"
        return reason_against(question, facts.config)

    def _lacks(self, question: Question | None) -> bool:
        """Whether something is still to be filled in, or another prompt to be shown: no error."""
        snapshot = self._snapshot
        if question is None or snapshot.refused or snapshot.state.showing == "difference":
            return not snapshot.refused
        no_site = question.what == "chosen" and not question.chosen
        no_data = not question.text and not any(map(str.strip, question.prompts))
        return no_site or no_data

    def ask(self) -> None:
        """Run what the fields ask, where it can be run."""
        question, facts = self.question(), self._snapshot.results.model
        if question is not None and facts is not None and self.reason() is None:
            self.asked.emit(question, facts.name)


def selected_site(selection: Selection) -> str:
    """What is selected, as the name of a site; "" for nothing."""
    if selection.path is not None:
        return str(selection.path)
    return "" if selection.head is None else str(selection.head)


def _combo() -> QComboBox:
    combo = QComboBox()
    combo.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    combo.setMinimumWidth(80)
    return combo
