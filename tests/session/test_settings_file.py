"""The settings file: whole or not at all, and never in the way."""

import logging

import pytest

from circuitview.session.settings import (
    FOLDER_VARIABLE,
    ExportChoices,
    Settings,
    read_settings,
    settings_path,
    write_settings,
)


def test_settings_round_trip(tmp_path):
    kept = Settings(
        model="attn-only-1l",
        prompt="a\nb ␣ é",
        prepend_bos=False,
        theme="dark",
        recent=("/one", "/two"),
        geometry="AAAA",
        export=ExportChoices(format="png", width=640, transparent=True),
    )
    path = tmp_path / "folder" / "settings.json"
    write_settings(kept, path)
    assert read_settings(path) == kept
    assert [found.name for found in path.parent.iterdir()] == ["settings.json"]


def test_missing_file_is_the_defaults(tmp_path):
    assert read_settings(tmp_path / "none.json") == Settings()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"theme": "purple"}', b'{"recent": 3}', b"\xff\xfe\x00"]
)
def test_file_that_is_not_understood_is_ignored_with_a_line(tmp_path, caplog, content):
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert read_settings(path) == Settings()
    assert str(path) in caplog.text


def test_unknown_fields_of_a_later_version_are_ignored(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"prompt": "I like", "invented": {"later": 1}}')
    assert read_settings(path).prompt == "I like"


def test_settings_nested_without_end_give_the_defaults(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"export":' * 100_000)
    assert read_settings(path) == Settings()


def test_unwritable_folder_is_logged(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        write_settings(Settings(), tmp_path / "file" / "settings.json")
    assert "not kept" in caplog.text


def test_recent_folders_have_the_last_first_once_and_are_few():
    settings = Settings()
    for number in range(12):
        settings = settings.opened(f"/{number}")
    settings = settings.opened("/8")
    assert settings.recent[:2] == ("/8", "/11")
    assert len(settings.recent) == 8
    assert "/8" not in settings.without("/8").recent


def test_folder_can_be_redirected(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert settings_path() == tmp_path / "settings.json"
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert settings_path().parent.name == "circuitview"
