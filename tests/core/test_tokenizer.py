"""Labels on which no two tokens look alike; BOS once and never twice."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers import decoders, models, pre_tokenizers

from circuitview.core.checkpoint.number_tokens import number_tokenizer
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import (
    Tokenizer,
    asked,
    open_tokenizer,
    train_tokenizer,
    visible,
)
from tests.tiny_models import BOS, byte_tokenizer, word_tokenizer

# "Ġ" is the byte-level spelling of a space.
MERGES = [("t", "e"), ("te", "a"), ("Ġ", "tea"), ("ð", "Ł"), ("ðŁ", "ĺ"), ("ðŁĺ", "Ģ")]


@pytest.fixture(scope="module")
def bytes_and_pieces() -> Tokenizer:
    inner = byte_tokenizer(MERGES)
    return Tokenizer(inner, 0, inner.get_vocab_size())


def of_pieces(*pieces: str) -> Tokenizer:
    """A tokenizer of the given words, as they are."""
    inner = HuggingFaceTokenizer(models.WordLevel({piece: n for n, piece in enumerate(pieces)}))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return Tokenizer(inner, None, len(pieces))


def test_every_label_of_a_byte_level_vocabulary_is_its_own(bytes_and_pieces):
    labels = bytes_and_pieces.labels
    assert len(set(labels)) == len(labels) == 1 + 256 + len(MERGES)
    assert all(labels)
    assert all(label.isprintable() for label in labels)


def test_leading_space_tells_two_tokens_apart(bytes_and_pieces):
    spaced, bare = (bytes_and_pieces.token_id(text) for text in (" tea", "tea"))
    assert bytes_and_pieces.label(spaced) == "␣tea"
    assert bytes_and_pieces.label(bare) == "tea"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (" ", "␣"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("\r", "␍"),
        ("\x07", "\\x07"),
        ("\x00", "\\x00"),
        ("\x7f", "\\x7f"),
        ("a", "a"),
        ("😀", "😀"),
    ],
)
def test_label_of_a_token_that_is_text(bytes_and_pieces, text, label):
    assert bytes_and_pieces.label(bytes_and_pieces.token_id(text)) == label


def test_half_an_emoji_shows_its_bytes(bytes_and_pieces):
    half = bytes_and_pieces.inner.token_to_id("ðŁĺ")
    assert bytes_and_pieces.label(half) == "⟨F0 9F 98⟩"
    assert bytes_and_pieces.text(half) is None
    assert bytes_and_pieces.token_bytes(half) == b"\xf0\x9f\x98"


def test_sentencepiece_spelling_of_spaces_and_bytes_is_read():
    pieces = ["<unk>", "▁tea", "tea", "<0x0A>", "<0xF0>", "<0x9F>", "▁", "é"]
    inner = HuggingFaceTokenizer(
        models.BPE({piece: n for n, piece in enumerate(pieces)}, [], byte_fallback=True)
    )
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer = Tokenizer(inner, None, len(pieces))
    assert tokenizer.labels == ("<unk>", "␣tea", "tea", "↵", "⟨F0⟩", "⟨9F⟩", "␣", "é")
    assert tokenizer.token_bytes(3) == b"\n"


def test_same_spelling_in_another_vocabulary_is_left_as_it_is():
    assert of_pieces("▁tea", "<0x0A>").labels == ("▁tea", "<0x0A>")


def test_single_bytes_of_no_character_show_as_bytes(bytes_and_pieces):
    assert [bytes_and_pieces.label(token) for token in bytes_and_pieces.encode("é", False)] == [
        "⟨C3⟩",
        "⟨A9⟩",
    ]


@settings(derandomize=True, deadline=None)
@given(text=st.text(min_size=1, max_size=30))
def test_bytes_of_the_tokens_spell_the_text(text):
    inner = byte_tokenizer(MERGES)
    tokenizer = Tokenizer(inner, 0, inner.get_vocab_size())
    ids = tokenizer.encode(text, prepend_bos=False)
    assert b"".join(tokenizer.token_bytes(token) for token in ids) == text.encode()


def test_right_to_left_text_is_kept_and_its_marks_are_shown():
    assert visible("שלום") == "שלום"
    assert visible("\u200fשלום") == "\\u200fשלום"
    assert visible("a\u202eb") == "a\\u202eb"


def test_spaces_of_other_kinds_are_shown():
    assert visible("a\u00a0b\u2003c\u2028d") == "a\\xa0b\\u2003c\\u2028d"


def test_text_that_looks_like_an_escape_is_told_from_the_character():
    labels = of_pieces("\x07", "\\x07", " ", "␣").labels
    assert len(set(labels)) == 4


def test_a_number_that_tells_two_labels_apart_never_makes_a_third_alike():
    labels = of_pieces("\x07", "\\x07", "\\x07⟨0⟩", "\\x07⟨1⟩", "x").labels
    assert len(set(labels)) == 5
    assert labels[4] == "x"


def test_token_that_the_file_lacks_has_a_label():
    tokenizer = Tokenizer(word_tokenizer(3), 0, 5)
    assert tokenizer.labels == ("BOS", "w1", "w2", "<3>", "<4>")


def test_bos_is_shown_as_bos_and_told_from_the_word():
    inner = HuggingFaceTokenizer(models.WordLevel({BOS: 0, "BOS": 1}))
    labels = Tokenizer(inner, 0, 2).labels
    assert len(set(labels)) == 2


@pytest.mark.parametrize("prepend_bos", [None, True, False])
def test_bos_never_twice(bytes_and_pieces, prepend_bos):
    ids = bytes_and_pieces.encode(BOS + "tea", prepend_bos)
    assert ids.count(0) == 1
    assert ids[0] == 0


def test_bos_by_default_where_the_model_has_one(bytes_and_pieces):
    assert bytes_and_pieces.encode("tea")[0] == 0
    assert 0 not in bytes_and_pieces.encode("tea", False)
    assert of_pieces("a", "b").encode("a b") == (0, 1)


def test_bos_of_a_model_that_has_none_is_refused():
    with pytest.raises(CircuitviewError, match="no BOS"):
        of_pieces("a", "b").encode("a", True)


def test_target_without_its_space_offers_the_word_with_it():
    inner = byte_tokenizer(
        [("Ġ", "c"), ("Ġc", "o"), ("Ġco", "f"), ("Ġcof", "f"), ("Ġcoff", "e"), ("Ġcoffe", "e")]
    )
    tokenizer = Tokenizer(inner, 0, inner.get_vocab_size())
    with pytest.raises(CircuitviewError) as caught:
        tokenizer.token_id("coffee")
    message = str(caught.value)
    assert "6 tokens: 'c' 'o' 'f' 'f' 'e' 'e'" in message
    assert "did you mean ' coffee'?" in message
    assert "\n" not in message


def test_target_that_is_no_token_either_way_offers_nothing(bytes_and_pieces):
    with pytest.raises(CircuitviewError) as caught:
        bytes_and_pieces.token_id("a\nb")
    assert "did you mean" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_page_pasted_as_the_target_is_not_repeated_whole(bytes_and_pieces):
    with pytest.raises(CircuitviewError, match=r"is \d+ tokens: .* …") as caught:
        bytes_and_pieces.token_id("z" * 10_000)
    assert len(str(caught.value)) < 600


def test_half_an_emoji_can_be_named_by_its_label(bytes_and_pieces):
    half = bytes_and_pieces.inner.token_to_id("ðŁĺ")
    assert bytes_and_pieces.token_id("⟨F0 9F 98⟩") == half


def test_label_is_looked_up_before_what_is_left_of_a_text_without_its_unknown_characters():
    inner = HuggingFaceTokenizer(models.BPE({" ": 0, "a": 1, " a": 2}, [(" ", "a")]))
    assert inner.encode("␣a").ids == [1]  # without an unknown token, "␣" is left out
    tokenizer = Tokenizer(inner, None, 3)
    assert [tokenizer.token_id(text) for text in ("␣a", " a", "a", "␣")] == [2, 2, 1, 0]


@pytest.mark.parametrize("text", ["tea \ud83c", "\udcff"])
def test_half_a_character_in_a_prompt_does_not_blame_the_tokenizer(bytes_and_pieces, text):
    with pytest.raises(CircuitviewError, match=r"half a character.*type it again"):
        bytes_and_pieces.encode(text)


def test_every_label_names_its_token(bytes_and_pieces):
    for token, label in enumerate(bytes_and_pieces.labels):
        assert bytes_and_pieces.token_id(label) == token


def test_trained_tokenizer_starts_with_bos_and_encodes_any_text(tmp_path):
    (tmp_path / "a.txt").write_text("green tea, green tea\n" * 20, encoding="utf-8")
    inner = train_tokenizer([tmp_path / "a.txt"], 270)
    tokenizer = Tokenizer(inner, 0, 270)
    assert inner.token_to_id(BOS) == 0
    assert len(set(tokenizer.labels)) == 270
    ids = tokenizer.encode("नमस्ते 😀\n", False)
    assert b"".join(tokenizer.token_bytes(token) for token in ids).decode() == "नमस्ते 😀\n"


# Faults of the library's Rust code, which are no Exception: when a file is read, and when a text
# is encoded.
FAULTS = {
    "read": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "encode": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
}


def faulty(folder, fault):
    inner = byte_tokenizer(MERGES)
    fields = json.loads(inner.to_str())
    (folder / "tokenizer.json").write_text(json.dumps({**fields, **FAULTS[fault]}))
    return folder / "tokenizer.json", inner.get_vocab_size()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_library_is_one_line_and_leaves_no_words_of_its_own(fault, tmp_path, capfd):
    path, d_vocab = faulty(tmp_path, fault)
    with pytest.raises(CircuitviewError) as caught:
        open_tokenizer(path, 0, d_vocab)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    os.write(2, b"still there")  # what others write is heard again
    assert capfd.readouterr().err == "still there"


def test_a_fault_while_a_text_is_encoded_is_a_line(tmp_path):
    path, d_vocab = faulty(tmp_path, "encode")
    inner = HuggingFaceTokenizer.from_file(str(path))
    with pytest.raises(CircuitviewError, match="can't encode 'tea'"):
        Tokenizer(inner, 0, d_vocab).encode("tea")


@pytest.mark.parametrize(("d_vocab", "example"), [(300, "5 17 3"), (18, "5 17 3"), (9, "5 8 3")])
def test_where_tokens_are_numbers_a_word_is_answered_with_how_to_type_them(d_vocab, example):
    tokenizer = number_tokenizer(d_vocab, None)
    for ask in (tokenizer.encode, tokenizer.token_id):
        with pytest.raises(CircuitviewError, match="'tea' is not in this model's voc") as caught:
            ask("tea")
        said = (
            f'of {d_vocab}; its tokens are the numbers 0 to {d_vocab - 1}, typed like "{example}"'
        )
        assert str(caught.value).endswith(said)
    assert tokenizer.encode(example) == tuple(map(int, example.split()))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_what_is_no_fault_of_the_library_goes_on(error):
    def stop():
        raise error

    with pytest.raises(error):
        asked(stop)
