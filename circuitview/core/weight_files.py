"""Which files hold a model's weights, whole or not, and what their headers say. No weight is read.

Asked by all who open a model and by who counts what it takes, so that both mean the same files. No
torch.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import msgspec
from safetensors import SafetensorError, safe_open

from circuitview.core.formats import WEIGHTS, Found, json_fields, state_dicts
from circuitview.core.names import CircuitviewError

SAFE = ".safetensors"
# In the order in which they are looked for; an index names the files of a model in parts.
_HUGGING_FACE = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
# A training run leaves many files; this is its last.
_FINAL = "model_final.pth"
_LONG = 120  # characters: what can be no name is not repeated whole
_TORCH_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
# Buffers that older versions saved beside the weights, and that no model needs.
BUFFERS = re.compile(
    r"(\.attn\.(masked_)?bias|attention\.(masked_)?bias|rotary_emb\.inv_freq|position_ids)$"
)


def weights_of(found: Found) -> tuple[FilePath, ...]:
    """The files that hold the weights of a model.

    Raises:
        CircuitviewError: where there is none, or one that an index names is missing.
    """
    match found.format:
        case "bundle":
            return (found.path / WEIGHTS,)
        case "legacy":
            return (found.weights or last_state_dict(found.path),)
        case "hugging face":
            return hugging_face_weights(found.path)[1]
    return (found.path,)


def last_state_dict(folder: FilePath) -> FilePath:
    """The only state dict in a folder, or the last of a training run.

    Raises:
        CircuitviewError: where there is none, or none of several is the last.
    """
    files = state_dicts(folder)
    if len(files) == 1:
        return files[0]
    final = [path for path in files if path.name.endswith(_FINAL)]
    if len(final) == 1:
        return final[0]
    if not files:
        raise CircuitviewError(
            f"{folder}: holds no weights; put {_FINAL} there, or one .pth, .pt or .safetensors file"
        )
    names = ", ".join(path.name for path in files[:5]) + (", …" if len(files) > 5 else "")
    raise CircuitviewError(
        f"{folder}: holds {len(files)} weights files ({names}); leave one, or call one {_FINAL}"
    )


def hugging_face_weights(folder: FilePath) -> tuple[FilePath, tuple[FilePath, ...]]:
    """The file that lists or holds the weights of a Hugging Face folder, and the files that hold
    them.

    Raises:
        CircuitviewError: where there is none, or one that the index names is missing.
    """
    first = next((folder / name for name in _HUGGING_FACE if (folder / name).is_file()), None)
    for name in _HUGGING_FACE if first is None else ():
        if (folder / name).is_symlink():
            raise CircuitviewError(
                f"{folder / name}: a link that leads nowhere; copy the file that it stood for"
            )
    if first is None:
        raise CircuitviewError(
            f"{folder}: has no weights (looked for {_HUGGING_FACE[0]} and {_HUGGING_FACE[2]}, "
            "whole or in parts with an index); copy the whole folder"
        )
    if first.suffix != ".json":
        return first, (first,)
    names = read_json(first).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise CircuitviewError(f"{first}: has no weight_map; copy the whole folder again")
    for name in names.values():
        if not isinstance(name, str) or not name or FilePath(name).name != name:
            raise CircuitviewError(
                f"{first}: weight_map names {str(name)[:_LONG]!r}, no file of this folder; copy "
                "the whole folder again"
            )
    files = tuple(folder / name for name in sorted(set(names.values())))
    for file in files:
        if not file.is_file():
            raise CircuitviewError(
                f"{file}: missing, though {first.name} names it; copy the whole folder"
            )
    return first, files


def read_json(path: FilePath) -> dict[str, Any]:
    """The JSON object in a file that a Hugging Face folder can't do without.

    Raises:
        CircuitviewError: where it is missing or no object.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise CircuitviewError(
            f"{path}: {error.strerror}; a Hugging Face folder needs it"
        ) from None
    except (msgspec.MsgspecError, RecursionError) as error:  # the latter: nested without end
        raise CircuitviewError(f"{path}: not a JSON object ({error}); save it again") from None


def array_headers(path: FilePath) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The precision and the shape of each array in a safetensors file, by its name.

    Raises:
        CircuitviewError: where the file is not whole.
    """
    try:
        with safe_open(path, framework="np") as file:
            # safe_open is no mapping: it has keys() but can't be iterated over.
            found = {str(name): file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (str(array.get_dtype()), tuple(array.get_shape()))
                for name, array in found.items()
            }
    except (SafetensorError, OSError) as error:
        raise not_whole(path, error) from None


def not_whole(path: FilePath, error: Exception) -> CircuitviewError:
    """What to say of a safetensors file that can't be read."""
    reason = " ".join(str(error).split())
    return CircuitviewError(
        f"{path}: not a whole safetensors file ({reason}); copy or save it again"
    )


def stored_dtype(files: tuple[FilePath, ...], config: Mapping[str, object]) -> str:
    """The precision that most arrays are stored in, as torch names it. Reads headers only.

    Raises:
        CircuitviewError: where a file is not whole, or holds packed weights.
    """
    kinds: Counter[str] = Counter()
    for file in files:
        if file.suffix != SAFE:
            return str(config.get("dtype") or config.get("torch_dtype") or "float32")
        for name, (dtype, _) in array_headers(file).items():
            if BUFFERS.search(name):
                continue
            kinds[dtype] += 1
            if dtype not in _TORCH_NAMES:
                raise CircuitviewError(
                    f"{file}: {name} is stored as {dtype}: quantised weights, or none, which can't "
                    f"be opened; take the unquantised checkpoint, in {', '.join(_TORCH_NAMES)}"
                )
    if not kinds:
        raise CircuitviewError(f"{files[0]}: holds no arrays; copy or save it again")
    ((most, _),) = kinds.most_common(1)
    return _TORCH_NAMES[most]


def in_halves(folder: FilePath) -> bool:
    """Whether the config beside a pickle says that its arrays are stored in 16 bits."""
    fields = json_fields(folder / "config.json") or {}
    dtype = str(fields.get("dtype") or fields.get("torch_dtype"))
    return dtype.removeprefix("torch.") in ("float16", "bfloat16")
