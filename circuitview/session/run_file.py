"""Runs on disk: a folder with run.json, all that was asked and found, and values.safetensors, the
number of each case.

A run is written whole or not at all, and never in the place of another: what is kept is a record.
It is read back equal bit by bit, and nothing in its files is believed: every field has its type,
every array its shape, and the arrays are those that run.json was written with.
"""

import hashlib
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path as FilePath
from typing import Any

import msgspec
import numpy as np

from circuitview.core.names import CircuitviewError
from circuitview.session.lab import Question, Run, located
from circuitview.session.run_checks import require_facts, require_numbers, require_rows
from circuitview.session.run_fields import (
    Mark,
    Numbers,
    SavedRun,
    one_line,
    question_type,
    saved_number,
    saved_row,
    table_of,
)

_RUN, _VALUES = "run.json", "values.safetensors"
_FORMAT = 1
_LARGEST = 1 << 28  # bytes of a run.json that is read; a million rows take less
_AGAIN = "save the run again"


def save_run(run: Run, folder: FilePath | str) -> None:
    """Keep `run` in a new folder, whole or not at all.

    Files that its question names are named by their whole path, so that it can be repeated from
    another folder; nothing else changes.

    Raises:
        CircuitviewError: where something is there already, or it can't be written.
    """
    import tempfile

    from safetensors.numpy import save

    folder = FilePath(folder)
    require_new(folder)
    arrays = {
        "clean_values": np.ascontiguousarray(run.table.clean_values, np.float64),
        "values": np.ascontiguousarray(run.table.values, np.float64),
    }
    values = save(arrays)
    try:
        temporary = FilePath(tempfile.mkdtemp(prefix=".run-", dir=folder.absolute().parent))
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from None
    try:
        _write(temporary / _VALUES, values)
        _write(temporary / _RUN, _encoded(run, hashlib.sha256(values).hexdigest()))
        # mkdtemp makes folders for the owner only; what a user saves follows the umask.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        require_new(folder)  # once more: a run takes its time
        temporary.rename(folder)
    except (OSError, ValueError) as error:  # the latter: a NUL in the name
        raise _unwritable(folder, error) from None
    finally:  # after the rename there is nothing left to remove
        shutil.rmtree(temporary, ignore_errors=True)


def require_new(folder: FilePath | str) -> None:
    """Pass only a place where a run can be saved: nothing is there, in a folder that is.

    Raises:
        CircuitviewError: with the reason.
    """
    folder = FilePath(folder)
    if folder == FilePath():  # what an empty text becomes
        raise CircuitviewError("no folder is named to save to; name a new one, like run")
    try:
        if os.path.lexists(folder):
            raise CircuitviewError(
                f"{folder} is there already; name a new folder, or delete it first"
            )
        if not folder.absolute().parent.is_dir():
            raise CircuitviewError(
                f"can't save to {folder}: there is no folder {folder.parent}; make it first"
            )
    except (OSError, ValueError) as error:  # the latter: a NUL in the name
        raise _unwritable(folder, error) from None


def _unwritable(folder: FilePath, error: Exception) -> CircuitviewError:
    reason = getattr(error, "strerror", None) or str(error)
    return CircuitviewError(f"can't save to {folder}: {reason}; choose another folder")


