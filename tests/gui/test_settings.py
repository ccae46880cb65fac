"""What comes back next time."""

import logging

import pytest

from circuitview.gui.app import Asked, first_state
from circuitview.gui.settings_store import SettingsStore
from circuitview.session.settings import Settings, read_settings
from tests.gui.conftest import MODEL, PROMPT, ask


def test_prompt_model_theme_and_layout_come_back(qtbot, make_window, document, store, tmp_path):
    window = make_window()
    ask(qtbot, document, lambda state: state.with_prompt("I like green"))
    window.choose_theme("dark")
    window.resize(900, 700)  # the screen of the tests is 800 pixels wide
    window.host.docks["silent"].hide()
    window.close()
    kept = read_settings(tmp_path / "settings.json")
    assert (kept.model, kept.prompt, kept.theme) == (MODEL, "I like green", "dark")
    window.host.docks["silent"].show()
    window.store = SettingsStore(tmp_path / "settings.json")
    window._restore()
    assert window.host.docks["silent"].isHidden()
    assert not window.host.docks["counting"].isHidden()
    assert window.height() == 700


def test_first_state_is_that_of_last_time_unless_told_otherwise():
    last = Settings(model=MODEL, prompt="I like", prepend_bos=False)
    state = first_state(last)
    assert (state.model, state.prompt, state.prepend_bos) == (MODEL, "I like", False)
    assert first_state(last, Asked("cat-on-the-mat", "the cat")).prompt == "the cat"
    assert first_state(last, Asked("cat-on-the-mat", "the cat")).prepend_bos is None
    assert first_state(last, Asked("cat-on-the-mat", "")).prompt == ""  # asked for, be it wrong
    assert first_state(Settings()).prompt


def test_relative_folder_is_kept_in_full():
    assert first_state(Settings(), Asked("some/folder")).model.startswith("/")


def test_failed_state_is_not_what_comes_back(qtbot, make_window, document, store):
    window = make_window()
    ask(qtbot, document, lambda state: state.with_prompt("unknown words"))
    window.close()
    assert store.settings.prompt == PROMPT


@pytest.mark.parametrize("docks", ["", "not base64!", "AAAA"])
def test_damaged_layout_falls_back_to_the_first_one(make_window, store, docks):
    store.change(lambda settings: Settings(docks=docks, geometry=docks, layout_version=1))
    window = make_window(begun=False)
    assert all(not dock.isHidden() for dock in window.host.docks.values())


def test_unwritable_settings_do_not_keep_the_window_from_closing(
    make_window, store, tmp_path, caplog
):
    window = make_window(begun=False)
    store.path = tmp_path / "settings.json" / "inside a file"
    (tmp_path / "settings.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert window.close()
    assert "not kept" in caplog.text
