"""How much memory a model needs, from the headers of its files, and how much is free.

Weights are widened to the precision asked for whatever a file holds, and stand in memory up to
twice while they are read and folded. Nothing here reads a weight.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import BinaryIO

from circuitview.core.formats import find_format
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.places import GGUF, WEIGHTS_ENDINGS, find_place, folder_name
from circuitview.core.weight_files import SAFE, array_headers, in_halves, weights_of

_FLOAT32 = 4  # bytes
_WHILE_OPENING = 2
# Sizes of the scalar values in a GGUF header, by the number of their type.
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_MOST = 10**7  # entries: a broken header must not keep us counting


class TooLargeError(CircuitviewError):
    """A model that would not fit into what is free."""


@dataclass(frozen=True, slots=True)
class Need:
    """What opening a model takes.

    Attributes:
        name: of the model.
        size: of its weights in `dtype` [bytes]; None where the files don't tell.
        dtype: the precision that it opens in.
        packed: whether it is a GGUF file, whose weights are unpacked first.
    """

    name: str
    size: int | None
    dtype: DtypeName = "float32"
    packed: bool = False

    @property
    def text(self) -> str:
        """The size in words, or ""."""
        return "" if self.size is None else gigabytes(self.size)

    def require_free(self) -> None:
        """Pass only what fits into what is free.

        Raises:
            TooLargeError: with both sizes.
        """
        if self.size is None:
            return
        peak, free = _WHILE_OPENING * self.size, free_memory()
        if peak > free:
            raise TooLargeError(
                f"{self.name} takes {gigabytes(self.size)} of memory in {self.dtype}, "
                f"{gigabytes(peak)} while it opens, and {gigabytes(free)} are free; close other "
                "programs first"
            )


def gigabytes(size: int) -> str:
    """A size in words: "0.54 GB", "43 MB", "3.1 MB"."""
    if size >= 10**8:
        return f"{size / 1e9:.2f} GB" if size < 10**10 else f"{size / 1e9:,.0f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 10**7 else f"{size / 1e6:.1f} MB"


def free_memory() -> int:
    """What programs can still take before the system swaps [bytes]."""
    import psutil

    return int(psutil.virtual_memory().available)


def memory_need(named: str | FilePath, dtype: DtypeName = "float32") -> Need:
    """What opening the model `named` takes in `dtype`, from the headers of its files.

    Models that run by another program are in float32 whatever is asked.

    Raises:
        CircuitviewError: where there is no such model.
    """
    place = find_place(named)
    inside = place.kind == "file" and place.path.suffix.lower() not in (GGUF, *WEIGHTS_ENDINGS)
    name = folder_name(place.path.parent) if inside else place.name
    try:
        found = find_format(place)
        if found.format in ("hugging face", "gguf"):
            dtype = "float32"
        size = sum(map(_float32_size, weights_of(found)))
    except (CircuitviewError, OSError, ValueError, struct.error):
        return Need(name, None)  # opening it will say what is wrong
    return Need(name, size * (2 if dtype == "float64" else 1), dtype, found.format == "gguf")


def _float32_size(path: FilePath) -> int:
    """The float32 size of the arrays in one file [bytes]."""
    if path.suffix == SAFE:
        return _FLOAT32 * sum(math.prod(shape) for _, shape in array_headers(path).values())
    if path.suffix.lower() == GGUF:
        with path.open("rb") as file:
            return _FLOAT32 * sum(_gguf_sizes(file))
    # A pickle tells its shapes only to who reads it.
    return path.stat().st_size * (2 if in_halves(path.parent) else 1)


def _gguf_sizes(file: BinaryIO) -> Iterator[int]:
    """How many numbers each array has. Source: the GGUF specification, versions 2 and 3."""
    magic, version, n_arrays, n_fields = struct.unpack("<4sIQQ", file.read(24))
    if magic != b"GGUF" or version not in (2, 3) or max(n_arrays, n_fields) > _MOST:
        raise ValueError("no GGUF header")
    for _ in range(n_fields):
        _skip_string(file)
        _skip_value(file, _number(file, "<I"))
    for _ in range(n_arrays):
        _skip_string(file)
        axes = _number(file, "<I")
        if axes > 8:
            raise ValueError("no GGUF header")
        yield math.prod(_number(file, "<Q") for _ in range(axes))
        file.seek(12, 1)  # kind of packing, place in the file


def _number(file: BinaryIO, form: str) -> int:
    (number,) = struct.unpack(form, file.read(struct.calcsize(form)))
    return int(number)


def _skip_string(file: BinaryIO) -> None:
    file.seek(_number(file, "<Q"), 1)


def _skip_value(file: BinaryIO, kind: int) -> None:
    if kind == _STRING:
        _skip_string(file)
    elif kind == _ARRAY:
        inner, count = _number(file, "<I"), _number(file, "<Q")
        if inner in _SCALARS:
            file.seek(_SCALARS[inner] * count, 1)
        elif count > _MOST:
            raise ValueError("no GGUF header")
        else:
            for _ in range(count):
                _skip_value(file, inner)
    elif kind in _SCALARS:
        file.seek(_SCALARS[kind], 1)
    else:
        raise ValueError("no GGUF header")
