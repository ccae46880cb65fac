"""Where the model is that somebody names: with the program, on disk, or in the Hugging Face cache.

Looks at names only and opens nothing, so that a window can ask before torch is loaded. Nothing is
looked for in the network.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Literal

from circuitview.core.bundled import bundled_folder, bundled_names
from circuitview.core.names import CircuitviewError

PlaceKind = Literal["bundled", "folder", "file", "cached"]

GGUF = ".gguf"
# What a state dict may be kept in.
WEIGHTS_ENDINGS = (".safetensors", ".pth", ".pt", ".bin")
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_SNAPSHOT = re.compile(r"models--(.+)")
_LONG = 120  # characters: what can be no name is not repeated whole


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is.

    Attributes:
        kind: what was named.
        path: the folder or file; of a cached model the folder of all its versions.
        name: what to call the model.
    """

    kind: PlaceKind
    path: FilePath
    name: str


def find_place(named: str | FilePath) -> Place:
    """Where the model `named` is: a bundled name wins over a path, a path over a cached name.

    Raises:
        CircuitviewError: where there is none, saying what was looked for.
    """
    text = str(named)
    if text in bundled_names():
        return Place("bundled", bundled_folder(text), text)
    try:
        path = FilePath(named).expanduser()
        found = _on_disk(path)
    except PermissionError as error:
        raise CircuitviewError(
            f"{named}: can't be read ({error.strerror}); ask for access, or copy it"
        ) from None
    except (OSError, RuntimeError, ValueError):  # too long, an unknown ~user, a NUL
        found = None
    if found is not None:
        return found
    cached = cached_versions(text)
    if cached is not None:
        return Place("cached", cached, text)
    shown = text if len(text) <= _LONG else text[:_LONG] + "…"
    raise CircuitviewError(
        f"no bundled model and no folder or file {shown!r}, and none of that name in the Hugging "
        f"Face cache {hub_cache()}; bundled: {', '.join(bundled_names())}"
    )


def _on_disk(path: FilePath) -> Place | None:
    """What there is at `path`, or None.

    Raises:
        CircuitviewError: where it is a link to nothing, or neither file nor folder.
    """
    if not os.path.lexists(path):
        path.stat()  # tells what is missing from what may not be looked at
        return None
    if not path.exists():
        raise CircuitviewError(
            f"{path} is a link to {path.readlink()}, which leads nowhere; mend the link, or name "
            "the model itself"
        )
    if path.is_dir():
        _require_files(path)
        return Place("folder", path, folder_name(path))
    if path.is_file():
        _require_files(path.parent)
        return Place("file", path, path.name)
    raise CircuitviewError(f"{path} is neither a file nor a folder; name a model's folder or file")


def _require_files(folder: FilePath) -> None:
    """Refuse pipes and devices under the names of a model's files: reading one may never end."""
    for path in folder.iterdir():
        if path.suffix.lower() in (".json", GGUF, *WEIGHTS_ENDINGS) and path.exists():
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise CircuitviewError(
                    f"{path} is a pipe or a device, no file; name a folder of files"
                )


def folder_name(folder: FilePath) -> str:
    """What to call the model in `folder`: its own name, or, of a folder in the Hugging Face cache,
    the model's there."""
    whole = folder.resolve()
    if whole.parent.name == "snapshots" and (match := _SNAPSHOT.fullmatch(whole.parents[1].name)):
        return match[1].replace("--", "/")
    return whole.name


def hub_cache() -> FilePath:
    """Where Hugging Face keeps what was downloaded."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if chosen := os.environ.get(variable):
            return FilePath(chosen).expanduser()
    if home := os.environ.get("HF_HOME"):
        return FilePath(home).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return FilePath(cache).expanduser() / "huggingface" / "hub"


def cached_folder(name: str) -> FilePath | None:
    """The folder of the version of the model `name` in the Hugging Face cache that its own program
    would take ("main"), or None where there is none with a config.

    HF_HOME and HF_HUB_CACHE are obeyed at each call; nothing is downloaded.
    """
    versions = cached_versions(name)
    if versions is None:
        return None
    try:
        commit = (versions / "refs" / "main").read_text(encoding="ascii").strip()
        folder = versions / "snapshots" / commit
        return folder if (folder / "config.json").is_file() else None
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def cached_versions(name: str) -> FilePath | None:
    """The folder in the Hugging Face cache with all versions of the model `name`, or None."""
    if not _HUB_NAME.fullmatch(name):
        return None
    try:
        folder = hub_cache() / ("models--" + name.replace("/", "--"))
        return folder if (folder / "snapshots").is_dir() else None
    except (OSError, RuntimeError):
        return None
