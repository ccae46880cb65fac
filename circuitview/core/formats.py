"""In which format a model on disk is kept: one place that decides, for all who open or count it.

Names and config.json are looked at and nothing else, so that this can be asked before torch is
loaded. transformer_lens' folders and Hugging Face's share field names (MPT and DBRX have n_layers
and d_model too): a config that names a class or a family is Hugging Face's, unless it has what only
transformer_lens writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Literal

import msgspec

from circuitview.core.config import decode_fields
from circuitview.core.names import CircuitviewError
from circuitview.core.places import GGUF, WEIGHTS_ENDINGS, Place, cached_folder

Format = Literal["bundle", "legacy", "hugging face", "gguf", "state dict"]
Program = Literal["hugging face", "transformer_lens"]

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
# What a legacy folder may keep its weights in.
STATE_DICTS = WEIGHTS_ENDINGS
_PARTS = ("model", "pytorch_model")  # how the weights in a Hugging Face folder are called
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A model on disk.

    Attributes:
        format: how it is kept.
        path: the folder or file to open.
        weights: the one of several weights files that was named, or None.
    """

    format: Format
    path: FilePath
    weights: FilePath | None = None


def json_fields(path: FilePath) -> dict[str, object] | None:
    """The JSON object in a file, or None where there is none: for what may do without it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    except (OSError, msgspec.MsgspecError, RecursionError):  # the last: nested without end
        return None


def program_of(fields: Mapping[str, object] | None) -> Program | None:
    """Whose config.json has these fields; None where it is nobody's."""
    if fields is None:
        return None
    named = "architectures" in fields or "model_type" in fields
    sized = {"n_layers", "d_model"} <= set(fields)
    own = "d_head" in fields or "original_architecture" in fields
    if named and not (sized and own):
        return "hugging face"
    return "transformer_lens" if sized else None


def find_format(place: Place) -> Found:
    """The format of what is at a place, and what to open.

    Raises:
        CircuitviewError: where no model is there, saying what is.
    """
    match place.kind:
        case "bundled":
            return Found("bundle", place.path)
        case "cached":
            folder = cached_folder(place.name)
            if folder is None:
                raise CircuitviewError(
                    f"{place.name}: the Hugging Face cache has no whole version of it in "
                    f"{place.path}; copy the model's folder to this computer and open that"
                )
            return _of_folder(folder)
        case "folder":
            return _of_folder(place.path)
    return _of_file(place.path)


def format_of_folder(folder: FilePath) -> Format | None:
    """The format of a folder, or None where it holds no one model."""
    program = program_of(json_fields(folder / CONFIG))
    if program == "hugging face":
        return "hugging face"
    if (folder / WEIGHTS).is_file():
        return "bundle"
    if program == "transformer_lens" and state_dicts(folder):
        return "legacy"
    return None


def state_dicts(folder: FilePath) -> list[FilePath]:
    """The files in a folder that may be state dicts."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in STATE_DICTS)
    except OSError:
        return []


def _of_folder(folder: FilePath) -> Found:
    found = format_of_folder(folder)
    if found is not None:
        return Found(found, folder)
    names = sorted(path.name for path in folder.iterdir())
    ggufs = [name for name in names if name.lower().endswith(GGUF)]
    if len(ggufs) == 1:
        return Found("gguf", folder / ggufs[0])
    raise _no_model(folder, names, ggufs)


def _of_file(path: FilePath) -> Found:
    if path.suffix.lower() == GGUF:
        return Found("gguf", path)
    folder, weights = path.parent, path.suffix in WEIGHTS_ENDINGS
    beside = format_of_folder(folder)
    if path.suffix == ".json" or (weights and path.name == WEIGHTS):
        if beside is not None:
            return Found(beside, folder)
    elif weights and beside == "legacy":
        return Found("legacy", folder, path)
    elif weights and beside == "hugging face" and path.name.startswith(_PARTS):
        return Found("hugging face", folder)
    if weights:
        return Found("state dict", path)
    raise CircuitviewError(
        f"{path} is a file that holds no model; name a folder, or a file that ends in "
        f"{', '.join((GGUF, *WEIGHTS_ENDINGS))}"
    )


def _no_model(folder: FilePath, names: list[str], ggufs: list[str]) -> CircuitviewError:
    wanted = (
        f"name a folder with {CONFIG}, {WEIGHTS} and {TOKENIZER}, as circuitview and Hugging Face "
        "keep them"
    )
    if not names:
        return CircuitviewError(f"{folder} is empty; {wanted}")
    if ggufs:
        return CircuitviewError(
            f"{folder} holds {len(ggufs)} GGUF files; name one: {', '.join(ggufs[:_SHOWN])}"
        )
    weights = [name for name in names if name.endswith(WEIGHTS_ENDINGS)]
    if weights and CONFIG not in names:
        return CircuitviewError(
            f"{folder} holds {weights[0]} and no {CONFIG}; copy the whole folder, or open the file "
            "by itself"
        )
    if CONFIG in names:
        return _bad_config(folder, weights, wanted)
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return CircuitviewError(f"{folder} holds no model, but {shown}; {wanted}")


def _bad_config(folder: FilePath, weights: list[str], wanted: str) -> CircuitviewError:
    path = folder / CONFIG
    try:
        fields = decode_fields(path.read_bytes(), str(path))
    except CircuitviewError as error:
        return error
    if not weights:
        return CircuitviewError(f"{folder} has no {WEIGHTS}; {wanted}")
    missing = "n_layers" if "d_model" in fields else "n_layers, architectures or model_type"
    return CircuitviewError(
        f"{path}: has no {missing}, so that its program can't be told; export the model again"
    )
