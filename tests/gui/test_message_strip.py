"""The strip over the picture: what has failed, until the same has succeeded."""

from functools import partial

import pytest

from tests.gui.conftest import WAIT


def refuse():
    raise OSError("no room")


def write(qtbot, document, path, does):
    document.files.write(path, does)
    qtbot.waitUntil(lambda: not document.files._waiting, timeout=WAIT)


def test_a_saved_file_takes_the_failure_of_the_last_one_away(qtbot, window, document, tmp_path):
    strip = window.message_strip
    write(qtbot, document, tmp_path / "a", refuse)
    assert strip.isVisible()
    write(qtbot, document, tmp_path / "b", partial((tmp_path / "b").write_text, "x"))
    assert not strip.isVisible()
    assert window.statusBar().currentMessage().startswith("Saved to")


def test_a_success_in_the_status_line_gives_way_to_a_newer_failure(
    qtbot, window, document, tmp_path
):
    """ "Saved to …" stood beside the reason why something could not be saved."""
    write(qtbot, document, tmp_path / "b", partial((tmp_path / "b").write_text, "x"))
    assert window.statusBar().currentMessage()
    write(qtbot, document, tmp_path / "a", refuse)
    assert not window.statusBar().currentMessage()


def test_only_after_a_failed_analysis_the_last_one_stays(qtbot, window, document, tmp_path):
    strip = window.message_strip
    write(qtbot, document, tmp_path / "a", refuse)
    assert "last good analysis" not in strip.text.text()
    with qtbot.waitSignal(document.changed, timeout=WAIT):
        document.edit(lambda state: state.with_model("no-such-model"))
    assert "last good analysis stays" in strip.text.text()


@pytest.mark.parametrize(("act", "gone"), [("run or file", True), ("other", False)])
def test_a_success_of_another_kind_leaves_the_failure(window, document, act, gone):
    document.report("it can't be done", act="run or file")
    document.settle(act)
    assert (document.snapshot.failure is None) == gone
    document.report("the analysis can't be done", act="analysis")
    document.settle("run or file")
    assert document.snapshot.failure == "the analysis can't be done"
