"""Which token stands before a prompt, where a checkpoint's config does not say it."""

from collections.abc import Mapping
from pathlib import Path as FilePath

from circuitview.core.formats import json_fields
from circuitview.core.tokenizer import Tokenizer

_FILES = ("tokenizer_config.json", "special_tokens_map.json")
# What the tokenizers of small research models call it.
_USUAL = ("<|BOS|>", "<|endoftext|>", "<s>", "[BOS]", "<bos>")


def find_bos(tokenizer: Tokenizer, folder: FilePath) -> int | None:
    """The id of the BOS token: what the files beside the tokenizer call it, else a special token of
    a usual name, else None."""
    for file in _FILES:
        text = named_bos(json_fields(folder / file) or {})
        if text is not None:
            return token_of(tokenizer, text)
    added = tokenizer.inner.get_added_tokens_decoder().values()
    special = {str(token.content) for token in added if token.special}
    return next((token_of(tokenizer, name) for name in _USUAL if name in special), None)


def named_bos(settings: Mapping[str, object]) -> str | None:
    """What a tokenizer_config.json calls BOS, or None."""
    named = settings.get("bos_token")
    text = named.get("content") if isinstance(named, dict) else named
    return text if isinstance(text, str) else None


def token_of(tokenizer: Tokenizer, text: str) -> int | None:
    """The id of the token that is exactly `text`, where the model has it."""
    token = tokenizer.inner.token_to_id(text)
    return int(token) if token is not None and token < tokenizer.d_vocab else None
