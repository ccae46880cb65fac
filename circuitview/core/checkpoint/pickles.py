"""State dicts that torch.save wrote: .pth, .pt, .bin.

Such a file is a pickle, which could run code when it is read. Only torch's restricted reader is
used, which makes tensors and plain containers and nothing else; a file that asks for more is
refused.
"""

import pickle
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import torch
from torch import Tensor

from circuitview.core.checkpoint.arrays import Reader
from circuitview.core.names import CircuitviewError

# Where training programs put the state dict among other things.
_NESTED = ("state_dict", "model_state_dict", "model")
# What wrappers put in front of every name.
_PREFIXES = ("module.", "_orig_mod.", "model.")
_ZIP = b"PK\x03\x04"
_GROWTH = 2  # times a file's own size
_LONG = 120  # characters: what can be no name is not repeated whole
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")


def read_pickle(path: FilePath) -> Reader:
    """The tensors of a state dict, unwrapped from what training programs put around it.

    Nothing in the file is executed. A file in torch's newer (zip) form stays where it is until an
    array is touched.

    Raises:
        CircuitviewError: where the file can't be read, is cut off, is something else, or asks for
            Python objects other than tensors.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_ZIP))
    except OSError as error:
        raise CircuitviewError(
            f"{path}: {error.strerror or error}; name a file that torch.save wrote"
        ) from None
    if not start:
        raise CircuitviewError(f"{path}: is empty; copy or save it again")
    mapped = start == _ZIP
    if mapped:
        _require_plain_zip(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is said below, once
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except MemoryError:
        raise CircuitviewError(f"{path}: does not fit into memory; close other programs") from None
    except Exception as error:  # noqa: BLE001  (a broken file raises nearly anything)
        raise CircuitviewError(f"{path}: {_reason(error, mapped)}") from None
    found = _tensors(content, path)
    return Reader(found, None if mapped else found)


def _require_plain_zip(path: FilePath) -> None:
    """Refuse an archive that grows when it is read, which may fill the memory, and packed arrays,
    which torch would map into memory as they are. What torch.save writes is stored unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # torch says what is wrong with it
    whole = sum(part.file_size for part in parts)
    packed = any(
        part.compress_type != zipfile.ZIP_STORED
        for part in parts
        if part.filename.endswith("data.pkl") or "/data/" in part.filename
    )
    if packed or whole > _GROWTH * path.stat().st_size:
        raise CircuitviewError(
            f"{path}: a packed zip file, {whole / 1e6:.3g} MB once it is unpacked, which "
            "torch.save does not write; copy or save it again"
        )


def _reason(error: Exception, mapped: bool) -> str:
    """Why torch would not read a file, and what helps."""
    text = " ".join(str(error).split())
    if "TorchScript" in text:
        return (
            "holds a TorchScript program, which could run code; save its weights with "
            "torch.save(model.state_dict())"
        )
    if isinstance(error, pickle.UnpicklingError) and (found := _GLOBAL.search(text)):
        return (
            f"holds Python objects other than tensors ({found[1]}), which could run code; save its "
            "state dict with safetensors or torch.save(model.state_dict())"
        )
    if isinstance(error, pickle.UnpicklingError) and "Unsupported operand" in text:
        return (
            "a pickle that torch.save did not write, which could run code; save its state dict "
            "with safetensors or torch.save(model.state_dict())"
        )
    if mapped:
        return "a zip file that torch.save did not write, or that is cut off; copy or save it again"
    return "no file that torch.save wrote, or cut off; copy or save it again"


def _tensors(content: Any, path: FilePath) -> dict[str, Tensor]:
    for name in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping):
        raise CircuitviewError(
            f"{path}: holds a {type(content).__name__}, no state dict; "
            "save torch.save(model.state_dict())"
        )
    found = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    for name, array in found.items():
        if array.is_meta:
            raise CircuitviewError(
                f"{path}: {name[:_LONG]} has a shape and no numbers (a meta tensor); save the "
                "model once its weights are loaded"
            )
    if not found:
        raise CircuitviewError(f"{path}: holds no tensors; save torch.save(model.state_dict())")
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in found):
            found = {name.removeprefix(prefix): value for name, value in found.items()}
    return found
