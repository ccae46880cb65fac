"""The weight files of a Hugging Face folder: which there are, whole or not, and in what precision.

Looked at before the model is built, so that what is wrong is said with a file's name.
"""

from collections import Counter
from pathlib import Path as FilePath
from typing import Any

import msgspec
from safetensors import SafetensorError, safe_open

from circuitview.core.names import CircuitviewError

CONFIG = "config.json"
# In the order in which they are looked for; an index names the files of a model in parts.
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_TORCH_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_PACKED = ("F8", "F4", "I4", "U4", "F6")


def read_json(path: FilePath) -> dict[str, Any]:
    """The JSON object in a file.

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


def weight_files(folder: FilePath) -> tuple[FilePath, tuple[FilePath, ...]]:
    """The file that lists or holds the weights, and the files that hold them.

    Raises:
        CircuitviewError: where there is none, or one that the index names is missing.
    """
    first = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    for name in _WEIGHTS if first is None else ():
        if (folder / name).is_symlink():
            raise CircuitviewError(
                f"{folder / name}: a link that leads nowhere; copy the file that it stood for"
            )
    if first is None:
        raise CircuitviewError(
            f"{folder}: has no weights (looked for {_WEIGHTS[0]} and {_WEIGHTS[2]}, whole or in "
            "parts with an index); copy the whole folder"
        )
    if first.suffix != ".json":
        return first, (first,)
    names = read_json(first).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise CircuitviewError(f"{first}: has no weight_map; copy the whole folder again")
    files = tuple(folder / str(name) for name in sorted(set(names.values())))
    for file in files:
        if not file.is_file():
            raise CircuitviewError(
                f"{file}: missing, though {first.name} names it; copy the whole folder"
            )
    return first, files


def stored_dtype(files: tuple[FilePath, ...], config: dict[str, Any]) -> str:
    """The precision that most arrays are stored in, as torch names it. Reads headers only.

    Raises:
        CircuitviewError: where a file is not whole, or holds packed weights.
    """
    kinds: Counter[str] = Counter()
    for file in files:
        if file.suffix != ".safetensors":
            return str(config.get("dtype") or config.get("torch_dtype") or "float32")
        try:
            with safe_open(file, framework="pt") as arrays:
                # safe_open is no mapping: it has keys() but can't be iterated over.
                for name in arrays.keys():  # noqa: SIM118
                    dtype = str(arrays.get_slice(name).get_dtype())
                    kinds[dtype] += 1
                    if dtype.startswith(_PACKED):
                        raise CircuitviewError(
                            f"{file}: {name} is stored as {dtype}, quantised weights, which can't "
                            "be opened; take the unquantised checkpoint"
                        )
        except (SafetensorError, OSError) as error:
            reason = " ".join(str(error).split())
            raise CircuitviewError(
                f"{file}: not a whole safetensors file ({reason}); copy or save it again"
            ) from None
    if not kinds:
        raise CircuitviewError(f"{files[0]}: holds no arrays; copy or save it again")
    ((most, _),) = kinds.most_common(1)
    return _TORCH_NAMES.get(most, most)
