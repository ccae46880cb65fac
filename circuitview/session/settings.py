"""What the program remembers from one time to the next: one JSON file, whole or not at all.

For a file that can't be read a line is logged and the defaults are used: a broken setting must
never keep the program from opening. The folder is the platform's place for settings, or
CIRCUITVIEW_CONFIG_DIR where that is set.
"""

import logging
import os
from pathlib import Path as FilePath
from typing import Literal

import msgspec

from circuitview.core.files import write_bytes_whole
from circuitview.core.names import CircuitviewError

log = logging.getLogger(__name__)

FOLDER_VARIABLE = "CIRCUITVIEW_CONFIG_DIR"
_FILE = "settings.json"
_N_RECENT = 8

ThemeChoice = Literal["system", "light", "dark"]


class ExportChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The export dialog's last choices. Folder "" is the home folder; theme "window" is its own."""

    folder: str = ""
    format: Literal["svg", "pdf", "png", "csv"] = "svg"
    size: str = "screen"
    width: int = 1280
    height: int = 720
    scale: float = 2.0
    theme: Literal["window", "light", "dark"] = "window"
    transparent: bool = False


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of a bare weights file that it does not say itself."""

    given: tuple[tuple[str, str], ...] = ()
    tokenizer: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is remembered.

    Attributes:
        model: "" is the default.
        prompt: "" is the default.
        recent: folders and files that were opened, the last one first.
        answers: for bare weights files among them, by their path.
        geometry, docks: the window's place and the panels', as Qt writes them, in base64.
        layout_version: which set of panels `docks` was written for.
    """

    model: str = ""
    prompt: str = ""
    prepend_bos: bool | None = None
    theme: ThemeChoice = "system"
    recent: tuple[str, ...] = ()
    answers: dict[str, Answers] = msgspec.field(default_factory=dict)
    geometry: str = ""
    docks: str = ""
    layout_version: int = 0
    export: ExportChoices = msgspec.field(default_factory=ExportChoices)

    def opened(self, model: str, answers: Answers | None = None) -> "Settings":
        """With `model` as the most recent one, and what was said of it."""
        recent = (model, *(known for known in self.recent if known != model))[:_N_RECENT]
        said = self.answers | ({model: answers} if answers is not None else {})
        kept = {known: said[known] for known in recent if known in said}
        return msgspec.structs.replace(self, recent=recent, answers=kept)

    def without(self, model: str) -> "Settings":
        """With `model` no longer among the recent ones."""
        recent = tuple(known for known in self.recent if known != model)
        kept = {known: answers for known, answers in self.answers.items() if known != model}
        return msgspec.structs.replace(self, recent=recent, answers=kept)


def settings_path() -> FilePath:
    """Where the settings are kept."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return FilePath(chosen) / _FILE
    from platformdirs import user_config_path

    return user_config_path("circuitview", appauthor=False, roaming=True) / _FILE


def read_settings(path: FilePath) -> Settings:
    """The settings in `path`; the defaults where there are none or they can't be read."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        log.warning("settings %s can't be read (%s); using the defaults", path, error.strerror)
        return Settings()
    try:
        return msgspec.json.decode(raw, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log.warning("settings %s are not understood (%s); using the defaults", path, error)
        return Settings()


def write_settings(settings: Settings, path: FilePath) -> None:
    """Keep `settings` in `path`. Where that fails a line is logged: closing must not be held up."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_whole(path, msgspec.json.format(msgspec.json.encode(settings), indent=1))
    except (OSError, CircuitviewError) as error:
        log.warning("settings are not kept: %s", error)
