"""circuitview's own bundle: config.json, model.safetensors, tokenizer.json, README.md.

Arrays carry transformer_lens' property names (embed.W_E, blocks.0.attn.W_Q, …) and its shapes. They
may be stored in float16, bfloat16, float32 or float64 and are widened on load. Biases may be
missing, and the norms' gains too where normalization_type says they are folded (LNPre, RMSPre).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from circuitview.core.config import ModelConfig, read_config
from circuitview.core.files import write_bytes_whole, write_whole
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import open_tokenizer
from circuitview.core.weights import fold

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
CARD = "README.md"

_STORED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Buffers that transformer_lens saves beside its weights; the forward pass does not need them.
_BUFFERS = (".attn.mask", ".attn.IGNORE")


def recognises(folder: FilePath) -> bool:
    return (folder / WEIGHTS).is_file()


def open_bundle(folder: FilePath, name: str) -> Model:
    """The model in `folder`.

    Raises:
        CircuitviewError: naming the file, what is wrong with it and the remedy.
    """
    path = folder / CONFIG
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CircuitviewError(
            f"{path}: {error.strerror}; a bundle needs its config.json"
        ) from None
    config = read_config(raw, str(path))
    arrays = _read_arrays(folder / WEIGHTS, config)
    tokenizer = open_tokenizer(folder / TOKENIZER, config.bos_token_id, config.d_vocab)
    return Model(name, folder, config, tokenizer, fold(config, arrays))


def _read_arrays(path: FilePath, config: ModelConfig) -> dict[str, Tensor]:
    arrays: dict[str, Tensor] = {}
    try:
        with safe_open(path, framework="pt") as file:
            # safe_open is no mapping: it has keys() but can't be iterated over.
            present = [name for name in file.keys() if not name.endswith(_BUFFERS)]  # noqa: SIM118
            if config.n_layers > len(present):  # else a wrong number fills the memory with names
                raise CircuitviewError(
                    f"{path}: holds {len(present)} arrays, config.json asks for {config.n_layers} "
                    "layers; save the whole model or mend config.json"
                )
            shapes = {name: (shape, needed) for name, shape, needed in _layout(config)}
            unknown = sorted(set(present) - set(shapes))
            if unknown:
                raise CircuitviewError(
                    f"{path}: holds {unknown[0]}, which an attention-only model of this config "
                    "does not have; check config.json"
                )
            for name in present:
                # Shape first: a wrong file should not be read into memory.
                shape, expected = tuple(file.get_slice(name).get_shape()), shapes[name][0]
                if shape != expected:
                    raise CircuitviewError(
                        f"{path}: {name} has shape {list(shape)}, config.json asks for "
                        f"{list(expected)}; one of the two belongs to another model"
                    )
                arrays[name] = file.get_tensor(name)
    except (SafetensorError, OSError) as error:
        reason = " ".join(str(error).split())
        raise CircuitviewError(
            f"{path}: not a whole safetensors file ({reason}); copy or save it again"
        ) from None
    for name, (_, needed) in shapes.items():
        if needed and name not in arrays:
            raise CircuitviewError(f"{path}: {name} is missing; save the whole model")
    for name, array in arrays.items():
        if array.dtype not in _STORED:
            raise CircuitviewError(f"{path}: {name} is {array.dtype}; store floating-point weights")
        if not bool(array.isfinite().all()):
            raise CircuitviewError(
                f"{path}: {name} holds NaN or infinity; the training run went wrong, use an "
                "earlier checkpoint"
            )
    return arrays


def _layout(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Name, shape and whether it must be there, for each array that a bundle may hold."""
    D, H, dh, V = config.d_model, config.n_heads, config.d_head, config.d_vocab
    gains = config.normalization_type in ("LN", "RMS")
    norms = [("ln_final", D)] + [(f"blocks.{layer}.ln1", D) for layer in range(config.n_layers)]
    yield "embed.W_E", (V, D), True
    if config.positional_embedding_type in ("standard", "shortformer"):
        yield "pos_embed.W_pos", (config.n_ctx, D), True
    for layer in range(config.n_layers):
        attention = f"blocks.{layer}.attn."
        for kind in "QKV":
            yield f"{attention}W_{kind}", (H, D, dh), True
            yield f"{attention}b_{kind}", (H, dh), False
        yield f"{attention}W_O", (H, dh, D), True
        yield f"{attention}b_O", (D,), False
    if gains:
        for norm, width in norms:
            yield f"{norm}.w", (width,), True
            if config.norm == "LN":
                yield f"{norm}.b", (width,), False
    yield "unembed.W_U", (D, V), True
    yield "unembed.b_U", (V,), False


def write_bundle(
    folder: FilePath,
    config: ModelConfig,
    arrays: Mapping[str, Tensor],
    tokenizer: str,
    card: str,
) -> None:
    """Write a bundle to `folder`, each file whole or not at all, the weights last.

    Args:
        folder: made where it is missing.
        config: sizes and kinds.
        arrays: under the bundle's names, in the dtype to store.
        tokenizer: the content of tokenizer.json.
        card: the content of README.md.

    Raises:
        CircuitviewError: where the folder can't be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CircuitviewError(
            f"can't make {folder}: {error.strerror or error}; choose another folder"
        ) from None
    config_text = msgspec.json.format(msgspec.json.encode(config), indent=1)
    write_bytes_whole(folder / CONFIG, config_text + b"\n")
    write_bytes_whole(folder / TOKENIZER, tokenizer.encode())
    write_bytes_whole(folder / CARD, card.encode())
    whole = {name: array.contiguous() for name, array in arrays.items()}
    write_whole(folder / WEIGHTS, lambda path: save_file(whole, path))
