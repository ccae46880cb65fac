"""The models that come with the program. Reads folder names only, so that a menu costs nothing."""

from functools import cache
from pathlib import Path as FilePath

from circuitview.resources import resource

DEFAULT_MODEL = "attn-only-2l"
# Induction carries the prediction here, and other paths still matter.
DEFAULT_PROMPT = "I like green tea, so I drink green"


@cache
def bundled_names() -> tuple[str, ...]:
    """The names of the bundled models, the default first."""
    folders = (path.parent.name for path in resource("models").glob("*/config.json"))
    return tuple(sorted(folders, key=lambda name: (name != DEFAULT_MODEL, name)))


def bundled_folder(name: str) -> FilePath:
    return resource("models", name)
