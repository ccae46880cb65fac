"""Checkpoint formats, one file each; open_model picks the one that a model is kept in.

bundle: circuitview's own folders. legacy: transformer_lens' older ones. state_dict: a bare weights
file. bridge: Hugging Face folders and GGUF files, which need transformers; loaded only for them.
"""

from collections.abc import Mapping
from pathlib import Path as FilePath

from circuitview.core.checkpoint import bundle
from circuitview.core.device import require_device
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError
from circuitview.core.places import GGUF, WEIGHTS_ENDINGS, Place, find_place, folder_name

__all__ = ["needs_answers", "open_model"]

_PARTS = ("model", "pytorch_model")  # how the weights in a Hugging Face folder are called
_NUMBERS = "numbers"
_SHOWN = 5


def open_model(
    name_or_path: str | FilePath,
    device: str = "cpu",
    given: Mapping[str, str] | None = None,
    tokenizer: str | FilePath | None = None,
) -> Model:
    """The bundled model of that name, the model at that path, or that of the Hugging Face cache.

    A bundled name wins over a path, a path over a cached name. A file of a whole model's folder
    opens the folder. Nothing is fetched from the network, and no code in a file is run.

    Args:
        name_or_path: a name, a folder, a .gguf file, or a bare state dict.
        device: "cpu", "cuda" or "mps"; models that this program runs itself stay on the CPU.
        given: for a bare state dict, what it does not say of its config.
        tokenizer: for a bare state dict or a transformer_lens folder, a tokenizer.json, or
            "numbers" to type tokens as their numbers.

    Raises:
        CircuitviewError: where there is no such model, or it can't be opened: one line.
    """
    require_device(device)
    place = find_place(name_or_path)
    try:
        return _open(place, device, dict(given or {}), tokenizer)
    except OSError as error:  # what changed or was forbidden while it was read
        raise CircuitviewError(
            f"{error.filename or place.path}: {error.strerror or error}; check the file, or copy "
            "it again"
        ) from None
    except MemoryError:
        raise CircuitviewError(
            f"{place.path}: does not fit into memory; close other programs, or open a smaller model"
        ) from None


def _open(
    place: Place, device: str, given: dict[str, str], tokenizer: str | FilePath | None
) -> Model:
    kind, path = _format(place)
    if kind != "state dict" and given:
        raise CircuitviewError(
            f"{path}: says {next(iter(given))} itself; leave the given config away"
        )
    if kind not in ("state dict", "legacy") and tokenizer is not None:
        raise CircuitviewError(f"{path}: has a tokenizer of its own; leave the given one away")
    if tokenizer is not None and tokenizer != _NUMBERS:
        tokenizer = FilePath(tokenizer).expanduser()
    name = place.name if place.kind in ("bundled", "cached") else folder_name(path)
    if kind == "bundle":  # without what only other formats need
        return bundle.open_bundle(path, name)
    from circuitview.core.checkpoint import bridge, legacy, state_dict

    match kind:
        case "legacy":
            whole = place.kind == "folder" or place.path.suffix not in WEIGHTS_ENDINGS
            weights = None if whole else place.path
            return legacy.open_legacy(path, name, bridge.cached_folder, tokenizer, weights)
        case "state dict":
            if tokenizer is not None:
                given["tokenizer"] = str(tokenizer)
            return state_dict.open_state_dict(path, given)
        case "gguf":
            return bridge.open_gguf(path, name, device)
    return bridge.open_folder(path, name, device)


def _format(place: Place) -> tuple[str, FilePath]:
    """The format of what is at a place, and the folder or file to open."""
    match place.kind:
        case "bundled":
            return "bundle", place.path
        case "cached":
            from circuitview.core.checkpoint import bridge

            folder = bridge.cached_folder(place.name)
            if folder is None:
                raise CircuitviewError(
                    f"{place.name}: the Hugging Face cache has no whole version of it in "
                    f"{place.path}; copy the model's folder to this computer and open that"
                )
            return "hugging face", folder
        case "folder":
            return _format_of_folder(place.path)
    return _format_of_file(place.path)


def _format_of_folder(folder: FilePath) -> tuple[str, FilePath]:
    if bundle.recognises(folder):
        return "bundle", folder
    from circuitview.core.checkpoint import bridge, legacy

    if legacy.recognises(folder):
        return "legacy", folder
    if bridge.recognises(folder):
        return "hugging face", folder
    names = sorted(path.name for path in folder.iterdir())
    ggufs = [name for name in names if name.endswith(GGUF)]
    if len(ggufs) == 1:
        return "gguf", folder / ggufs[0]
    raise _no_model(folder, names, ggufs)


def _format_of_file(path: FilePath) -> tuple[str, FilePath]:
    from circuitview.core.checkpoint import bridge, legacy

    if path.suffix == GGUF:
        return "gguf", path
    folder, weights = path.parent, path.suffix in WEIGHTS_ENDINGS
    if path.suffix == ".json" or (weights and path.name == bundle.WEIGHTS):
        if bundle.recognises(folder) or bridge.recognises(folder) or legacy.recognises(folder):
            return _format_of_folder(folder)
    elif weights and legacy.recognises(folder):
        return "legacy", folder
    elif weights and path.name.startswith(_PARTS) and bridge.recognises(folder):
        return "hugging face", folder
    if weights:
        return "state dict", path
    raise CircuitviewError(
        f"{path} is a file that holds no model; name a folder, or a file that ends in "
        f"{', '.join((GGUF, *WEIGHTS_ENDINGS))}"
    )


def needs_answers(name_or_path: str | FilePath) -> bool:
    """Whether a model is a bare state dict, which leaves questions open.

    Raises:
        CircuitviewError: where there is no such model.
    """
    place = find_place(name_or_path)
    return place.kind == "file" and _format_of_file(place.path)[0] == "state dict"


def _no_model(folder: FilePath, names: list[str], ggufs: list[str]) -> CircuitviewError:
    wanted = (
        f"name a folder with {bundle.CONFIG}, {bundle.WEIGHTS} and {bundle.TOKENIZER}, as "
        "circuitview and Hugging Face keep them"
    )
    if not names:
        return CircuitviewError(f"{folder} is empty; {wanted}")
    if ggufs:
        return CircuitviewError(
            f"{folder} holds {len(ggufs)} GGUF files; name one: {', '.join(ggufs[:_SHOWN])}"
        )
    weights = [name for name in names if name.endswith(WEIGHTS_ENDINGS)]
    if weights and bundle.CONFIG not in names:
        return CircuitviewError(
            f"{folder} holds {weights[0]} and no {bundle.CONFIG}; copy the whole folder, or open "
            "the file by itself"
        )
    if bundle.CONFIG in names:
        return _bad_config(folder, weights, wanted)
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return CircuitviewError(f"{folder} holds no model, but {shown}; {wanted}")


def _bad_config(folder: FilePath, weights: list[str], wanted: str) -> CircuitviewError:
    from circuitview.core.config import decode_fields

    path = folder / bundle.CONFIG
    try:
        fields = decode_fields(path.read_bytes(), str(path))
    except CircuitviewError as error:
        return error
    if not weights:
        return CircuitviewError(f"{folder} has no {bundle.WEIGHTS}; {wanted}")
    missing = "n_layers" if "d_model" in fields else "n_layers, architectures or model_type"
    return CircuitviewError(
        f"{path}: has no {missing}, so that its program can't be told; export the model again"
    )
