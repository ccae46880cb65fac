"""Text to tokens and back, with labels on which no two tokens look alike.

A label shows what text would hide: a space as "␣", a newline as "↵", a byte that is no whole
character as its hex value. BOS is added once, where asked for, never twice.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import TypeVar

from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers import decoders

from circuitview.core.names import CircuitviewError

# A vocabulary this small is shown whole where a word is not in it.
_FEW = 32
_LONG = 200  # characters: what was pasted by mistake is not repeated whole
# How SentencePiece vocabularies spell a space, and a byte that is no character of theirs.
_SPACE = "▁"
_FALLBACK = re.compile("<0x([0-9A-F]{2})>")
# What a tokenizer is tried on when it is opened: nothing, letters, spaces, bytes that a vocabulary
# may lack, characters of two and four bytes, a special token.
_TRIED = ("", "a", " a b", "ab c\n", "the cat, 1 2 300", "é日", "\x00\U0001f642", "<s>")
_SEEN = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}


_Made = TypeVar("_Made")


class FaultError(Exception):
    """What the tokenizers library says of a call that failed."""


def asked(call: Callable[[], _Made]) -> _Made:
    """What `call` to the tokenizers library returns.

    Raises:
        FaultError: where it fails. A fault in its Rust code is no Exception: nothing that catches
            those would hear of it, and with it a worker thread or the program would end.
    """
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001  (the library raises no narrower class)
        text = " ".join(str(error).split()) or type(error).__name__
        raise FaultError(text if len(text) <= _LONG else text[:_LONG] + "…") from None


@contextmanager
def silent_faults() -> Iterator[None]:
    """While open: Rust's own report of a fault, which it writes past Python, is not seen."""
    try:
        kept = os.dup(2)
    except OSError:  # a window without a console
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def visible(text: str) -> str:
    r"""`text` with what is invisible made visible: "␣" for a space, "↵" for a newline, \x07 …."""
    return "".join(_visible_character(character) for character in text)


def _visible_character(character: str) -> str:
    if character in _SEEN:
        return _SEEN[character]
    # Control, format (right-to-left marks among them), surrogate, private, unassigned, separators.
    if unicodedata.category(character)[0] in "CZ":
        code = ord(character)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return character


def _byte_of_character() -> dict[str, int]:
    """The byte behind each character of a byte-level vocabulary.

    Printable Latin-1 stands for itself; the other bytes take, in order, the code points from 256.
    """
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(itself)]
    table = {chr(byte): byte for byte in itself}
    table.update({chr(256 + place): byte for place, byte in enumerate(others)})
    return table


