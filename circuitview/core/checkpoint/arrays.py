"""The arrays of a weights file, read one by one when they are asked for.

Files are mapped into memory, and the mapping is given up again and again on the way through a
model, so that opening one costs its folded weights and little else. Another precision reads the
file anew: it must still be the one that was opened.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from torch import Tensor

from circuitview.core.names import CircuitviewError

# How much is read before the mapping is given up [bytes].
_MAPPED = 2**24


@dataclass(frozen=True, eq=False)
class Reader:
    """An open file.

    Attributes:
        arrays: by stored name.
        loaded: the same where the file had to be read whole, else None: arrays lie in the file
            until they are touched.
    """

    arrays: Mapping[str, Tensor]
    loaded: dict[str, Tensor] | None = None

    def has(self, name: str) -> bool:
        return self.loaded is None or name in self.loaded


@dataclass(frozen=True, eq=False, slots=True)
class Stored:
    """Where an array comes from: a name in the file, and what turns it into the layout's form."""

    name: str
    change: Callable[[Tensor], Tensor] | None = None


class StoredArrays:
    """Arrays of one file under the layout's names. Read-only: they may be the file itself.

    Like a mapping, but none by type: to look at its arrays is to read them.
    """

    def __init__(
        self,
        path: FilePath,
        load: Callable[[FilePath], Reader],
        translate: Callable[[Mapping[str, Tensor]], dict[str, Stored]],
    ) -> None:
        """Open `path` with `load`; `translate` says which arrays it holds.

        Raises:
            CircuitviewError: where `load` does.
        """
        self.path = path
        self._load = load
        self._reader: Reader | None = load(path)
        self._mark = _mark(path)
        self._read = 0
        self._stored = translate(self._reader.arrays)

    def __getitem__(self, name: str) -> Tensor:
        stored = self._stored[name]
        array = self._take(stored.name)
        if stored.change is not None:
            try:
                array = stored.change(array)
            except (RuntimeError, IndexError):
                raise CircuitviewError(
                    f"{self.path}: {stored.name} has shape {list(array.shape)}, which does not "
                    f"give {name}; file and config.json belong to two models"
                ) from None
        return array.detach()

    def _take(self, name: str) -> Tensor:
        """One array as it is stored, nothing kept of it that need not be."""
        if _mark(self.path) != self._mark:
            raise CircuitviewError(f"{self.path}: has changed since it was opened; open it again")
        reader = self._reader
        if reader is None or self._read > _MAPPED or not reader.has(name):
            del reader  # the old file is let go before the new one is there
            reader = self._open_again()
        if reader.loaded is not None:
            return reader.loaded.pop(name)
        array = reader.arrays[name]
        self._read += array.numel() * array.element_size()
        return array

    def _open_again(self) -> Reader:
        self.release()
        self._reader = self._load(self.path)
        return self._reader

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def get(self, name: str) -> Tensor | None:
        if name not in self:
            return None
        return self[name]

    def file(self) -> Mapping[str, Tensor]:
        """The file as it is, buffers and all, under its own names."""
        return self._open_again().arrays

    def release(self) -> None:
        """Give the file up; the next array opens it again."""
        self._reader, self._read = None, 0


def _mark(path: FilePath) -> tuple[int, int] | None:
    """What tells a file from the one that was there before."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
