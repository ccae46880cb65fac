"""circuitview's own bundle: config.json, model.safetensors, tokenizer.json, README.md.

config.json has transformer_lens' field names, the arrays its property names; see layout.py. They
may be stored in float16, bfloat16, float32 or float64 and are widened on load.
"""

from collections.abc import Mapping
from pathlib import Path as FilePath

import msgspec
from safetensors.torch import save_file
from torch import Tensor

from circuitview.core.checkpoint.arrays import StoredArrays
from circuitview.core.checkpoint.layout import check_arrays, plain_names
from circuitview.core.checkpoint.opened import native_model
from circuitview.core.checkpoint.safe_file import read_safe_file
from circuitview.core.config import ModelConfig, read_config
from circuitview.core.files import write_bytes_whole, write_whole
from circuitview.core.formats import CONFIG, TOKENIZER, WEIGHTS
from circuitview.core.model import NativeModel
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import open_tokenizer

CARD = "README.md"
# Fields that a bundle's config.json has only where they say something: most models have no MLPs.
_WHERE_THEY_DIFFER = frozenset(
    {
        *("d_mlp", "act_fn", "gated_mlp", "parallel_attn_mlp", "n_key_value_heads"),
        *("rotary_dim", "rotary_base", "rotary_adjacent_pairs"),
        *("output_logits_soft_cap", "original_architecture"),
    }
)


def open_bundle(folder: FilePath, name: str) -> NativeModel:
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
    arrays = StoredArrays(folder / WEIGHTS, read_safe_file, plain_names)
    stored = check_arrays(arrays, config)
    tokenizer = open_tokenizer(folder / TOKENIZER, config.bos_token_id, config.d_vocab)
    return native_model(name, folder, config, tokenizer, arrays, stored)


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
    config_text = msgspec.json.format(msgspec.json.encode(_fields(config)), indent=1)
    write_bytes_whole(folder / CONFIG, config_text + b"\n")
    write_bytes_whole(folder / TOKENIZER, tokenizer.encode())
    write_bytes_whole(folder / CARD, card.encode())
    whole = {name: array.contiguous() for name, array in arrays.items()}
    write_whole(folder / WEIGHTS, lambda path: save_file(whole, path))


def _fields(config: ModelConfig) -> dict[str, object]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(ModelConfig)}
    return {
        name: value
        for name, value in msgspec.structs.asdict(config).items()
        if name not in _WHERE_THEY_DIFFER or value != defaults[name]
    }
