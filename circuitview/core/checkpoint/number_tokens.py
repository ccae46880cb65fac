"""Tokens typed as their numbers, for models that come without a tokenizer."""

from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers import models, pre_tokenizers

from circuitview.core.tokenizer import Tokenizer

NUMBERS = "numbers"


def number_tokenizer(d_vocab: int, bos_token_id: int | None) -> Tokenizer:
    """The tokenizer whose tokens are the words "0", "1", … up to the vocabulary's last."""
    inner = HuggingFaceTokenizer(models.WordLevel({str(token): token for token in range(d_vocab)}))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return Tokenizer(inner, bos_token_id, d_vocab, NUMBERS)
