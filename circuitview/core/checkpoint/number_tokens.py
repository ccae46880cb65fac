"""Tokens typed as their numbers, for models that come without a tokenizer."""

from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers import models, pre_tokenizers

from circuitview.core.answers import NUMBERS
from circuitview.core.tokenizer import Tokenizer

__all__ = ["NUMBERS", "number_tokenizer"]

_EXAMPLE = (5, 17, 3)


def number_tokenizer(d_vocab: int, bos_token_id: int | None) -> Tokenizer:
    """The tokenizer whose tokens are the words "0", "1", … up to the vocabulary's last."""
    inner = HuggingFaceTokenizer(models.WordLevel({str(token): token for token in range(d_vocab)}))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    example = " ".join(str(token % d_vocab) for token in _EXAMPLE)
    return Tokenizer(
        inner,
        bos_token_id,
        d_vocab,
        NUMBERS,
        spelling=f'its tokens are the numbers 0 to {d_vocab - 1}, typed like "{example}"',
    )
