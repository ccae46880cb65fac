"""Checkpoint formats, one file each; open_model picks the one that a model is kept in.

bundle: circuitview's own folders. legacy: transformer_lens' older ones. state_dict: a bare weights
file. bridge: Hugging Face folders and GGUF files, which need transformers; loaded only for them.
"""

from collections.abc import Mapping
from pathlib import Path as FilePath

from circuitview.core.answers import NUMBERS
from circuitview.core.checkpoint import bundle
from circuitview.core.device import require_device
from circuitview.core.formats import find_format
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.places import Place, cached_folder, find_place, folder_name

__all__ = ["needs_answers", "open_model"]


def open_model(
    name_or_path: str | FilePath,
    device: str = "cpu",
    given: Mapping[str, str] | None = None,
    tokenizer: str | FilePath | None = None,
    dtype: DtypeName = "float32",
    checked: bool = True,
) -> Model:
    """The bundled model of that name, the model at that path, or that of the Hugging Face cache,
    checked: it does what the sums take for granted.

    A bundled name wins over a path, a path over a cached name. A file of a whole model's folder
    opens the folder. Nothing is fetched from the network, and no code in a file is run.

    Args:
        name_or_path: a name, a folder, a .gguf file, or a bare state dict.
        device: "cpu", "cuda" or "mps"; models that this program runs itself stay on the CPU.
        given: for a bare state dict, what it does not say of its config.
        tokenizer: for a bare state dict or a transformer_lens folder, a tokenizer.json, or
            "numbers" to type tokens as their numbers.
        dtype: the precision to check; a model that can't run in it is checked in the one it runs
            in.
        checked: whether to check it; who passes False does so before a path is shown.

    Raises:
        CircuitviewError: where there is no such model, it can't be opened, or its paths would not
            be exact: one line.
    """
    require_device(device)
    place = find_place(name_or_path)
    try:
        opened = _open(place, device, dict(given or {}), tokenizer)
        if not checked:
            return opened
        from circuitview.core.check import require_exact

        return require_exact(opened, dtype)
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
    found = find_format(place)
    kind, path = found.format, found.path
    if kind != "state dict" and given:
        raise CircuitviewError(
            f"{path}: says {next(iter(given))} itself; leave the given config away"
        )
    if kind not in ("state dict", "legacy") and tokenizer is not None:
        raise CircuitviewError(f"{path}: has a tokenizer of its own; leave the given one away")
    if tokenizer is not None and tokenizer != NUMBERS:
        tokenizer = _expanded(FilePath(tokenizer))
    name = place.name if place.kind in ("bundled", "cached") else folder_name(path)
    if kind == "bundle":  # without what only other formats need
        return bundle.open_bundle(path, name)
    from circuitview.core.checkpoint import bridge, legacy, state_dict

    match kind:
        case "legacy":
            return legacy.open_legacy(path, name, cached_folder, tokenizer, found.weights)
        case "state dict":
            if tokenizer is not None:
                given["tokenizer"] = str(tokenizer)
            return state_dict.open_state_dict(path, given)
        case "gguf":
            return bridge.open_gguf(path, name, device)
    return bridge.open_folder(path, name, device)


def _expanded(path: FilePath) -> FilePath:
    try:
        return path.expanduser()
    except RuntimeError:  # nobody of that name
        raise CircuitviewError(f"{path}: no such folder; name a tokenizer.json") from None


def needs_answers(name_or_path: str | FilePath) -> bool:
    """Whether a model is a bare state dict, which leaves questions open.

    Raises:
        CircuitviewError: where there is no such model.
    """
    place = find_place(name_or_path)
    return place.kind == "file" and find_format(place).format == "state dict"
