"""The prompt's tokens, tinted by what each brings to the logit, and what the model predicts.

A click makes a token the dest, a click with shift the source; the arrow keys move dest. A click on
a prediction makes it the target.
"""

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from circuitview.figures.theme import Theme, mix, theme
from circuitview.gui.chip_flow import Chip, ChipFlow
from circuitview.gui.document import Document
from circuitview.session.expansions import explained
from circuitview.session.numbers import logits, percent
from circuitview.session.state import Snapshot, State
from circuitview.session.tokens import token_contributions

_FAINTEST, _STRONGEST = 0.04, 0.85  # share of the sign's colour in a tint
_MOST_ROWS = 3
_N_PREDICTIONS = 6


class TokenStrip(QFrame):
    """Both rows of chips, with a caption over each."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.setObjectName("token-strip")
        self._document = document
        self._drawn: Snapshot | None = None
        self.tokens = ChipFlow("Tokens of the prompt")
        self.predictions = ChipFlow("Predicted tokens", keyboard=False)
        self.caption = QLabel(" ")
        self.prediction_caption = QLabel(" ")
        self._scroll = QScrollArea()
        self._build()
        self.tokens.chosen.connect(self._on_token)
        self.tokens.stepped.connect(self.step)
        self.tokens.jumped.connect(self._on_jump)
        self.tokens.left.connect(self._on_escape)
        self.predictions.chosen.connect(self._on_prediction)
        document.changed.connect(self._on_changed)

    def _build(self) -> None:
        self._scroll.setWidget(self.tokens)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for widget in (self._scroll, self._scroll.viewport(), self.tokens):
            widget.setAutoFillBackground(False)
        self._scroll.installEventFilter(self)
        # The rows are laid out later than they are set: only then can they be scrolled.
        self._scroll.verticalScrollBar().rangeChanged.connect(self._show_dest)
        self.tokens.laid_out.connect(self._show_dest)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 4, 8, 4)
        row.setSpacing(16)
        row.addLayout(_captioned(self.caption, self._scroll), 3)
        row.addLayout(_captioned(self.prediction_caption, self.predictions), 1)
        self.predictions.setMinimumWidth(250)
        self._fit_height()

    # --- showing ---------------------------------------------------------------------------------

    def _on_changed(self, snapshot: Snapshot, _before: Snapshot) -> None:
        self.show_snapshot(snapshot)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw the tokens and predictions of `snapshot`."""
        drawn = self._drawn
        if (
            drawn is not None
            and drawn.results is snapshot.results
            and drawn.state.theme == snapshot.state.theme
            and drawn.state.selection.source == snapshot.state.selection.source
        ):
            return
        self._drawn = snapshot
        colours = theme(snapshot.state.theme)
        self.tokens.set_chips(token_chips(snapshot, colours), colours)
        self.predictions.set_chips(prediction_chips(snapshot, colours), colours)
        expansion = snapshot.results.expansion
        if expansion is None:
            self.caption.setText(" ")
            self.prediction_caption.setText(" ")
        else:
            target, labels = expansion.target, expansion.recording.prompt.labels
            amount = f"{explained(expansion)} ({logits(expansion.logit)} logits)"
            self.caption.setText(f"What each token brings to {amount}, by all token paths")
            # Of a difference these are B's: the last token of A may be another one.
            prompt = "" if expansion.between is None else " in B"
            after = labels[target.dest].rpartition(" → ")[2] if prompt else labels[target.dest]
            self.prediction_caption.setText(f"Predicted after {after}{prompt}")
        self._fit_height()
        self._show_dest()

    def _show_dest(self) -> None:
        expansion = self._drawn.results.expansion if self._drawn else None
        if expansion is not None:
            # By whole rows, so that none is cut.
            bar, row = self._scroll.verticalScrollBar(), self.tokens.row_height()
            place = int(self.tokens.box(expansion.target.dest).top() // row)
            rows = max(int(self._scroll.height() // row), 1)
            first = round(bar.value() / row)
            bar.setValue(row * min(max(first, place - rows + 1), place))

    def _fit_height(self) -> None:
        """As many rows as there are, up to a few; the rest scrolls."""
        wanted = self.tokens.heightForWidth(max(self._scroll.viewport().width(), 100))
        row = self.tokens.row_height()
        rows = _MOST_ROWS if self.window().height() >= 850 else _MOST_ROWS - 1
        height = min(max(wanted, row), rows * row + 2)
        if self._scroll.height() != height or self._scroll.minimumHeight() != height:
            self._scroll.setFixedHeight(height)
            self.predictions.setFixedHeight(max(height, row))
            self._scroll.verticalScrollBar().setSingleStep(round(row / 3))  # a wheel turns three

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._scroll:
            self._fit_height()
        return super().eventFilter(watched, event)

    # --- acting ----------------------------------------------------------------------------------

    def step(self, by: int) -> None:
        """Move dest by so many tokens."""
        expansion = self._document.snapshot.results.expansion
        if expansion is not None:
            asked = self._document.state.dest
            n = len(expansion.recording.prompt)
            # Of two prompts the longer one has dests that this one lacks.
            here = n - 1 if asked is None else min(asked, n - 1)
            self._go(min(max(here + by, 0), n - 1))

    def _on_jump(self, end: int) -> None:
        expansion = self._document.snapshot.results.expansion
        if expansion is not None:
            self._go(0 if end == 0 else len(expansion.recording.prompt) - 1)

    def _on_escape(self) -> None:
        self._document.select_source(None)

    def _on_token(self, index: int, shift: bool) -> None:
        if shift:
            marked = self._document.state.selection.source
            self._document.select_source(None if marked == index else index)
        else:
            self._go(index)

    def _go(self, dest: int) -> None:
        shown = self._document.snapshot.state

        def change(state: State) -> State:
            # Another prompt may have been asked for meanwhile: its tokens are not those clicked.
            names = ("model", "prompt", "other", "shown", "prepend_bos")
            same = all(getattr(state, name) == getattr(shown, name) for name in names)
            return replace(state, dest=dest) if same else state

        self._document.edit(change)

    def _on_prediction(self, index: int, _shift: bool) -> None:
        predictions = self._document.snapshot.results.predictions
        if index < len(predictions):
            label = predictions[index].label
            # The versus token may not be the target too.
            self._document.edit(
                lambda state: replace(
                    state,
                    target=label,
                    versus=None if state.versus == label else state.versus,
                )
            )


def token_chips(snapshot: Snapshot, colours: Theme) -> tuple[Chip, ...]:
    """A chip for each token of the prompt."""
    expansion = snapshot.results.expansion
    if expansion is None:
        return ()
    values = token_contributions(expansion)  # [src]
    largest = float(np.abs(values).max()) or 1.0
    prompt, dest = expansion.recording.prompt, expansion.target.dest
    weight = f"to {explained(expansion)}"
    others = expansion.between[0].recording.prompt.token_ids if expansion.between else ()
    chips = []
    for place, label in enumerate(prompt.labels):
        value = float(values[place])
        after = place > dest
        token = str(prompt.token_ids[place])
        if others and others[place] != prompt.token_ids[place]:
            token = f"{others[place]} → {token}"
        tip = f"{label}\nid {token}, position {place}"
        tip += "\nstands after dest" if after else f"\nbrings {logits(value, True)} logits {weight}"
        chips.append(
            Chip(
                text=label,
                under="" if after else logits(value, True),
                fill=colours.panel if after else tint(value / largest, colours),
                under_color=colours.sign_text(value),
                outlined=place == dest,
                marked=place == snapshot.state.selection.source,
                tip=tip,
            )
        )
    return tuple(chips)


def prediction_chips(snapshot: Snapshot, colours: Theme) -> tuple[Chip, ...]:
    """A chip for each of the most probable tokens, the target outlined."""
    expansion = snapshot.results.expansion
    if expansion is None:
        return ()
    target = expansion.target
    return tuple(
        Chip(
            text=prediction.label,
            under=percent(prediction.probability),
            fill=mix(colours.background, colours.remainder, 0.55 * prediction.probability),
            under_color=colours.muted,
            outlined=prediction.token == target.token,
            marked=prediction.token == target.versus,
            tip=f"{prediction.label}\nid {prediction.token}, logit {logits(prediction.logit)}, "
            f"probability {percent(prediction.probability)}\nclick to make it the target",
        )
        for prediction in snapshot.results.predictions[:_N_PREDICTIONS]
    )


def tint(share: float, colours: Theme) -> str:
    """The background with so much of the sign's colour as `share` (-1 to 1) asks for."""
    strength = _FAINTEST + (_STRONGEST - _FAINTEST) * min(abs(share), 1.0)
    return mix(colours.background, colours.sign(share), strength)


def _captioned(caption: QLabel, widget: QWidget) -> QVBoxLayout:
    smaller = caption.font()
    smaller.setPointSizeF(smaller.pointSizeF() * 0.9)
    caption.setFont(smaller)
    caption.setForegroundRole(caption.palette().ColorRole.PlaceholderText)
    caption.setTextFormat(Qt.TextFormat.PlainText)
    caption.setMinimumWidth(40)
    column = QVBoxLayout()
    column.setSpacing(2)
    column.addWidget(caption)
    column.addWidget(widget)
    column.addStretch(1)
    return column