_BYTES = _byte_of_character()


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """A bundle's tokenizer.json.

    Attributes:
        inner: the Hugging Face tokenizer.
        bos_token_id: the token that stands before a prompt, or None where the model has none.
        d_vocab: how many tokens the model has; labels exist for all of them.
        where: its file, for messages.
        bos_by_default: whether a prompt starts with BOS where nobody says whether it should.
        spelling: how its tokens are typed, where they are no words; "" where they are.
    """

    inner: HuggingFaceTokenizer
    bos_token_id: int | None
    d_vocab: int
    where: str = field(default="tokenizer.json")
    bos_by_default: bool = True
    spelling: str = ""

    @cached_property
    def _byte_level(self) -> bool:
        return isinstance(self.inner.decoder, decoders.ByteLevel)

    @cached_property
    def _decoding(self) -> str:
        """How the file turns pieces back into text, in its own words (JSON)."""
        decoder = self.inner.decoder
        return "" if decoder is None else decoder.__getstate__().decode()

    @cached_property
    def _added(self) -> frozenset[int]:
        return frozenset(self.inner.get_added_tokens_decoder())

    def token_bytes(self, token: int) -> bytes:
        """The bytes that `token` stands for."""
        piece = self.inner.id_to_token(token)
        if piece is None:
            return f"<{token}>".encode()
        if token in self._added:
            return piece.encode()
        if self._byte_level and all(part in _BYTES for part in piece):
            return bytes(_BYTES[part] for part in piece)
        if "ByteFallback" in self._decoding and (match := _FALLBACK.fullmatch(piece)):
            return bytes([int(match[1], 16)])
        return piece.replace(_SPACE, " ").encode() if _SPACE in self._decoding else piece.encode()

    def text(self, token: int) -> str | None:
        """The token's text as one would type it, or None where its bytes are no whole text."""
        try:
            return self.token_bytes(token).decode()
        except UnicodeDecodeError:
            return None

    def label(self, token: int) -> str:
        """What to show for `token`: "␣tea", "↵", "⟨F0 9F⟩"; BOS as "BOS"."""
        return self.labels[token]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of every token of the vocabulary, by id; no two are the same."""
        labels = [self._label(token) for token in range(self.d_vocab)]
        count = Counter(labels)
        # Again where a text already looks like the number that tells two others apart.
        while len(count) < self.d_vocab:
            labels = [
                label if count[label] == 1 else f"{label}⟨{token}⟩"
                for token, label in enumerate(labels)
            ]
            count = Counter(labels)
        return tuple(labels)

    def _label(self, token: int) -> str:
        if token == self.bos_token_id:
            return "BOS"
        raw = self.token_bytes(token)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            # A piece of a character: keep what can be read, show the rest as bytes.
            kept = raw.decode(errors="backslashreplace")
            if kept.count("\\x") * 4 == len(kept):
                return "⟨" + raw.hex(" ").upper() + "⟩"
            return visible(kept)
        return visible(text) if text else f"⟨{token}⟩"

    def encode(self, text: str, prepend_bos: bool | None = None) -> tuple[int, ...]:
        """The token ids of `text`.

        Args:
            text: the prompt.
            prepend_bos: whether BOS goes in front; None asks for what the model was trained with.
                A text that starts with BOS already gets no second one.

        Raises:
            CircuitviewError: where the text is empty or has a word that the tokenizer lacks, or BOS
                is asked of a model that has none.
        """
        if prepend_bos and self.bos_token_id is None:
            raise CircuitviewError("this model has no BOS token; leave BOS off")
        ids = self._pieces(text)
        if not ids:
            raise CircuitviewError("the prompt is empty; type some text")
        wanted = self.bos_by_default if prepend_bos is None else prepend_bos
        if wanted and self.bos_token_id is not None and ids[0] != self.bos_token_id:
            ids = (self.bos_token_id, *ids)
        return ids

    def _pieces(self, text: str) -> tuple[int, ...]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = text[error.start]
            raise CircuitviewError(
                f"the text has half a character, {half!r} at place {error.start}; type it again"
            ) from None
        try:
            ids = tuple(asked(partial(self.inner.encode, text, add_special_tokens=False)).ids)
        except FaultError as error:
            known = self.inner.get_vocab()
            missing = next((word for word in text.split() if word not in known), text)
            if self.inner.decoder is None or not self._byte_level:
                listed = f": {' '.join(sorted(known))}" if len(known) <= _FEW else ""
                raise CircuitviewError(
                    f"{missing!r} is not in this model's vocabulary of {self.d_vocab}"
                    + (f"; {self.spelling}" if self.spelling else f"{listed}; use other words")
                ) from None
            raise CircuitviewError(
                f"{self.where} can't encode {text!r}: {error}; use another tokenizer"
            ) from None
        outside = next((token for token in ids if token >= self.d_vocab), None)
        if outside is not None:
            raise CircuitviewError(
                f"{self.where} gives token {outside}, the model's vocabulary has {self.d_vocab}; "
                "the tokenizer belongs to another model"
            )
        return ids

    def adds(self, token: int) -> bool:
        """Whether the file itself puts `token` in front of a text."""
        for text in ("a", ""):
            try:
                ids, plain = (
                    asked(partial(self.inner.encode, text, add_special_tokens=added)).ids
                    for added in (True, False)
                )
            except FaultError:  # a vocabulary without that letter
                continue
            return ids[:1] == [token] and plain[:1] != [token] and len(ids) > len(plain)
        return False

    def token_id(self, text: str, what: str = "target") -> int:
        """The id of the single token that `text` is.

        Args:
            text: exactly the token's text, a leading space included; a label ("␣tea") also serves.
            what: what the token is for, in messages.

        Raises:
            CircuitviewError: where it is not one token, saying which tokens it is and whether the
                same word with a leading space is one.
        """
        if not text:
            raise CircuitviewError(f"the {what} is empty; name a token")
        typed = self._single(text)
        if typed is not None and self.text(typed) == text:
            return typed
        # SentencePiece puts a space before every text, so that "tea" would become " tea", and
        # " tea" two tokens: what was typed is the text of one token, if it is that of any.
        exact = self._tokens_of_text.get(text, ())
        if len(exact) == 1:
            return exact[0]
        # Before a piece that is not what was typed: a vocabulary without "␣" may leave it out, and
        # "␣a" would become "a".
        if text in self._token_of_label:
            return self._token_of_label[text]
        if typed is not None:
            return typed
        ids = self._pieces(text)
        parts = " ".join(repr(self.text(token) or self.label(token)) for token in ids[:_FEW])
        parts += " …" if len(ids) > _FEW else ""
        spaced = " " + text
        hint = f"; did you mean {spaced!r}?" if self._single(spaced) is not None else ""
        asked = text if len(text) <= _LONG else text[:_LONG] + "…"
        raise CircuitviewError(f"{what} {asked!r} is {len(ids)} tokens: {parts}{hint}")

    def _single(self, text: str) -> int | None:
        try:
            ids = self._pieces(text)
        except CircuitviewError:
            return None
        return ids[0] if len(ids) == 1 else None

    @cached_property
    def _tokens_of_text(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for token in range(self.d_vocab):
            text = self.text(token)
            if text is not None:
                found.setdefault(text, []).append(token)
        return found

    @cached_property
    def _token_of_label(self) -> dict[str, int]:
        return {label: token for token, label in enumerate(self.labels)}


def open_tokenizer(path: FilePath, bos_token_id: int | None, d_vocab: int) -> Tokenizer:
    """The tokenizer in the file `path`.

    Raises:
        CircuitviewError: where the file is missing, is no tokenizer, or has more tokens than the
            model.
    """
    if not path.is_file():
        raise CircuitviewError(f"{path}: missing; a bundle needs its tokenizer.json")
    try:
        with silent_faults():
            inner = asked(partial(HuggingFaceTokenizer.from_file, str(path)))
    except FaultError as error:
        raise CircuitviewError(f"{path}: not a tokenizer ({error}); save it again") from None
    return wrap_tokenizer(inner, bos_token_id, d_vocab, str(path))


def wrap_tokenizer(
    inner: HuggingFaceTokenizer, bos_token_id: int | None, d_vocab: int, where: str
) -> Tokenizer:
    """A tokenizer that is in memory already; `where` names it in messages.

    Raises:
        CircuitviewError: where it has more tokens than the model, or can't be used.
    """
    # A file may ask for both; then what the model reads would not be what was typed.
    inner.no_truncation()
    inner.no_padding()
    try:
        with silent_faults():
            asked(partial(_try_out, inner, d_vocab))
    except FaultError as error:
        raise CircuitviewError(
            f"{where}: no tokenizer that can be used ({error}); use another one"
        ) from None
    # Tokens added later may lie outside, as padding mostly does; a text that has one is refused.
    largest = max(inner.get_vocab(with_added_tokens=False).values(), default=0)
    if largest >= d_vocab:
        raise CircuitviewError(
            f"{where}: has token {largest}, config.json gives the model a vocabulary of {d_vocab}; "
            "the tokenizer belongs to another model"
        )
    return Tokenizer(inner, bos_token_id, d_vocab, where)


def _try_out(inner: HuggingFaceTokenizer, d_vocab: int) -> None:
    """Ask `inner` all that will be asked of it. A text that has no tokens is no fault of it."""
    inner.get_vocab()
    inner.get_added_tokens_decoder()
    for token in range(min(d_vocab, _FEW)):
        inner.id_to_token(token)
    if inner.decoder is not None:
        inner.decoder.__getstate__()
    for text in _TRIED:
        try:
            inner.encode(text)
        except Exception:  # noqa: BLE001  (the library raises no narrower class)
            continue


def train_tokenizer(texts: Sequence[FilePath], d_vocab: int) -> HuggingFaceTokenizer:
    """A byte-level BPE tokenizer of `d_vocab` tokens, learned from `texts`; BOS is token 0."""
    from tokenizers import models, pre_tokenizers, trainers

    tokenizer = HuggingFaceTokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=d_vocab,
        special_tokens=["<|BOS|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([str(path) for path in texts], trainer)
    return tokenizer
