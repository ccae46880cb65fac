"""Whether a config asks for the arrays that its files hold, found out before any is made.

One wrong number in a config.json may ask for more memory than there is. So the model is first built
bare, in shapes only (torch's meta device), and these are compared with those in the files' headers.
"""

import math
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import torch

from circuitview.core.checkpoint.layout import DTYPES
from circuitview.core.checkpoint.pickles import read_pickle
from circuitview.core.formats import CONFIG
from circuitview.core.memory import gigabytes
from circuitview.core.names import CircuitviewError
from circuitview.core.weight_files import BUFFERS, SAFE, array_headers

Shape = tuple[int, ...]

# Tables and masks that a model makes by itself, beside the size of its files [bytes]: GPT-Neo's
# masks of 24 layers and 2,048 tokens are 100 MB.
_TABLES = 2**27


def require_tables(model: Any, hf_config: Any, held: int, where: str) -> None:
    """Pass only a model whose own tables (masks, angles) are of a sane size.

    Args:
        model: a bare one.
        hf_config: its config.
        held: the size of its files [bytes].
        where: the checkpoint, for the message.

    Raises:
        CircuitviewError: naming the field that the largest table is made by.
    """
    tables = [buffer for _, buffer in model.named_buffers()]
    size = sum(buffer.numel() * buffer.element_size() for buffer in tables)
    if size <= held + _TABLES:
        return
    longest = max(max(tables, key=torch.numel).shape)
    fields = hf_config.to_dict()
    field = next((name for name, value in fields.items() if value == longest), "a size")
    raise CircuitviewError(
        f"{where}: {field} is {longest}, for which the model would make tables of "
        f"{gigabytes(size)}; mend the file or copy it again"
    )


def require_shapes(model: Any, listed: FilePath, files: tuple[FilePath, ...]) -> None:
    """Pass only a model whose parameters the files hold, each of its shape.

    What a family keeps under other names (experts, each by itself) is compared by its size, summed.

    Args:
        model: a bare one.
        listed: the file that holds or lists its weights, for messages.
        files: those that hold them.

    Raises:
        CircuitviewError: naming the first array of another shape, or one that is missing or no
            floating-point array.
    """
    held = _shapes(files)
    prefix = f"{model.base_model_prefix}."
    left: dict[str, Shape] = {}
    for name, parameter in model.named_parameters():
        wanted, bare = tuple(parameter.shape), name.removeprefix(prefix)
        stored = next((key for key in (name, bare, prefix + name) if key in held), None)
        if stored is None:
            left[name] = wanted
        elif (found := held.pop(stored)) != wanted:
            raise CircuitviewError(
                f"{listed}: {stored} has shape {list(found)}, {CONFIG} asks for {list(wanted)}; "
                "one of the two belongs to another model"
            )
    rest = sum(math.prod(shape) for name, shape in held.items() if not BUFFERS.search(name))
    if sum(map(math.prod, left.values())) <= rest:
        return
    largest = max(left, key=lambda name: math.prod(left[name]))
    if not held:
        raise CircuitviewError(f"{listed}: {largest} is missing; save the whole model")
    raise CircuitviewError(
        f"{listed}: {CONFIG} asks for {largest} of shape {list(left[largest])}, more than is left "
        "in the file; one of the two belongs to another model"
    )


def require_numbers(model: Any, n_numbers: int, file: FilePath) -> None:
    """Pass only a model that asks for no more numbers than a GGUF file, whose names are others,
    holds.

    Raises:
        CircuitviewError: with both.
    """
    wanted = sum(parameter.numel() for parameter in model.parameters())
    if wanted > n_numbers:
        raise CircuitviewError(
            f"{file}: asks for {wanted:,} numbers and holds {n_numbers:,}; copy it again"
        )


def _shapes(files: tuple[FilePath, ...]) -> dict[str, Shape]:
    found: dict[str, Shape] = {}
    for file in files:
        if file.suffix == SAFE:
            found.update({name: shape for name, (_, shape) in array_headers(file).items()})
        else:
            arrays: Mapping[str, torch.Tensor] = read_pickle(file).arrays
            for name, array in arrays.items():
                if array.dtype not in DTYPES and not BUFFERS.search(name):
                    raise CircuitviewError(
                        f"{file}: {name} is stored as {array.dtype}: quantised weights, or none, "
                        "which can't be opened; take the unquantised checkpoint"
                    )
                found[name] = tuple(array.shape)
    return found
