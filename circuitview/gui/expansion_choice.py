"""Which of the two exact sums is shown, and the choice between them; hidden without MLPs."""

from dataclasses import replace

from PySide6.QtWidgets import QHBoxLayout, QWidget

from circuitview.figures.theme import theme
from circuitview.gui.document import Document
from circuitview.gui.segments import Segments
from circuitview.session.state import Snapshot, State

_HINTS = (
    "What each MLP wrote is a source of paths, held as recorded",
    "Paths run on through MLPs; what each neuron multiplied its input by is held as recorded",
)


class ExpansionChoice(QWidget):
    """Two buttons beside the balance."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self.segments = Segments(("MLPs as sources", "through MLPs"), _HINTS)
        self.segments.setAccessibleName("What becomes of MLPs")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 8, 0)
        row.addWidget(self.segments)
        self.segments.chosen.connect(self._on_chosen)
        document.changed.connect(self._on_changed)
        self.hide()

    def _on_chosen(self, place: int) -> None:
        self._document.edit(_through if place else _as_sources)

    def _on_changed(self, snapshot: Snapshot, before: Snapshot) -> None:  # noqa: ARG002
        facts, expansion = snapshot.results.model, snapshot.results.expansion
        if facts is None or facts.config.attn_only:
            self.hide()
            return
        through = snapshot.state.through_mlps if expansion is None else expansion.through_mlps
        self.segments.show_choice(int(through), theme(snapshot.state.theme))
        button = self.segments.button(1)
        button.setEnabled(facts.no_mlp_paths is None)
        button.setToolTip(facts.no_mlp_paths or _HINTS[1])
        self.show()


def _through(state: State) -> State:
    return replace(state, through_mlps=True)


def _as_sources(state: State) -> State:
    return replace(state, through_mlps=False)
