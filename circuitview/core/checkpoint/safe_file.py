"""safetensors files."""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from circuitview.core.checkpoint.arrays import Reader
from circuitview.core.weight_files import not_whole


class _SafeArrays(Mapping[str, Tensor]):
    """The arrays of an open safetensors file; each lies in the file until it is touched."""

    def __init__(self, path: FilePath) -> None:
        self._path = path
        try:
            # No mapping by itself: it has keys() but can't be iterated over.
            file: Any = safe_open(path, framework="pt")
            self._file, self._names = file, tuple(str(name) for name in file.keys())  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise not_whole(path, error) from None

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        try:
            array: Tensor = self._file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise not_whole(self._path, error) from None
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_safe_file(path: FilePath) -> Reader:
    """The arrays of a safetensors file.

    Raises:
        CircuitviewError: where it can't be read or is no such file.
    """
    return Reader(_SafeArrays(path))