def _write(path: FilePath, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # or a crash after the rename could leave an empty file


def _encoded(run: Run, digest: str) -> bytes:
    table, question = run.table, located(run.question)
    saved = SavedRun(
        circuitview_run=_FORMAT,
        version=run.version,
        question={field.name: getattr(question, field.name) for field in fields(Question)},
        model_name=one_line(run.model_name),  # a folder's name may be of two
        model_hash=run.model_hash,
        data_hash=run.data_hash,
        donor_hash=run.donor_hash,
        n_tokens=run.n_tokens,
        n_cases=run.n_cases,
        target=run.target,
        seconds=saved_number(run.seconds),
        soft_cap=run.soft_cap,
        metric=table.metric,
        frozen=table.frozen,
        clean=saved_number(table.clean),
        rows=tuple(saved_row(row) for row in table.rows),
        values_sha256=digest,
        threads=run.threads,
    )
    return msgspec.json.format(msgspec.json.encode(saved), indent=1) + b"\n"


def open_run(folder: FilePath | str) -> Run:
    """The run that is kept in `folder`, or beside the run.json that is named.

    Raises:
        CircuitviewError: naming the file and what to do, where it is no run, not whole, changed, or
            of another version.
    """
    folder = FilePath(folder)
    if folder.name == _RUN:
        folder = folder.parent
    path = folder / _RUN
    raw = _bytes_of(path)
    saved = _decoded(path, raw)
    question = _question(path, saved.question)
    clean_values, values = _arrays(folder / _VALUES, saved)
    try:
        require_facts(saved, question)
        table = table_of(saved, clean_values, values)
        require_numbers(saved, clean_values, values)
        require_rows(table, question)
    except CircuitviewError as error:
        raise CircuitviewError(f"{path}: {error}; {_AGAIN}") from None
    return Run(
        question=_as_it_was_cut(question, saved),
        table=table,
        model_name=saved.model_name,
        model_hash=saved.model_hash,
        data_hash=saved.data_hash,
        donor_hash=saved.donor_hash,
        n_tokens=saved.n_tokens,
        n_cases=saved.n_cases,
        target=saved.target,
        version=saved.version,
        seconds=float(saved.seconds),
        soft_cap=None if saved.soft_cap is None else float(saved.soft_cap),
        threads=saved.threads,
    )


def _as_it_was_cut(question: Question, saved: SavedRun) -> Question:
    """`question` with the length that its windows had: once a longer one was cut without a word,
    and now it is refused."""
    each, over = divmod(saved.n_tokens, saved.n_cases)
    cut = question.text and question.length is not None and each < question.length and not over
    return replace(question, length=each) if cut else question


def _bytes_of(path: FilePath) -> bytes:
    try:
        if not path.is_file():  # a pipe might never end
            raise CircuitviewError(f"{path}: no such file; name the folder of a saved run")
        if path.name == _RUN and path.stat().st_size > _LARGEST:
            raise CircuitviewError(f"{path}: too large for a run; name the folder of a saved run")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CircuitviewError(
            f"{path}: can't be read ({reason}); name the folder of a saved run"
        ) from None


def _decoded(path: FilePath, raw: bytes) -> SavedRun:
    try:
        mark = msgspec.json.decode(raw, type=Mark)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CircuitviewError(f"{path}: no run of this program ({_reason(error)})") from None
    if mark.circuitview_run != _FORMAT:
        raise CircuitviewError(
            f"{path}: written in format {mark.circuitview_run}, this program reads {_FORMAT}; "
            "open it with the version that wrote it"
        )
    try:
        return msgspec.json.decode(raw, type=SavedRun)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CircuitviewError(f"{path}: damaged ({_reason(error)}); {_AGAIN}") from None


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _question(path: FilePath, given: dict[str, Any]) -> Question:
    try:
        checked = msgspec.convert(given, type=question_type())
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CircuitviewError(f"{path}: question: {_reason(error)}; {_AGAIN}") from None
    return Question(**{field.name: getattr(checked, field.name) for field in fields(Question)})


def _arrays(path: FilePath, saved: SavedRun) -> tuple[Numbers, Numbers]:
    """The clean value of each case, and each row's."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    raw = _bytes_of(path)
    if hashlib.sha256(raw).hexdigest() != saved.values_sha256:
        raise CircuitviewError(
            f"{path}: not the numbers that {_RUN} was saved with (truncated, changed, or of "
            f"another run); {_AGAIN}"
        )
    try:
        arrays = load(raw)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CircuitviewError(
            f"{path}: not a whole safetensors file ({_reason(error)}); {_AGAIN}"
        ) from None
    shapes = {"clean_values": (saved.n_cases,), "values": (len(saved.rows), saved.n_cases)}
    if set(arrays) != set(shapes):
        raise CircuitviewError(
            f"{path}: holds {', '.join(sorted(arrays)) or 'nothing'}, not clean_values and values; "
            f"{_AGAIN}"
        )
    for name, shape in shapes.items():
        found = arrays[name]
        if found.shape != shape or found.dtype != np.float64:
            raise CircuitviewError(
                f"{path}: {name} is {found.dtype} {list(found.shape)}, {_RUN} says float64 "
                f"{list(shape)}; {_AGAIN}"
            )
    return arrays["clean_values"], arrays["values"]
