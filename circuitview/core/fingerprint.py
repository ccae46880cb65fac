"""Hashes that tell whether a run was of the same model and the same tokens."""

import hashlib
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path as FilePath

from circuitview.core.formats import find_format
from circuitview.core.names import CircuitviewError
from circuitview.core.places import find_place
from circuitview.core.progress import Progress
from circuitview.core.weight_files import weights_of

_BLOCK = 1 << 26  # bytes (64 MB), read in some tens of milliseconds
_MOST = 16  # models whose hashes are remembered

_Files = tuple[tuple[FilePath, int, int], ...]
_known: dict[_Files, str] = {}


def hash_of_model(named: str) -> Generator[Progress, None, str]:
    """The SHA-256 of a model's weight files, one after the other, as hexadecimal digits.

    Yields between blocks of 64 MB; its partial result says what is being done, as a text. Read
    once for each state of the files. Cost: reading them, about a second a gigabyte. Of a model in
    one file it is what any program says of that file.

    Args:
        named: a bundled name, a path, or a name in the Hugging Face cache, as open_model takes it.

    Raises:
        CircuitviewError: where no model is there any more.
    """
    paths = weights_of(find_format(find_place(named)))
    try:
        files = tuple((path, *_state(path)) for path in paths)
        if files not in _known:
            made = yield from _hash(files)
            while len(_known) >= _MOST:
                del _known[next(iter(_known))]
            _known[files] = made
        return _known[files]
    except OSError as error:
        raise CircuitviewError(
            f"{error.filename or named}: {error.strerror or error}; open the model again"
        ) from None


def hash_of_text(text: str) -> str:
    """The SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_tokens(prompts: Iterable[Sequence[int]]) -> str:
    """The SHA-256 of token ids, prompt by prompt, as hexadecimal digits."""
    digest = hashlib.sha256()
    for ids in prompts:
        digest.update((" ".join(map(str, ids)) + "\n").encode())
    return digest.hexdigest()


def _state(path: FilePath) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _hash(files: _Files) -> Generator[Progress, None, str]:
    digest = hashlib.sha256()
    total = sum(-(-size // _BLOCK) for _, size, _ in files)
    done = 0
    for path, _, _ in files:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                done += 1
                if done < total:
                    yield Progress(done, total, "reading the weight files")
    return digest.hexdigest()
