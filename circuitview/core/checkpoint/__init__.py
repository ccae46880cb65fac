"""Checkpoint formats, one file each; open_model picks the one that a folder is in."""

from pathlib import Path as FilePath

from circuitview.core.bundled import bundled_folder, bundled_names
from circuitview.core.checkpoint import bundle
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError

__all__ = ["open_model"]


def open_model(name_or_folder: str | FilePath) -> Model:
    """The bundled model of that name, or the model in that folder. A name wins over a folder.

    Raises:
        CircuitviewError: where there is neither, or the folder holds no model that can be opened.
    """
    if str(name_or_folder) in bundled_names():
        name = str(name_or_folder)
        return bundle.open_bundle(bundled_folder(name), name)
    try:
        folder = FilePath(name_or_folder).expanduser()
        exists = folder.exists()
    except (OSError, RuntimeError, ValueError):  # too long, not to be read, an unknown ~user
        exists = False
    if not exists:
        raise CircuitviewError(
            f"no bundled model and no folder {str(name_or_folder)!r}; "
            f"bundled: {', '.join(bundled_names())}"
        )
    if not folder.is_dir():
        raise CircuitviewError(f"{folder} is a file; name the folder that holds it")
    if not bundle.recognises(folder):
        raise CircuitviewError(
            f"{folder} has no {bundle.WEIGHTS}; name a folder with {bundle.CONFIG}, "
            f"{bundle.WEIGHTS} and {bundle.TOKENIZER}"
        )
    return bundle.open_bundle(folder, folder.resolve().name)
