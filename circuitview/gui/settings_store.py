"""The one holder of the settings while the program runs."""

from collections.abc import Callable
from pathlib import Path as FilePath

from circuitview.session.settings import Settings, read_settings, settings_path, write_settings


class SettingsStore:
    """Reads once, writes on every change: a crash loses nothing."""

    def __init__(self, path: FilePath | None = None) -> None:
        self.path = path or settings_path()
        self.settings = read_settings(self.path)

    def change(self, change: Callable[[Settings], Settings]) -> None:
        """Keep `change` of the settings, on disk too."""
        changed = change(self.settings)
        if changed != self.settings:
            self.settings = changed
            write_settings(changed, self.path)
