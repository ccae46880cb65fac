"""The tokenizer of a Hugging Face folder or GGUF file, and whether a prompt starts with BOS.

A prompt starts with BOS where the tokenizer itself puts it there. Many tokenizers add none although
they have one; then it is put there for the families where transformer_lens does so too (GPT-2,
Llama and their like, not Qwen or Pythia): heads need a place to rest on, and numbers should be the
same in both programs. A folder's own add_bos_token has the last word; a GGUF file's says what its
converter found and is not asked.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from circuitview.core.checkpoint.prompt_start import named_bos, token_of
from circuitview.core.formats import TOKENIZER
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import (
    FaultError,
    Tokenizer,
    asked,
    open_tokenizer,
    silent_faults,
    wrap_tokenizer,
)

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
    own = folder / TOKENIZER
    if gguf_file is None and own.is_file():
        tokenizer = open_tokenizer(own, None, d_vocab)
    else:
        tokenizer = _converted(folder, hf_config, gguf_file)
    bos = _bos(tokenizer, settings, hf_config)
    wanted = settings.get("add_bos_token")
    if not isinstance(wanted, bool):
        wanted = family_has_bos or (bos is not None and tokenizer.adds(bos))
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
    where = folder / (gguf_file or TOKENIZER)
    if gguf_file is None and not any((folder / name).is_file() for name in _OTHERS):
        raise CircuitviewError(
            f"{folder}: has no tokenizer (looked for {TOKENIZER}, {', '.join(_OTHERS)}); copy it "
            "from where the model came from"
        )
    from transformers import AutoTokenizer

    more = {} if gguf_file is None else {"gguf_file": gguf_file}
    try:
        with _nothing_beside(folder, gguf_file) as place, silent_faults():
            found = asked(
                partial(
                    AutoTokenizer.from_pretrained,
                    str(place),
                    config=hf_config,
                    local_files_only=True,
                    trust_remote_code=False,
                    **more,
                )
            )
            inner = found.backend_tokenizer
    except FaultError as error:  # whatever the family's code raises
        remedy = f"save it as {TOKENIZER}" if gguf_file is None else "take another file of it"
        raise CircuitviewError(
            f"{where}: the tokenizer can't be read ({error}); {remedy}"
        ) from None
    return wrap_tokenizer(inner, None, int(hf_config.vocab_size), str(where))


@contextmanager
def _nothing_beside(folder: FilePath, gguf_file: str | None) -> Iterator[FilePath]:
    """While open: a folder that holds the GGUF file alone; `folder` itself where there is none.

    transformers would take a tokenizer.json beside the file for the file's own tokenizer, and
    prompts of the one model would become tokens of another.
    """
    if gguf_file is None:
        yield folder
        return
    with TemporaryDirectory(prefix="circuitview-") as made:
        file, link = folder / gguf_file, FilePath(made) / gguf_file
        try:
            link.symlink_to(file)
        except OSError:  # Windows asks for a right to make links
            try:
                link.hardlink_to(file)
            except OSError:  # on another drive
                copyfile(file, link)
        yield FilePath(made)


def _bos(tokenizer: Tokenizer, settings: Mapping[str, Any], hf_config: Any) -> int | None:
    """The id of BOS: the tokenizer's own word first, then the model's."""
    text = named_bos(settings)
    found = None if text is None else token_of(tokenizer, text)
    if found is not None:
        return found
    given = getattr(hf_config, "bos_token_id", None)
    usable = isinstance(given, int) and 0 <= given < tokenizer.d_vocab
    return given if usable else None
