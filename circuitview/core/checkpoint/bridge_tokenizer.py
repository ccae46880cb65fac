"""The tokenizer of a Hugging Face folder or GGUF file, and whether a prompt starts with BOS.

A prompt starts with BOS where the tokenizer itself puts it there. Many tokenizers add none although
they have one; then it is put there for the families where transformer_lens does so too (GPT-2,
Llama and their like, not Qwen or Pythia): heads need a place to rest on, and numbers should be the
same in both programs.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import msgspec

from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import Tokenizer, open_tokenizer, wrap_tokenizer

_FILE = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
# What older tokenizers are made from, any of them.
_OTHERS = ("tokenizer.model", "vocab.json", "spiece.model", "tokenizer.tiktoken")


def read_tokenizer(
    folder: FilePath,
    hf_config: Any,
    gguf_file: str | None,
    family_has_bos: bool,
) -> Tokenizer:
    """The tokenizer of a checkpoint.

    Args:
        folder: where its files are.
        hf_config: transformers' config of the model.
        gguf_file: the file in `folder` that holds the tokenizer, or None.
        family_has_bos: whether transformer_lens puts BOS before prompts of the family.

    Raises:
        CircuitviewError: where there is none, or it belongs to another model.
    """
    settings = _settings(folder) if gguf_file is None else {}
    d_vocab = int(hf_config.vocab_size)
    own = folder / _FILE
    if gguf_file is None and own.is_file():
        tokenizer = open_tokenizer(own, None, d_vocab)
    else:
        tokenizer = _converted(folder, hf_config, gguf_file)
    bos = _bos(tokenizer, settings, hf_config)
    wanted = family_has_bos or settings.get("add_bos_token") is True
    wanted = wanted or (bos is not None and _adds(tokenizer, bos))
    return replace(tokenizer, bos_token_id=bos, bos_by_default=wanted)


def _settings(folder: FilePath) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise CircuitviewError(f"{path}: not a JSON object ({error}); save it again") from None


def _converted(folder: FilePath, hf_config: Any, gguf_file: str | None) -> Tokenizer:
    """A tokenizer that transformers makes from older files, or from a GGUF file."""
    where = folder / (gguf_file or _FILE)
    if gguf_file is None and not any((folder / name).is_file() for name in _OTHERS):
        raise CircuitviewError(
            f"{folder}: has no tokenizer (looked for {_FILE}, {', '.join(_OTHERS)}); copy it from "
            "where the model came from"
        )
    from transformers import AutoTokenizer

    more = {} if gguf_file is None else {"gguf_file": gguf_file}
    try:
        found = AutoTokenizer.from_pretrained(
            str(folder), config=hf_config, local_files_only=True, trust_remote_code=False, **more
        )
        inner = found.backend_tokenizer
    except Exception as error:  # noqa: BLE001  (whatever the family's code raises)
        reason = " ".join(str(error).split())[:200]
        raise CircuitviewError(
            f"{where}: the tokenizer can't be read ({reason}); save it as {_FILE}"
        ) from None
    return wrap_tokenizer(inner, None, int(hf_config.vocab_size), str(where))


def _bos(tokenizer: Tokenizer, settings: Mapping[str, Any], hf_config: Any) -> int | None:
    """The id of BOS: the tokenizer's own word first, then the model's."""
    token = settings.get("bos_token")
    if isinstance(token, dict):
        token = token.get("content")
    if isinstance(token, str):
        found = tokenizer.inner.token_to_id(token)
        if found is not None and found < tokenizer.d_vocab:
            return int(found)
    given = getattr(hf_config, "bos_token_id", None)
    usable = isinstance(given, int) and 0 <= given < tokenizer.d_vocab
    return given if usable else None


def _adds(tokenizer: Tokenizer, bos: int) -> bool:
    """Whether the tokenizer itself puts BOS in front."""
    for text in ("a", ""):
        try:
            ids = tokenizer.inner.encode(text, add_special_tokens=True).ids
            plain = tokenizer.inner.encode(text, add_special_tokens=False).ids
        except Exception:  # noqa: BLE001  (a vocabulary without that letter)
            continue
        return bool(ids[:1] == [bos] and plain[:1] != [bos] and len(ids) > len(plain))
    return False
