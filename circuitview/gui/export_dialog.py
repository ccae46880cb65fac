"""Export of the diagram or any panel, with a preview: what is seen is what the file holds."""

from pathlib import Path as FilePath

import msgspec
from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from circuitview.core.names import CircuitviewError
from circuitview.figures.theme import theme
from circuitview.gui.document import Document
from circuitview.gui.export_job import Exportable, ExportJob
from circuitview.gui.field_marks import mark_wrong
from circuitview.gui.paint import image
from circuitview.gui.settings_store import SettingsStore
from circuitview.gui.theming import ALARM
from circuitview.session.settings import ExportChoices
from circuitview.session.state import Snapshot

_FORMATS = (
    ("svg", "SVG: drawing, editable"),
    ("pdf", "PDF: drawing, for papers"),
    ("png", "PNG: pixels"),
    ("csv", "CSV: the numbers"),
)
_SIZES = (
    ("screen", "As on screen"),
    ("slide", "Slide, 1280 x 720"),
    ("full-hd", "Full HD, 1920 x 1080"),
    ("custom", "Custom"),
)
_SCALES = ((1.0, "1 x"), (2.0, "2 x, dense screens"), (4.0, "4 x, print"))
_THEMES = (("window", "As the window"), ("light", "Light"), ("dark", "Dark"))


class Preview(QWidget):
    """The picture, as large as fits; a chequered ground where it is transparent."""

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumSize(420, 300)
        self._picture: QImage | None = None

    def show_picture(self, picture: QImage | None) -> None:
        """Show this raster, or nothing."""
        self._picture = picture
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002 - Qt's signature
        if self._picture is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        size = self._picture.deviceIndependentSize()
        scale = min(self.width() / size.width(), self.height() / size.height(), 1.0)
        wide, high = size.width() * scale, size.height() * scale
        where = QRectF((self.width() - wide) / 2, (self.height() - high) / 2, wide, high)
        if self._picture.hasAlphaChannel():
            painter.fillRect(where, QColor("#ffffff"))
            painter.fillRect(where, QBrush(QColor("#c8c8c8"), Qt.BrushStyle.Dense4Pattern))
        painter.drawImage(where, self._picture)
        painter.setPen(self.palette().color(self.palette().ColorRole.Mid))
        painter.drawRect(where.adjusted(-0.5, -0.5, 0.5, 0.5))
        painter.end()


