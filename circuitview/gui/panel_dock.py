"""One panel in its dock: made when it is first drawn or needed, drawn while it can be seen, marked
stale while not.

What a panel raises is shown in its place, with its text; the other panels go on.
"""

import logging
import traceback
from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from circuitview.gui.document import Document
from circuitview.gui.panels.panel import Panel
from circuitview.session.state import Snapshot

log = logging.getLogger(__name__)

# Strokes of the title's buttons, in a square of 10.
_GLYPHS: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "export": (
        (5, 7, 5, 0.5),
        (5, 0.5, 2.4, 3.1),
        (5, 0.5, 7.6, 3.1),
        (1, 6, 1, 9.5),
        (1, 9.5, 9, 9.5),
        (9, 9.5, 9, 6),
    ),
    "maximise": ((1, 1, 9, 1), (9, 1, 9, 9), (9, 9, 1, 9), (1, 9, 1, 1)),
    "float": (
        (3.5, 1, 9, 1),
        (9, 1, 9, 6.5),
        (1, 3.5, 6.5, 3.5),
        (6.5, 3.5, 6.5, 9),
        (6.5, 9, 1, 9),
        (1, 9, 1, 3.5),
    ),
    "close": ((1.5, 1.5, 8.5, 8.5), (8.5, 1.5, 1.5, 8.5)),
}


class GlyphButton(QAbstractButton):
    """A small flat button whose sign follows the palette."""

    def __init__(self, glyph: str, name: str) -> None:
        super().__init__()
        self._strokes = _GLYPHS[glyph]
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        side = max(18, self.fontMetrics().height() + 4)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002 - Qt's signature
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = self.palette()
        if self.underMouse() or self.isDown():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.mid())
            painter.drawRoundedRect(QRectF(self.rect()), 3, 3)
        painter.translate(self.width() / 2 - 5, self.height() / 2 - 5)
        painter.setPen(QPen(colours.color(colours.ColorRole.WindowText), 1.2))
        for x1, y1, x2, y2 in self._strokes:
            painter.drawLine(x1, y1, x2, y2)  # type: ignore[call-overload]
        painter.end()


class DockTitle(QWidget):
    """Name and buttons over a panel."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setObjectName("dock-title")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.export = GlyphButton("export", f"Export {title.lower()}…")
        self.maximise = GlyphButton("maximise", "Fill the window with this panel, or put it back")
        self.floating = GlyphButton("float", "Float as a window of its own, or dock again")
        self.close_button = GlyphButton("close", "Close; the View menu opens it again")
        label = QLabel(title)
        font = label.font()
        font.setBold(True)
        label.setFont(font)
        label.setMinimumWidth(10)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 4, 2)
        row.setSpacing(2)
        row.addWidget(label, 1)
        for button in (self.export, self.maximise, self.floating, self.close_button):
            row.addWidget(button)


class PanelDock(QDockWidget):
    """A dock with one panel. Its object name, the panel's NAME, is its key in the saved layout.

    Attributes:
        kind: the panel's class.
    """

    export_asked = Signal(str)
    maximise_asked = Signal(str)
    room_asked = Signal(str, int)

    def __init__(self, kind: type[Panel], document: Document) -> None:
        super().__init__(kind.TITLE)
        self.setObjectName(kind.NAME)
        self.kind = kind
        self.trouble: str | None = None  # the traceback of what the panel raised last
        self._document = document
        self._panel: Panel | None = None
        self._pending: Snapshot | None = None
        self._covered = False  # by another tab: Qt takes such a dock for visible
        self._reason = QLabel()
        self._copy = QPushButton("Copy details")
        self._stack = QStackedWidget()
        self._blank, self._told = QWidget(), self._trouble_page()
        self._stack.addWidget(self._blank)
        self._stack.addWidget(self._told)
        self.setWidget(self._stack)
        title = DockTitle(kind.TITLE)
        self.setTitleBarWidget(title)
        title.export.clicked.connect(self._on_export)
        title.maximise.clicked.connect(self._on_maximise)
        title.floating.clicked.connect(self._on_float)
        title.close_button.clicked.connect(self.close)
        self._copy.clicked.connect(self._copy_trouble)
        self.visibilityChanged.connect(self._on_visibility)

    def _trouble_page(self) -> QWidget:
        self._reason.setTextFormat(Qt.TextFormat.PlainText)
        self._reason.setWordWrap(True)
        self._reason.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        page = QWidget()
        column = QVBoxLayout(page)
        column.addStretch(1)
        column.addWidget(self._reason)
        column.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(1)
        return page

    # --- making ----------------------------------------------------------------------------------

    @property
    def panel(self) -> Panel:
        """The panel, made now where it was not needed before: most are never looked at, and forms
        take long to make."""
        if self._panel is None:
            self._panel = self.kind(self._document)
            self._panel.room_asked.connect(self._on_room_asked)
            self._stack.addWidget(self._panel)
            if self._stack.currentWidget() is self._blank:
                self._stack.setCurrentWidget(self._panel)
        return self._panel

    @property
    def made(self) -> bool:
        return self._panel is not None

    def made_panel(self) -> Panel | None:
        """The panel; None where it can't be made, which is told in its place."""
        if self._panel is None:
            self._guarded(lambda: self.panel)
        return self._panel

    @property
    def seen(self) -> bool:
        """Whether the panel's place is on the screen, and not behind another tab."""
        return self._stack.isVisible() and not self._covered

    # --- drawing ---------------------------------------------------------------------------------

    @property
    def stale(self) -> bool:
        """Whether a snapshot waits until the panel can be seen."""
        return self._pending is not None

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw `snapshot`, or keep it until the panel can be seen."""
        self._pending = snapshot
        if self.seen:
            self.draw_pending()

    def draw_pending(self) -> None:
        """Draw what has waited, if anything has."""
        snapshot, self._pending = self._pending, None
        if snapshot is not None:
            self._guarded(lambda: self.panel.show_snapshot(snapshot))

    def _guarded(self, does: Callable[[], object]) -> None:
        """Do what the panel does; what it raises is shown in its place."""
        try:
            does()
        except Exception as error:
            log.exception("panel %s can't draw", self.kind.NAME)
            self.trouble = traceback.format_exc()
            self._reason.setText(
                f"{self.kind.TITLE} can't be drawn: {type(error).__name__}: {error}"
            )
            self._stack.setCurrentWidget(self._told)
        else:
            self.trouble = None
            self._stack.setCurrentWidget(self._panel or self._blank)

    def _on_visibility(self, visible: bool) -> None:
        self._covered = not visible
        if visible:
            self.draw_pending()

    # --- acting ----------------------------------------------------------------------------------

    def _on_export(self) -> None:
        self.export_asked.emit(self.kind.NAME)

    def _on_room_asked(self, height: int) -> None:
        # Its title is over the panel.
        self.room_asked.emit(self.kind.NAME, height + self.titleBarWidget().sizeHint().height())

    def _on_maximise(self) -> None:
        self.maximise_asked.emit(self.kind.NAME)

    def _on_float(self) -> None:
        self.setFloating(not self.isFloating())

    def _copy_trouble(self) -> None:
        QGuiApplication.clipboard().setText(self.trouble or "")
