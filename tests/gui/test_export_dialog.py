"""The export dialog: every format, sizes, what fails and is told."""

import pytest
from PySide6.QtGui import QGuiApplication, QImage

from circuitview.session.settings import read_settings
from tests.gui.conftest import PROMPT


@pytest.fixture
def dialog(window, tmp_path):
    window.export("diagram")
    made = window._dialog
    choose(made, path=tmp_path / "picture.svg")
    yield made
    if window._dialog is not None:
        window._dialog.close()


def choose(dialog, path=None, **choices):
    boxes = {
        "what": dialog.what,
        "format": dialog.format,
        "size": dialog.size_box,
        "scale": dialog.scale,
        "theme": dialog.colours,
    }
    for name, key in choices.items():
        boxes[name].setCurrentIndex(boxes[name].findData(key))
        boxes[name].activated.emit(boxes[name].currentIndex())
    if path is not None:
        dialog.path.setText(str(path))
        dialog.path.textEdited.emit(str(path))


@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_diagram_is_written_in_each_format(dialog, tmp_path, kind, start):
    choose(dialog, format=kind, size="slide")
    dialog.export()
    path = tmp_path / f"picture.{kind}"
    assert path.read_bytes().startswith(start)
    assert str(path) in dialog.message.text()


@pytest.mark.parametrize(
    "typed", ["", "/", ".", "..", "~nobody/x.svg", "n" * 300 + ".svg", "a\0.svg"]
)
def test_a_path_that_can_hold_no_file_is_said_and_survives_a_change_of_format(dialog, typed):
    choose(dialog, path=typed)
    dialog.export()
    assert dialog.message.text()
    assert "Written" not in dialog.message.text()
    choose(dialog, format="pdf")
    assert dialog.path.text().endswith("pdf")


def test_a_name_with_a_point_is_kept_whole_when_the_format_changes(dialog, tmp_path):
    choose(dialog, path=tmp_path / "head 1.4")
    choose(dialog, format="pdf")
    assert dialog.path.text() == str(tmp_path / "head 1.4.pdf")
    choose(dialog, format="png")
    assert dialog.path.text() == str(tmp_path / "head 1.4.png")


def test_size_theme_and_scale_are_those_chosen(dialog, tmp_path):
    choose(dialog, format="png", size="slide", theme="dark", scale=1.0)
    dialog.export()
    picture = QImage(str(tmp_path / "picture.png"))
    assert (picture.width(), picture.height()) == (1280, 720)
    assert picture.pixelColor(2, 2).lightness() < 60


def test_transparent_picture_has_no_ground(dialog, tmp_path):
    choose(dialog, format="png", size="slide")
    dialog.transparent.setChecked(True)
    dialog.export()
    assert QImage(str(tmp_path / "picture.png")).pixelColor(2, 2).alpha() == 0


def test_custom_size_is_asked_for_in_its_fields(dialog):
    assert not dialog.wide.isEnabled()
    choose(dialog, size="custom")
    dialog.wide.setValue(640)
    dialog.high.setValue(400)
    assert dialog.job().size == (640, 400)
    choose(dialog, size="full-hd")
    assert (dialog.wide.value(), dialog.high.value()) == (1920, 1080)


def test_table_is_written_as_csv_and_refused_where_there_is_none(qtbot, dialog, tmp_path):
    choose(dialog, what="counting", format="csv")
    dialog.export()
    assert (tmp_path / "picture.csv").read_text() == f"prompt\n{PROMPT}\n"
    choose(dialog, what="silent", format="csv", path=tmp_path / "none.csv")
    qtbot.waitUntil(lambda: "no table" in dialog.message.text())
    dialog.export()
    assert "no table" in dialog.message.text()
    assert not (tmp_path / "none.csv").exists()


def test_unwritable_path_is_told_and_nothing_is_lost(dialog, tmp_path):
    choose(dialog, path=tmp_path / "no such folder" / "picture.svg")
    dialog.export()
    assert "can't write" in dialog.message.text()
    assert dialog.path.property("wrong")
    assert dialog.isVisible()
    choose(dialog, path=tmp_path / "picture.svg")
    dialog.export()
    assert (tmp_path / "picture.svg").exists()


def test_existing_file_is_replaced_only_when_asked_twice(dialog, tmp_path):
    path = tmp_path / "picture.svg"
    path.write_text("mine")
    dialog.export()
    assert path.read_text() == "mine"
    assert "exists" in dialog.message.text()
    assert dialog.export_button.text() == "Replace"
    dialog.export()
    assert path.read_text().startswith("<?xml")


def test_picture_goes_to_the_clipboard_as_raster_and_drawing(dialog):
    dialog.copy()
    content = QGuiApplication.clipboard().mimeData()
    assert content.hasImage()
    assert bytes(content.data("image/svg+xml").data()).startswith(b"<?xml")


def test_choices_come_back(dialog, window, tmp_path):
    choose(dialog, format="pdf", size="full-hd", theme="dark")
    dialog.export()
    dialog.close()
    window.export("silent")
    again = window._dialog
    assert again.what.currentData() == "silent"
    assert again.choices().format == "pdf"
    assert again.choices().size == "full-hd"
    assert again.choices().theme == "dark"
    assert again.path.text() == str(tmp_path / "i-like-green-tea-so-silent.pdf")
    assert read_settings(window.store.path).export.format == "pdf"


def test_preview_shows_the_picture_and_says_where_drawing_fails(qtbot, dialog, window, monkeypatch):
    qtbot.waitUntil(lambda: dialog.preview._picture is not None)
    panel = window.host.docks["silent"].panel

    def fail(*_):
        raise ZeroDivisionError("no room")

    monkeypatch.setattr(panel, "figure", fail)
    choose(dialog, what="silent")
    qtbot.waitUntil(lambda: "no room" in dialog.message.text())
    assert not dialog.export_button.isEnabled()
    dialog.grab()


def test_copy_picture_in_the_menu_takes_the_diagram_as_on_screen(window):
    window.menus.actions_by_name["Copy picture"].trigger()
    assert QGuiApplication.clipboard().mimeData().hasImage()


def test_a_panel_without_a_table_is_offered_as_a_drawing_though_numbers_were_written_last(
    window, dialog, tmp_path
):
    choose(dialog, what="counting", format="csv", path=tmp_path / "numbers.csv")
    dialog.export()
    dialog.close()
    window.export("silent")
    again = window._dialog
    assert again.format.currentData() == "svg"
    assert again.job().file_name().endswith("silent.svg")
    choose(again, what="counting")
    assert again.format.currentData() == "csv"  # here it can be had
    choose(again, what="diagram")
    assert again.format.currentData() == "svg"
    again.close()
