"""Folders as transformer_lens wrote them before version 4: its config.json and one state dict.

The attention-only, GELU and SoLU models that its teaching material uses, and what users trained
with HookedTransformer. Field names are those of its config, older ones included. The tokenizer is
named there, not contained: tokenizer.json is looked for in the folder, then where the caller
knows.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath

import msgspec

from circuitview.core.checkpoint.arrays import StoredArrays
from circuitview.core.checkpoint.layout import check_arrays
from circuitview.core.checkpoint.number_tokens import NUMBERS, number_tokenizer
from circuitview.core.checkpoint.old_layouts import translate
from circuitview.core.checkpoint.opened import native_model
from circuitview.core.checkpoint.pickles import read_pickle
from circuitview.core.checkpoint.prompt_start import find_bos
from circuitview.core.checkpoint.safe_file import read_safe_file
from circuitview.core.checkpoint.shapes import derive
from circuitview.core.config import ModelConfig, config_of, decode_fields
from circuitview.core.formats import CONFIG, TOKENIZER
from circuitview.core.model import NativeModel
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import Tokenizer, open_tokenizer
from circuitview.core.weight_files import SAFE, last_state_dict

TokenizerFolder = Callable[[str], FilePath | None]


def open_legacy(
    folder: FilePath,
    name: str,
    tokenizer_folder: TokenizerFolder | None = None,
    tokenizer: FilePath | str | None = None,
    weights: FilePath | None = None,
) -> NativeModel:
    """The model in `folder`.

    Args:
        folder: holds config.json and a state dict.
        name: what to call it.
        tokenizer_folder: the folder on this machine of a tokenizer that config.json names, or None
            where there is none.
        tokenizer: another tokenizer.json, or "numbers" to type tokens as their numbers.
        weights: which of several files to open; None takes the only one, or the last of a run.

    Raises:
        CircuitviewError: naming the file, what is wrong with it and the remedy.
    """
    path = folder / CONFIG
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CircuitviewError(
            f"{path}: {error.strerror}; a transformer_lens folder needs its config.json"
        ) from None
    fields = decode_fields(raw, str(path))
    n_heads = fields.get("n_heads")
    file = weights or last_state_dict(folder)
    arrays = open_arrays(file, n_heads if isinstance(n_heads, int) else None)
    config = config_of(_modern(fields, arrays, path), str(path))
    stored = check_arrays(arrays, config)
    found = _tokenizer(folder, fields, config, tokenizer_folder, tokenizer)
    config = msgspec.structs.replace(config, bos_token_id=found.bos_token_id)
    return native_model(name, folder, config, found, arrays, stored)


def open_arrays(path: FilePath, n_heads: int | None = None) -> StoredArrays:
    """The arrays of a state dict in the property layout, or one of the older ones.

    Args:
        path: a pickle of torch's, or a safetensors file.
        n_heads: for layouts whose arrays don't say.

    Raises:
        CircuitviewError: where it can't be read.
    """
    load = read_safe_file if path.suffix == SAFE else read_pickle
    return StoredArrays(path, load, partial(translate, n_heads=n_heads))


def _modern(fields: dict[str, object], arrays: StoredArrays, path: FilePath) -> dict[str, object]:
    """The fields under today's names; sizes that are not given are taken from the arrays."""
    found = dict(fields)
    if "normalization" in found:
        found.setdefault("normalization_type", found.pop("normalization"))
    if found.pop("shortformer_pos", False):
        found["positional_embedding_type"] = "shortformer"
    if found.get("positional_embedding_type") is None:
        found["positional_embedding_type"] = "standard"
    # transformer_lens writes -1 for what it works out itself.
    for name in ("n_heads", "d_vocab", "d_mlp"):
        if found.get(name) in (-1, None):
            found.pop(name, None)
    for name, value in derive(arrays).items():
        found.setdefault(name, value)
    if "normalization_type" not in found:
        raise CircuitviewError(
            f"{path}: does not say normalization_type, and {arrays.path.name} has no norms' gains; "
            "add LNPre, RMSPre or null"
        )
    return found


def _tokenizer(
    folder: FilePath,
    fields: dict[str, object],
    config: ModelConfig,
    tokenizer_folder: TokenizerFolder | None,
    given: FilePath | str | None,
) -> Tokenizer:
    if given == NUMBERS:
        return number_tokenizer(config.d_vocab, config.bos_token_id)
    named = fields.get("tokenizer_name")
    path = folder / TOKENIZER if given is None else FilePath(given)
    if given is None and not path.is_file() and isinstance(named, str) and tokenizer_folder:
        elsewhere = tokenizer_folder(named)
        path = path if elsewhere is None else elsewhere / TOKENIZER
    if not path.is_file():
        whose = f"that of {named}" if isinstance(named, str) and named else "the model's"
        raise CircuitviewError(
            f"{path}: missing; config.json only names a tokenizer: copy {whose} there"
        )
    opened = open_tokenizer(path, config.bos_token_id, config.d_vocab)
    if config.bos_token_id is None:
        opened = replace(opened, bos_token_id=find_bos(opened, path.parent))
    return replace(opened, bos_by_default=fields.get("default_prepend_bos") is not False)
