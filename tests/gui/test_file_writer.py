"""Files are written in the worker, told when they are there, and never lost by closing."""

import threading
from functools import partial

import pytest

from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress
from tests.gui.conftest import WAIT


def refuse():
    raise CircuitviewError("/full/disk: no room; choose another folder")


def stumble():
    raise ZeroDivisionError("oh")


def hold(jobs):
    """Keep the worker in one step until the event that is returned is set."""
    entered, leave = threading.Event(), threading.Event()

    def steps():
        yield Progress(0, 1)
        entered.set()
        leave.wait(20)

    jobs.start(steps)
    assert entered.wait(20)
    return leave


def test_a_file_is_written_off_the_main_thread_and_told(qtbot, document, tmp_path):
    path, threads = tmp_path / "run", []

    def write():
        threads.append(threading.current_thread())
        path.write_text("whole", encoding="utf-8")

    with qtbot.waitSignal(document.told, timeout=WAIT) as told:
        document.files.write(path, write)
    assert told.args == [f"Saved to {path}"]
    assert path.read_text(encoding="utf-8") == "whole"
    assert threads != [threading.main_thread()]


@pytest.mark.parametrize(
    ("write", "says"), [(refuse, "/full/disk: no room"), (stumble, "ZeroDivisionError: oh")]
)
def test_what_can_not_be_written_is_told_in_the_strip(qtbot, document, tmp_path, write, says):
    told = []
    document.told.connect(told.append)
    document.files.write(tmp_path / "run", write)
    qtbot.waitUntil(lambda: document.snapshot.failure is not None, timeout=WAIT)
    assert says in document.snapshot.failure
    assert told == []


def test_closing_writes_what_still_waits(qtbot, window, document, tmp_path):
    path, wrote = tmp_path / "run", []
    leave = hold(document.jobs)
    document.files.write(path, partial(wrote.append, path))
    assert wrote == []
    threading.Timer(0.2, leave.set).start()  # the step that runs has an end
    assert window.close()
    assert wrote == [path]  # and once


def test_a_window_with_a_file_that_can_not_be_written_stays(qtbot, window, document, tmp_path):
    leave = hold(document.jobs)
    document.files.write(tmp_path / "run", refuse)
    assert not window.close()
    assert window.isVisible()
    assert "/full/disk" in window.message_strip.text.text()
    leave.set()
    qtbot.waitUntil(lambda: not document.jobs.busy, timeout=WAIT)
    assert window.close()  # it has been told, and is not asked for again


def test_confirmations_stand_in_the_status_line(window, document):
    document.tell("Saved to /a/run")
    assert window.statusBar().currentMessage() == "Saved to /a/run"
    window.menus.actions_by_name["Copy numbers"].trigger()
    assert "numbers of Counting are on the clipboard" in window.statusBar().currentMessage()
    window.menus.actions_by_name["Copy balance"].trigger()
    assert "balance" in window.statusBar().currentMessage()
    window.menus.actions_by_name["Copy picture"].trigger()
    assert "diagram" in window.statusBar().currentMessage()
