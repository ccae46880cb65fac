"""Path table: every term of the logit with its contribution; sorted, filtered, grouped."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt
from PySide6.QtGui import QAction, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QToolButton,
    QVBoxLayout,
)

from circuitview.core.path import Path
from circuitview.figures.compose import rows_figure
from circuitview.figures.figure import Figure
from circuitview.figures.theme import Theme, theme
from circuitview.gui.document import Document
from circuitview.gui.panels.panel import Panel
from circuitview.gui.tables.amount_delegate import AmountDelegate, BarScale
from circuitview.gui.tables.path_export import HEADERS, StandingTable, tab_separated
from circuitview.gui.tables.path_model import PathModel
from circuitview.gui.tables.path_rows import (
    CONTRIBUTION,
    KIND,
    KINDS,
    PATH,
    SHARE,
    PathRows,
    path_rows,
)
from circuitview.gui.tables.table_view import TableView
from circuitview.session import numbers
from circuitview.session.expansions import explained
from circuitview.session.state import Snapshot

if TYPE_CHECKING:  # torch loads only where something is computed
    from circuitview.core.expansion import Expansion

_ALL_KINDS = "all kinds"
_SELECT_ROW = (
    QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
)
_FOLDED_FROM = 5_000  # rows of a group; a tree asks for each of them at every change
_NARROW_CHARACTERS, _SHORT_CHARACTERS = 65, 48


class PathTablePanel(Panel):
    """The table. A row is a path; picking it picks the path everywhere."""

    NAME = "paths"
    TITLE = "Paths"
    AREA = "left"
    ORDER = 0

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._expansion: Expansion | None = None
        self._wanted: Path | None = None  # what the view's selection was last set to
        self._collapsed: set[str] = set()
        self._opened: set[str] = set()  # large groups that the user wants to see
        self.model = PathModel(self)
        self._build_top()
        self._build_view()
        self.footer = QLabel()
        self.footer.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.footer.setToolTip("everything that is summed, and what the rows shown add up to")
        self.footer.setContentsMargins(2, 2, 2, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(6)
        layout.addLayout(self._top)
        layout.addWidget(self.view, 1)
        layout.addWidget(self.footer)
        self._resize_columns()

    def _build_top(self) -> None:
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter: token, 1.4, virtual …")
        self.filter.setClearButtonEnabled(True)
        self.filter.setToolTip("words that a row must have; 1.4 finds the paths through that head")
        self.kind = QComboBox()
        self.kind.addItems([_ALL_KINDS, *KINDS])
        self.kind.setToolTip("how many heads: none, one, or more")
        self.group = QToolButton()
        self.group.setText("Group")
        self.group.setCheckable(True)
        self.group.setToolTip("group the rows, with exact subtotals")
        self.kind.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.kind.setMinimumContentsLength(7)
        self.filter.textChanged.connect(self._narrow)
        self.kind.currentIndexChanged.connect(self._narrow)
        self.group.toggled.connect(self._group)
        self._top = QHBoxLayout()
        self._top.addWidget(self.filter, 1)
        self._top.addWidget(self.kind)
        self._top.addWidget(self.group)

    def _build_view(self) -> None:
        self.view = TableView(self.model)
        self.delegate = AmountDelegate(self.view)
        self.view.setItemDelegateForColumn(CONTRIBUTION, self.delegate)
        header = self.view.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicator(SHARE, Qt.SortOrder.DescendingOrder)
        header.setSectionResizeMode(PATH, QHeaderView.ResizeMode.Stretch)
        header.sortIndicatorChanged.connect(self._sort)
        self.view.setRootIsDecorated(False)
        self.view.setIndentation(self.fontMetrics().averageCharWidth() * 2)
        self.view.opened.connect(self._open)
        self.view.cleared.connect(self._clear)
        self.view.expanded.connect(self._on_expanded)
        self.view.collapsed.connect(self._on_collapsed)
        self.view.selectionModel().selectionChanged.connect(self._on_selected)
        self.copy_action = QAction("Copy rows", self.view)
        self.copy_action.setShortcut("Ctrl+C")
        self.copy_action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.copy_action.triggered.connect(self.copy_rows)
        self.open_action = QAction("Open in panels", self.view)
        self.open_action.triggered.connect(self._open)
        self.clear_action = QAction("Clear selection", self.view)
        self.clear_action.triggered.connect(self._clear)
        self.view.addActions([self.copy_action, self.open_action, self.clear_action])
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def _resize_columns(self) -> None:
        metrics = self.fontMetrics()
        header = self.view.header()
        for column, text in ((KIND, "virtual head"), (SHARE, "share ▾")):
            header.resizeSection(column, metrics.horizontalAdvance(text) + 18)
        self.model.set_font(self.view.font())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Where room is short the path must be readable: its label says its kind too, and the bars
        # can be small.
        metrics = self.fontMetrics()
        narrow = self.width() < metrics.averageCharWidth() * _NARROW_CHARACTERS
        if self.view.isColumnHidden(KIND) != narrow:
            self.view.setColumnHidden(KIND, narrow)
        number = metrics.horizontalAdvance("−10.00") + 24
        label = metrics.horizontalAdvance("token > mlp 10 > mlp 20") + 24
        bar = min(self.width() // 5, max((self.width() - label) // 2, 12), 160)
        self.view.header().resizeSection(CONTRIBUTION, number + bar)
        short = self.width() < metrics.averageCharWidth() * _SHORT_CHARACTERS
        if self.view.isColumnHidden(SHARE) != short:
            self.view.setColumnHidden(SHARE, short)
            self.kind.setHidden(short)

    # --- drawing a snapshot ----------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        colours = theme(snapshot.state.theme)
        selection = snapshot.state.selection
        self.delegate.theme = colours
        self.model.show_selection(selection, colours)
        expansion = snapshot.results.expansion
        if expansion is not self._expansion:
            self._expansion = expansion
            known = self.model.rows.names if self.model.rows else None
            rows = None if expansion is None else path_rows(expansion, known)
            self.delegate.scale = _scale(rows)
            self.model.show_rows(rows)
            self.view.scrollToTop()  # where the former rows were scrolled to says nothing of these
            self._after_reset()
        if selection.path != self._wanted:
            self._wanted = selection.path
            self._select_wanted()

    def _after_reset(self) -> None:
        """Bring back what a model reset takes: open groups, the selected row, the sums."""
        if self.group.isChecked():
            self._expand_groups()
        self._select_wanted()
        self._tell_sums()

    def _select_wanted(self) -> None:
        chosen = self.view.selectionModel()
        index = self.model.index_of(self._wanted)
        if not index.isValid():
            chosen.clear()
        elif self._sole_path() != self._wanted:
            chosen.setCurrentIndex(index, _SELECT_ROW)
            self.view.scrollTo(index)

    def _sole_path(self) -> Path | None:
        """The path of the selected row, where exactly one is selected."""
        rows = self.view.selectionModel().selectedRows()
        return self.model.path_at(rows[0]) if len(rows) == 1 else None

    def _tell_sums(self) -> None:
        rows = self.model.rows
        if rows is None:
            self.footer.setText("")
            return
        text = f"{numbers.readable(rows.n_terms)} terms add up to {numbers.logits(rows.total)}"
        if self.model.narrowed:
            n_shown = len(self.model.shown_rows)
            shown = numbers.logits(self.model.shown_sum(), signed=True)
            text += f" · {n_shown:,} shown: {shown}"
        self.footer.setText(text)
        self.footer.setToolTip("" if self._expansion is None else _not_listed(self._expansion))

    # --- what the user does ----------------------------------------------------------------------

    def _on_selected(self) -> None:
        path = self._sole_path()
        if path is not None and path != self.document.state.selection.path:
            self._wanted = path  # it is selected here already
            self.document.select_path(path)

    def _open(self) -> None:
        path = self.model.path_at(self.view.currentIndex())
        if path is None:
            return
        if path != self.document.state.selection.path:
            self.document.select_path(path)
        if path.heads:
            self.document.open_chain(path.heads)

    def _clear(self) -> None:
        self.view.selectionModel().clear()
        if self.document.state.selection.anything:
            self.document.select_path(None)

    def _narrow(self) -> None:
        kind = self.kind.currentText() if self.kind.currentIndex() > 0 else ""
        words = self.filter.text().strip()
        if (words, kind) != (self.model.words, self.model.kind_wanted):
            self.model.words, self.model.kind_wanted = words, kind
            self._arrange()

    def _sort(self, column: int, order: Qt.SortOrder) -> None:
        self.model.column = column
        self.model.descending = order == Qt.SortOrder.DescendingOrder
        self._arrange()

    def _group(self, on: bool) -> None:
        self.model.grouped = on
        self.view.setRootIsDecorated(on)
        self._arrange()

    def _arrange(self) -> None:
        self.model.arrange()
        self._after_reset()

    def _expand_groups(self) -> None:
        for place in range(self.model.rowCount()):
            index = self.model.index(place, 0)
            if not self._is_folded(self.model.group_at(index) or "", self.model.rowCount(index)):
                self.view.expand(index)

    def _is_folded(self, group: str, n_rows: int) -> bool:
        """As the user left it; before, a group is open unless its rows would hold up the window."""
        return group in self._collapsed or (n_rows > _FOLDED_FROM and group not in self._opened)

    def _on_expanded(self, index: QModelIndex) -> None:
        group = self.model.group_at(index) or ""
        self._collapsed.discard(group)
        if self.model.rowCount(index) > _FOLDED_FROM:
            self._opened.add(group)

    def _on_collapsed(self, index: QModelIndex) -> None:
        group = self.model.group_at(index) or ""
        self._collapsed.add(group)
        self._opened.discard(group)

    def copy_rows(self) -> None:
        """Put the selected rows, or all shown where none is, on the clipboard, as TSV."""
        rows = self.model.rows
        if rows is None:
            return
        indices = self.view.selectionModel().selectedRows()
        picked = {self.model.row_at(index) for index in indices} - {None}
        shown = [row for row in self.model.shown_rows if not picked or row in picked]
        QGuiApplication.clipboard().setText(tab_separated(rows, shown))
        self.document.tell(f"{len(shown):,} paths are on the clipboard")

    # --- export ----------------------------------------------------------------------------------

    def csv(self, snapshot: Snapshot) -> str | None:
        """The rows as they stand; what the filter takes out is one more, so they add up."""
        expansion = snapshot.results.expansion
        return None if expansion is None else self._standing(expansion).csv()

    def figure(self, snapshot: Snapshot, theme: Theme, width: float, height: float) -> Figure:
        """The table as it stands: its groups or its list, in their order, under the filter."""
        expansion = snapshot.results.expansion
        if expansion is None:
            return Figure(width, height, theme.background, (), self.TITLE)
        wanted = f", filter: {self._filter_words()}" if self.model.narrowed else ""
        return rows_figure(
            expansion,
            HEADERS,
            self._standing(expansion).figure_rows,
            title=f"Paths to {explained(expansion)}{wanted}",
            theme=theme,
            width=width,
            height=height,
        )

    def _standing(self, expansion: "Expansion") -> StandingTable:
        # Its own rows: a panel that can't be seen has not drawn this snapshot yet.
        rows = path_rows(expansion, self.model.rows.names if self.model.rows else None)
        blocks = tuple(self.model.arranged(rows))
        names = rows.names.groups
        folded = [
            names[group]
            for group, members in blocks
            if group >= 0 and self._is_folded(names[group], len(members))
        ]
        return StandingTable(rows, blocks, frozenset(folded))

    def _filter_words(self) -> str:
        return " ".join(word for word in (self.model.words, self.model.kind_wanted) if word)


def _not_listed(expansion: "Expansion") -> str:
    """What becomes of the paths that have no row of their own."""
    parts = (
        ("worked out and smaller", expansion.n_smaller, expansion.smaller),
        ("longer, known by their exact sum", expansion.n_beyond, expansion.beyond),
    )
    lines = [f"{numbers.count(len(expansion.paths))} paths in rows of their own"]
    lines += [
        f"{numbers.count(number)} {what}: {numbers.logits(total, signed=True)}"
        for what, number, total in parts
        if number
    ]
    return "\n".join(lines)


def _scale(rows: PathRows | None) -> BarScale:
    if rows is None or not len(rows):
        return BarScale()
    low, high = float(rows.contributions.min()), float(rows.contributions.max())
    widest = max(abs(low), abs(high), float(abs(rows.subtotals).max()))
    return BarScale(low, high, widest)


PANEL = PathTablePanel