class ExportDialog(QDialog):
    """Choices on the left, the picture on the right. Choices are remembered."""

    def __init__(
        self,
        document: Document,
        things: list[Exportable],
        chosen: str,
        store: SettingsStore,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export")
        self._document, self._things, self._store = document, things, store
        self._named = False  # whether the user named the file
        self._replaces: FilePath | None = None
        self._wished = "svg"  # the format that was chosen: not every panel can be written in it
        self._build_fields()
        self._lay_out()
        self._load(store.settings.export, chosen)
        self._redraw = QTimer(self)
        self._redraw.setSingleShot(True)
        self._redraw.timeout.connect(self._preview)
        self._connect()
        self._on_choice()

    def _build_fields(self) -> None:
        self.what, self.format, self.size_box = QComboBox(), QComboBox(), QComboBox()
        self.scale, self.colours = QComboBox(), QComboBox()
        for thing in self._things:
            self.what.addItem(thing.TITLE, thing.NAME)
        for box, pairs in (
            (self.format, _FORMATS),
            (self.size_box, _SIZES),
            (self.scale, _SCALES),
            (self.colours, _THEMES),
        ):
            for key, text in pairs:
                box.addItem(text, key)
        self.wide, self.high = QSpinBox(), QSpinBox()
        for spin in (self.wide, self.high):
            spin.setRange(100, 8000)
            spin.setSuffix(" px")
        self.transparent = QCheckBox("Transparent background")
        self.path = QLineEdit()
        self.path.setMinimumWidth(280)
        self.browse = QPushButton("Browse…")
        self.browse.setAutoDefault(False)
        self.message = QLabel()
        self.message.setWordWrap(True)
        self.message.setTextFormat(Qt.TextFormat.PlainText)
        self.preview = Preview()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        role = QDialogButtonBox.ButtonRole
        self.export_button = self.buttons.addButton("Export", role.ActionRole)
        self.copy_button = self.buttons.addButton("Copy to clipboard", role.ActionRole)
        self.export_button.setDefault(True)

    def _lay_out(self) -> None:
        pixels, file_row = QHBoxLayout(), QHBoxLayout()
        pixels.addWidget(self.wide)
        pixels.addWidget(QLabel("x"))
        pixels.addWidget(self.high)
        pixels.addStretch(1)
        file_row.addWidget(self.path, 1)
        file_row.addWidget(self.browse)
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow("&What", self.what)
        form.addRow("&Format", self.format)
        form.addRow("&Size", self.size_box)
        form.addRow("", pixels)
        form.addRow("&Pixels", self.scale)
        form.addRow("&Colours", self.colours)
        form.addRow("", self.transparent)
        form.addRow("File", file_row)
        left = QVBoxLayout()
        left.addLayout(form)
        left.addWidget(self.message)
        left.addStretch(1)
        columns = QHBoxLayout()
        columns.addLayout(left)
        columns.addWidget(self.preview, 1)
        whole = QVBoxLayout(self)
        whole.addLayout(columns, 1)
        whole.addWidget(self.buttons)

    def _connect(self) -> None:
        self.what.currentIndexChanged.connect(self._offer_format)
        self.format.activated.connect(self._wish_format)
        for box in (self.what, self.format, self.size_box, self.scale, self.colours):
            box.currentIndexChanged.connect(self._on_choice)
        for spin in (self.wide, self.high):
            spin.valueChanged.connect(self._on_choice)
        self.transparent.toggled.connect(self._on_choice)
        self.path.textEdited.connect(self._on_named)
        self._document.changed.connect(self._on_changed)
        self.browse.clicked.connect(self._on_browse)
        self.export_button.clicked.connect(self.export)
        self.copy_button.clicked.connect(self.copy)
        self.buttons.rejected.connect(self.reject)

    # --- choices ---------------------------------------------------------------------------------

    def _load(self, choices: ExportChoices, chosen: str) -> None:
        self._folder = choices.folder or str(FilePath.home())
        for box, key in (
            (self.what, chosen),
            (self.format, choices.format),
            (self.size_box, choices.size),
            (self.scale, choices.scale),
            (self.colours, choices.theme),
        ):
            box.setCurrentIndex(max(box.findData(key), 0))
        self._wished = choices.format
        self._offer_format()
        self.wide.setValue(choices.width)
        self.high.setValue(choices.height)
        self.transparent.setChecked(choices.transparent)

    def choices(self) -> ExportChoices:
        """What is chosen now."""
        return ExportChoices(
            folder=self._folder,
            format=self.format.currentData(),
            size=self.size_box.currentData(),
            width=self.wide.value(),
            height=self.high.value(),
            scale=self.scale.currentData(),
            theme=self.colours.currentData(),
            transparent=self.transparent.isChecked(),
        )

    def job(self) -> ExportJob:
        """What would be exported now."""
        thing = self._things[max(self.what.currentIndex(), 0)]
        return ExportJob(thing, self._document.snapshot, self.choices())

    def _wish_format(self) -> None:
        self._wished = self.format.currentData()

    def _offer_format(self) -> None:
        """The format that was chosen, or a drawing where there are no numbers to write."""
        thing = self._things[max(self.what.currentIndex(), 0)]
        csv = ExportJob(thing, self._document.snapshot, self.choices()).csv
        possible = self._wished != "csv" or csv() is not None
        place = self.format.findData(self._wished if possible else "svg")
        self.format.setCurrentIndex(max(place, 0))

    def _on_choice(self) -> None:
        job = self.job()
        table = job.choices.format == "csv"
        custom = job.choices.size == "custom"
        for field in (self.size_box, self.colours, self.transparent):
            field.setEnabled(not table)
        self.wide.setEnabled(custom and not table)
        self.high.setEnabled(custom and not table)
        self.scale.setEnabled(job.choices.format == "png")
        if not custom:
            for spin, side in zip((self.wide, self.high), job.size, strict=True):
                spin.blockSignals(True)
                spin.setValue(side)
                spin.blockSignals(False)
        self._rename(job)
        self._say("")
        self._redraw.start(60)

    def _on_changed(self, _snapshot: Snapshot, _before: Snapshot) -> None:
        self._on_choice()

    def _rename(self, job: ExportJob) -> None:
        path = FilePath(self.path.text())
        if self._named and path.name:
            # Only an ending of ours makes way: "head 1.4" is a whole name.
            ours = path.suffix.lower().removeprefix(".") in dict(_FORMATS)
            path = path.with_name(f"{path.stem if ours else path.name}.{job.choices.format}")
        else:
            path = FilePath(self._folder) / job.file_name()
        self.path.setText(str(path))
        self.path.setCursorPosition(len(str(path)))

    def _on_named(self) -> None:
        self._named = True
        self._say("")

    def _on_browse(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Export to", self.path.text())
        if path:
            self._named = True
            self._replaces = FilePath(path)  # the file dialog has asked already
            self.path.setText(path)
            chosen = self.format.findData(FilePath(path).suffix.lower().removeprefix("."))
            if chosen >= 0:
                self.format.setCurrentIndex(chosen)
                self._wish_format()

    # --- acting ----------------------------------------------------------------------------------

    def _preview(self) -> None:
        job = self.job()
        try:
            if job.choices.format == "csv":
                table = job.csv()
                lines = table.count("\n") if table else 0
                self.preview.show_picture(None)
                self._say(f"{lines} lines" if table else "", wrong=False)
                self.export_button.setEnabled(table is not None)
                if table is None:
                    self._say(f"{job.what.TITLE} has no table; choose SVG, PDF or PNG")
                return
            figure = job.figure()
            largest = max(figure.width, figure.height)
            self.preview.show_picture(image(figure, min(2.0, 1800 / largest)))
            self.export_button.setEnabled(True)
        except Exception as error:  # noqa: BLE001 - a picture that fails says so here
            self.preview.show_picture(None)
            self.export_button.setEnabled(False)
            self._say(f"{job.what.TITLE} can't be drawn: {error}")

    def _say(self, text: str, wrong: bool = True) -> None:
        self.message.setText(text)
        colours = theme(self._document.snapshot.state.theme)
        tone = ALARM[colours.name] if wrong else colours.muted
        self.message.setStyleSheet(f"color: {tone}")
        mark_wrong(self.path, False)
        self.export_button.setText("Export")

    def export(self) -> None:
        """Write the file. Where that fails say why; the dialog stays as it is."""
        job, path = self.job(), FilePath(self.path.text())
        try:
            path = path.expanduser()
            there = path.exists() and not path.is_dir()
        except (OSError, RuntimeError):  # a name too long, a folder closed to us, an unknown ~user
            there = False
        if there and path != self._replaces:
            self._replaces = path
            self._say(f"{path.name} exists already")
            self.export_button.setText("Replace")
            return
        try:
            job.write(path)
        except CircuitviewError as error:
            self._say(str(error))
            mark_wrong(self.path, True)
            return
        self._replaces = path
        self._folder = str(path.parent)
        self._remember()
        self._say(f"Written: {path}", wrong=False)

    def copy(self) -> None:
        """Put the picture, or the numbers, on the clipboard."""
        try:
            self.job().copy()
        except CircuitviewError as error:
            self._say(str(error))
            return
        self._remember()
        self._say("Copied to the clipboard", wrong=False)

    def _remember(self) -> None:
        chosen = self.choices()
        self._store.change(lambda settings: msgspec.structs.replace(settings, export=chosen))
