"""Hashes that tell whether a run was of the same model and the same tokens."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path as FilePath

from circuitview.core.formats import find_format
from circuitview.core.names import CircuitviewError
from circuitview.core.places import find_place
from circuitview.core.weight_files import weights_of

_BLOCK = 1 << 22


def hash_of_model(named: str) -> str:
    """The SHA-256 of a model's weight files, one after the other, as hexadecimal digits.

    Read once for each state of the files. Cost: reading them, about a second a gigabyte. Of a model
    in one file it is what any program says of that file.

    Args:
        named: a bundled name, a path, or a name in the Hugging Face cache, as open_model takes it.

    Raises:
        CircuitviewError: where no model is there any more.
    """
    files = weights_of(find_format(find_place(named)))
    try:
        return _hash(tuple((path, *_state(path)) for path in files))
    except OSError as error:
        raise CircuitviewError(
            f"{error.filename or named}: {error.strerror or error}; open the model again"
        ) from None


def hash_of_tokens(prompts: Iterable[Sequence[int]]) -> str:
    """The SHA-256 of token ids, prompt by prompt, as hexadecimal digits."""
    digest = hashlib.sha256()
    for ids in prompts:
        digest.update((" ".join(map(str, ids)) + "\n").encode())
    return digest.hexdigest()


def _state(path: FilePath) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=16)
def _hash(files: tuple[tuple[FilePath, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in files:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
