"""Which token stands before a prompt, where a checkpoint's config does not say it."""

from pathlib import Path as FilePath

import msgspec

from circuitview.core.tokenizer import Tokenizer

_FILES = ("tokenizer_config.json", "special_tokens_map.json")
# What the tokenizers of small research models call it.
_USUAL = ("<|BOS|>", "<|endoftext|>", "<s>", "[BOS]", "<bos>")


def find_bos(tokenizer: Tokenizer, folder: FilePath) -> int | None:
    """The id of the BOS token: what the files beside the tokenizer call it, else a special token of
    a usual name, else None."""
    for file in _FILES:
        try:
            fields = msgspec.json.decode((folder / file).read_bytes(), type=dict[str, object])
        except (OSError, msgspec.MsgspecError, RecursionError):
            continue
        named = fields.get("bos_token")
        text = named.get("content") if isinstance(named, dict) else named
        if isinstance(text, str):
            return _within(tokenizer, tokenizer.inner.token_to_id(text))
    special = {
        str(token.content): number
        for number, token in tokenizer.inner.get_added_tokens_decoder().items()
        if token.special
    }
    return next((_within(tokenizer, special[name]) for name in _USUAL if name in special), None)


def _within(tokenizer: Tokenizer, token: int | None) -> int | None:
    return token if token is not None and token < tokenizer.d_vocab else None
