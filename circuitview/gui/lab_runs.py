"""The list of the lab's runs: what waits, how far the one that runs is, what has ended and how."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QListView,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from circuitview.gui.elided_label import ElidedLabel, FittedLabel
from circuitview.gui.lab_queue import LabQueue, LabRun
from circuitview.gui.lab_words import every_prompt, measured, ran, state_words
from circuitview.gui.panel_dock import GlyphButton
from circuitview.session.run_words import asked_words

_BAR_HIGH = 5  # pixels


class LabRuns(QListWidget):
    """Newest on top.

    Signals: picked(a LabRun, or None where the list is empty).
    """

    picked = Signal(object)

    def __init__(self, queue: LabQueue) -> None:
        super().__init__()
        self._queue = queue
        self.cards: dict[LabRun, RunCard] = {}
        self._chosen: LabRun | None = None
        self.setObjectName("lab-runs")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.currentItemChanged.connect(self._on_current)
        queue.listed.connect(self._list)
        queue.changed.connect(self._on_changed)
        self._list()

    @property
    def chosen(self) -> LabRun | None:
        """The run whose results are shown."""
        return self._chosen

    def choose(self, entry: LabRun) -> None:
        """Show the results of `entry`."""
        place = self._queue.runs[::-1].index(entry)
        self.setCurrentRow(place)

    def _list(self) -> None:
        runs, wanted = self._queue.runs[::-1], self._chosen
        self.blockSignals(True)
        self.clear()  # Qt deletes the cards with their items
        self.cards = {entry: RunCard(entry, self._queue) for entry in runs}
        for card in self.cards.values():
            item = QListWidgetItem()
            item.setSizeHint(QSize(60, card.sizeHint().height()))
            self.addItem(item)
            self.setItemWidget(item, card)
        place = runs.index(wanted) if wanted in runs else 0 if runs else -1
        self.setCurrentRow(place)
        self.blockSignals(False)
        self._pick(runs[place] if runs else None)

    def _on_current(self, item: QListWidgetItem | None, _before: QListWidgetItem | None) -> None:
        card = None if item is None else self.itemWidget(item)
        if isinstance(card, RunCard):
            self._pick(card.entry)

    def _pick(self, entry: LabRun | None) -> None:
        if entry is not self._chosen:
            self._chosen = entry
            self.picked.emit(entry)

    def _on_changed(self, entry: LabRun) -> None:
        card = self.cards.get(entry)
        if card is not None:
            card.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Qt lays a list anew where its height changes, and leaves its items as wide as they were.
        self.scheduleDelayedItemsLayout()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)
        if event.key() in keys and self._chosen is not None:
            self._queue.remove(self._chosen)
        else:
            super().keyPressEvent(event)


class RunCard(QWidget):
    """One run: what, of what, how it stands; a button that stops it or takes it off the list."""

    def __init__(self, entry: LabRun, queue: LabQueue) -> None:
        super().__init__()
        self.entry, self._queue = entry, queue
        self.title, self.of, self.state = ElidedLabel(), FittedLabel(), FittedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.of.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(_BAR_HIGH)
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(policy)
        self.button = GlyphButton("close", "")
        self.button.clicked.connect(self._stop)
        top = QHBoxLayout()
        top.setSpacing(4)
        top.addWidget(self.title, 1)
        top.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 3, 4, 3)
        column.setSpacing(1)
        column.addLayout(top)
        column.addWidget(self.of)
        column.addWidget(self.state)
        column.addWidget(self.bar)
        self.refresh()

    def refresh(self) -> None:
        """Say how the run stands now."""
        entry = self.entry
        self.title.setText(asked_words(entry.question))
        of, stands = ran(entry), state_words(entry)
        hint = f"{entry.model_name}\n{every_prompt(entry)}\n{measured(entry)}"
        self.of.show_wordings(f"{entry.model_name} · {of}", of, elastic=of, hint=hint)
        failed, role = entry.state == "failed", QPalette.ColorRole
        self.state.setForegroundRole(role.BrightText if failed else role.WindowText)
        long = stands if failed else f"{stands} · {measured(entry)}"
        self.state.show_wordings(long, stands)
        self.bar.setVisible(entry.state == "running")
        self.bar.setRange(0, entry.total)
        self.bar.setValue(entry.done)
        self.button.setToolTip("Take it off the list" if entry.ended else "Cancel")

    def _stop(self) -> None:
        if self.entry.ended:
            self._queue.remove(self.entry)
        else:
            self._queue.cancel(self.entry)
