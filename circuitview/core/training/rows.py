"""Text files to tokens, tokens to training rows.

A row starts with BOS. Some rows are a stretch of text or of random tokens, repeated: a model can
predict the repeat only with an induction head, so these rows make one form early. The first copy of
a random stretch can't be predicted at all, and is left out of the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from circuitview.core.files import read_text
from circuitview.core.names import CircuitviewError
from circuitview.core.training.settings import TrainingSettings

Tokens = npt.NDArray[np.int64]
_BOS = 0
_FIRST_STAGE_ROW = 128
_PERIODS = (8, 56)


def encode_texts(tokenizer: Tokenizer, texts: Sequence[FilePath]) -> npt.NDArray[np.uint16]:
    """The tokens of all texts one after the other, BOS between them."""
    pieces: list[npt.NDArray[np.uint16]] = []
    for path in texts:
        # By paragraph: a whole book in one call costs the library memory out of proportion.
        lines = read_text(path).splitlines(keepends=True)
        encodings = tokenizer.encode_batch_fast(lines, add_special_tokens=False)
        pieces.append(np.array([_BOS], np.uint16))
        pieces.extend(np.array(encoding.ids, np.uint16) for encoding in encodings)
    return np.concatenate(pieces)


@dataclass(frozen=True)
class Batch:
    """Rows of tokens [batch, pos] and which predictions count [batch, pos − 1]."""

    tokens: Tokens
    counted: npt.NDArray[np.bool_]


class Rows:
    """Draws the batches of a run; the batch of a step depends on the seed and the step alone."""

    def __init__(self, stream: npt.NDArray[np.uint16], settings: TrainingSettings) -> None:
        if len(stream) <= settings.n_ctx:
            raise CircuitviewError(
                f"the texts have {len(stream)} tokens, fewer than one row of {settings.n_ctx}; "
                "give more text"
            )
        self.stream = stream
        self.settings = settings

    @property
    def n_steps(self) -> int:
        return max(1, round(self.settings.tokens / self.settings.batch_tokens))

    @property
    def first_stage_steps(self) -> int:
        return round(self.n_steps * self.settings.repeat_stage)

    def batch(self, step: int) -> Batch:
        settings = self.settings
        rng = np.random.default_rng((settings.seed, step))
        first = step < self.first_stage_steps
        width = min(_FIRST_STAGE_ROW, settings.n_ctx) if first else settings.n_ctx
        height = max(1, settings.batch_tokens // width)
        tokens = np.zeros((height, width), np.int64)
        counted = np.ones((height, width - 1), np.bool_)
        done = (step - self.first_stage_steps) / max(1, self.n_steps - self.first_stage_steps)
        share = settings.repeat_first + (settings.repeat_last - settings.repeat_first) * done
        for row in range(height):
            tokens[row, 0] = _BOS
            if first or rng.random() < share:
                random = first or rng.random() < 2 / 3
                longest = _PERIODS[1] if random else max(_PERIODS[0] + 1, width // 2)
                period = int(rng.integers(_PERIODS[0], min(longest, width // 2) + 1))
                stretch = self._random(rng, period) if random else self._text(rng, period)
                tokens[row, 1:] = np.resize(stretch, width - 1)
                counted[row, :period] = not random
            else:
                tokens[row, 1:] = self._text(rng, width - 1)
        return Batch(tokens, counted)

    def _random(self, rng: np.random.Generator, length: int) -> Tokens:
        return rng.integers(1, self.settings.d_vocab, length)

    def _text(self, rng: np.random.Generator, length: int) -> Tokens:
        start = int(rng.integers(0, len(self.stream) - length))
        return self.stream[start : start + length].astype(np.int64)


def windows(stream: npt.NDArray[np.uint16], n_ctx: int, most: int) -> Tokens:
    """Up to `most` rows [row, n_ctx] of consecutive text, BOS first, for the validation loss."""
    length = n_ctx - 1
    count = min(most, len(stream) // length)
    if count == 0:
        raise CircuitviewError(
            f"the held-out text has {len(stream)} tokens, fewer than one row of {n_ctx}; "
            "give a longer one"
        )
    rows = stream[: count * length].reshape(count, length).astype(np.int64)
    return np.concatenate([np.full((count, 1), _BOS, np.int64), rows], axis=1)


def repeated_random(d_vocab: int, n_ctx: int, count: int, seed: int) -> Tokens:
    """`count` rows BOS, r, r with r of random tokens, as long as n_ctx allows (at most 64)."""
    half = min(64, (n_ctx - 1) // 2)
    rng = np.random.default_rng(seed)
    stretch = rng.integers(1, d_vocab, (count, half))
    return np.concatenate([np.full((count, 1), _BOS), stretch, stretch], axis=1)
