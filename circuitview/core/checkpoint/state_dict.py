"""A bare weights file: a state dict in transformer_lens' property layout, and no config.json.

Sizes follow from the shapes. What they leave open is listed as questions, plain data that a dialog
or a command line can ask; with the answers the file opens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, get_args

import msgspec

from circuitview.core.answers import NUMBERS, QUESTIONS, TAKEN, Question
from circuitview.core.checkpoint.arrays import StoredArrays
from circuitview.core.checkpoint.layout import check_arrays
from circuitview.core.checkpoint.legacy import open_arrays
from circuitview.core.checkpoint.number_tokens import number_tokenizer
from circuitview.core.checkpoint.old_layouts import is_mingpt
from circuitview.core.checkpoint.opened import native_model
from circuitview.core.checkpoint.prompt_start import find_bos
from circuitview.core.checkpoint.shapes import derive
from circuitview.core.config import ModelConfig, config_of
from circuitview.core.formats import TOKENIZER
from circuitview.core.model import NativeModel
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import Tokenizer, open_tokenizer

_LONG = 120  # characters: what was pasted by mistake is not repeated whole
_TYPES = {field.name: field.type for field in msgspec.structs.fields(ModelConfig)}


@dataclass(frozen=True, slots=True)
class Described:
    """What a file says of its model, and what it leaves open."""

    known: dict[str, object]
    questions: tuple[Question, ...]


def describe(path: FilePath) -> Described:
    """What the weights file `path` says of its model, and what is to be asked.

    Raises:
        CircuitviewError: where it can't be read, or is not in transformer_lens' property layout.
    """
    arrays = open_arrays(path)
    try:
        return _describe(arrays)
    finally:
        arrays.release()


def _describe(arrays: StoredArrays) -> Described:
    if is_mingpt(arrays.file()):
        raise CircuitviewError(
            f"{arrays.path}: has minGPT's names, whose shapes don't say how many heads there are; "
            "put a config.json with n_heads beside it and open the folder"
        )
    known = derive(arrays)
    questions = [
        *_about_positions(known, "pos_embed.W_pos" in arrays),
        *_about_norms(known),
        *_about_mlps(known),
        _asked("attn_scale", default=f"{float(str(known['d_head'])) ** 0.5:.6g}"),
        _asked(
            "tokenizer",
            default=TOKENIZER if (arrays.path.parent / TOKENIZER).is_file() else None,
        ),
        _asked("bos_token_id"),
    ]
    return Described(known, tuple(questions))


def _asked(field: str, **narrowed: Any) -> Question:
    """The question about a field, with what this file says of its choices, default or reason."""
    return replace(QUESTIONS[field], **narrowed)


def _about_positions(known: dict[str, object], embedded: bool) -> list[Question]:
    name = "positional_embedding_type"
    if name in known:
        return []
    if embedded:
        why = "in a shortformer model positions enter queries and keys, never the stream"
        kinds = ("standard", "shortformer")
        return [_asked(name, choices=kinds, default="standard", why=why)]
    questions = [
        _asked(name, choices=("rotary", "none")),
        _asked("rotary_dim", default=str(known["d_head"])),
        _asked("rotary_base"),
        _asked("rotary_adjacent_pairs"),
    ]
    if "n_ctx" not in known:
        questions.append(_asked("n_ctx"))
    return questions


def _about_norms(known: dict[str, object]) -> list[Question]:
    open_ = [] if "normalization_type" in known else [_asked("normalization_type")]
    return [*open_, _asked("eps")]


def _about_mlps(known: dict[str, object]) -> list[Question]:
    if known["attn_only"]:
        return []
    questions = [_asked("parallel_attn_mlp")]
    if "act_fn" not in known:
        question, gated = QUESTIONS["act_fn"], bool(known["gated_mlp"])
        choices = [name for name in question.choices if not (gated and name.startswith("solu"))]
        questions.insert(0, replace(question, choices=tuple(choices)))
    return questions


def open_state_dict(path: FilePath, given: Mapping[str, str]) -> NativeModel:
    """The model in the weights file `path`.

    Args:
        path: a pickle of torch's, or a safetensors file.
        given: answers to the questions of `describe`; what it knows may be repeated.

    Raises:
        CircuitviewError: where the file can't be opened, an answer is missing, unknown or of the
            wrong type, or contradicts the file.
    """
    arrays = open_arrays(path)
    described = _describe(arrays)
    fields = _answered(path, described, given)
    config = config_of(fields, str(path))
    stored = check_arrays(arrays, config, "the given config")
    found = _tokenizer(path, config, given.get("tokenizer"), "bos_token_id" in given)
    config = msgspec.structs.replace(config, bos_token_id=found.bos_token_id)
    return native_model(path.stem, path.parent, config, found, arrays, stored)


def _answered(path: FilePath, described: Described, given: Mapping[str, str]) -> dict[str, object]:
    questions = {question.field: question for question in described.questions}
    allowed = [*questions, *described.known, *TAKEN]
    unknown = next((name for name in given if name not in allowed), None)
    if unknown is not None:
        raise CircuitviewError(
            f"{path}: {unknown!r} is no question about it; known are {', '.join(allowed)}"
        )
    fields = dict(described.known)
    for name, text in given.items():
        if name == "tokenizer":
            continue
        choices = questions[name].choices if name in questions else ()
        if choices and text.lower() not in map(str.lower, choices):
            raise CircuitviewError(f"{path}: {name}={text}: choose one of {', '.join(choices)}")
        value = _value(path, name, text)
        if name in described.known and value != described.known[name]:
            raise CircuitviewError(
                f"{path}: {name} is {described.known[name]} by its arrays, {text} was given; "
                f"leave {name} out"
            )
        fields[name] = value
    missing = [
        f"{name} ({', '.join(question.choices)})"
        for name, question in questions.items()
        if question.default is None and name not in given and name != "tokenizer"
    ]
    if missing:
        first = questions[missing[0].split()[0]]
        raise CircuitviewError(
            f"{path}: does not say {'; '.join(missing)}; give an answer to each, on the command "
            f"line as in --config {first.field}={first.choices[0]}"
        )
    for name, question in questions.items():
        if name in _TYPES and name not in fields and name != "bos_token_id":
            fields[name] = _value(path, name, question.default or "")
    if fields.get("positional_embedding_type") != "rotary":
        for name in ("rotary_dim", "rotary_base", "rotary_adjacent_pairs"):
            fields.pop(name, None)
    if "attn_scale" not in given:
        fields.pop("attn_scale")  # the default is sqrt(d_head), not the digits that are shown
    return fields


def _value(path: FilePath, name: str, text: str) -> Any:
    """The answer `text` in the type of the field `name`."""
    kind = _TYPES[name]
    words = [word for option in (kind, *get_args(kind)) for word in get_args(option)]
    if text.lower() == "none" and "none" not in words:
        text = "null"
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        reason = str(error).removesuffix(" - at `$`")
        shown = text if len(text) <= _LONG else text[:_LONG] + "…"
        raise CircuitviewError(f"{path}: {name}={shown}: {reason}; give another value") from None


def _tokenizer(
    path: FilePath, config: ModelConfig, given: str | None, bos_given: bool
) -> Tokenizer:
    if given == NUMBERS:
        return number_tokenizer(config.d_vocab, config.bos_token_id)
    file = path.parent / TOKENIZER if given is None else FilePath(given)
    if not file.is_file():
        raise CircuitviewError(
            f"{file}: missing; put the model's tokenizer.json there, or give --tokenizer FILE or "
            f"--tokenizer {NUMBERS}; in the window, type FILE or {NUMBERS} under 'tokenizer'"
        )
    opened = open_tokenizer(file, config.bos_token_id, config.d_vocab)
    return opened if bos_given else replace(opened, bos_token_id=find_bos(opened, file.parent))
