"""Files are written whole or not at all: to a temporary name beside the target, then renamed."""

import os
from collections.abc import Callable
from pathlib import Path as FilePath

from circuitview.core.names import CircuitviewError


def write_whole(path: FilePath, write: Callable[[FilePath], None]) -> None:
    """Let `write` fill a temporary file, then put it at `path`; on failure `path` is untouched.

    Raises:
        CircuitviewError: where the folder is missing or can't be written to, or what is there is
            no file.
    """
    import tempfile  # slow to load, and not needed before something is written

    try:
        # Through a link to what it stands for: renaming onto it would put a file in its place.
        place = FilePath(os.path.realpath(path))
        require_replaceable(place, path)
        # A short name of its own: the file's may be as long as names can be.
        handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix[-20:], dir=place.parent)
    except (OSError, ValueError) as error:  # the latter: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise CircuitviewError(f"can't write {path}: {reason}; choose another folder") from None
    os.close(handle)
    temporary = FilePath(name)
    try:
        write(temporary)
        # mkstemp makes files for the owner only; what a user exports follows the umask.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(place)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise CircuitviewError(f"can't write {path}: {reason}; choose another folder") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def require_replaceable(place: FilePath, named: FilePath) -> None:
    """Pass only where nothing stands at `place`, or a file: a device or a pipe that is renamed over
    is gone.

    Args:
        named: what the user calls it.

    Raises:
        CircuitviewError: where something else is there.
    """
    if place.is_dir():
        raise CircuitviewError(f"{named} is a folder; name a file in it")
    if place.exists() and not place.is_file():
        raise CircuitviewError(f"{named} is a pipe or a device; name a file")


def write_bytes_whole(path: FilePath, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all."""
    write_whole(path, lambda temporary: _fill(temporary, content))


def _fill(path: FilePath, content: bytes) -> None:
    path.write_bytes(content)


def read_text(path: FilePath | str) -> str:
    """The text of one file, without the mark that may say that it is UTF-8.

    Raises:
        CircuitviewError: where it can't be read as UTF-8 text.
    """
    path = FilePath(path)
    try:
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "a pipe or a device"  # some never end
            raise CircuitviewError(f"{path} is {what}; name a text file")
        return path.read_text(encoding="utf-8-sig")  # some editors put a mark in front
    except OSError as error:
        raise CircuitviewError(f"{path}: {error.strerror or error}; name a text file") from None
    except UnicodeDecodeError:
        raise CircuitviewError(f"{path}: not UTF-8 text; convert it first") from None
    except ValueError:  # a NUL in the name
        raise CircuitviewError(f"{str(path)!r} is no name of a file; name a text file") from None
