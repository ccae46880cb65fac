"""What is run: prompts, or windows of a text, and at which places what is measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from circuitview.core.ablation.metric import MetricName
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError
from circuitview.core.prompt import Prompt
from circuitview.core.target import Explained, NextTokens, Target

_MARGIN = 64  # tokens behind which those of a text that was cut are those of the whole


@dataclass(frozen=True, eq=False)
class Case:
    """One prompt, and what is measured of it.

    Attributes:
        prompt: what the model reads.
        dests: where it is measured.
        tokens: the token whose logit, probability or loss is measured at each of them.
        versus: the token whose logit is subtracted, or None.
        target: the same as a target, where there is one dest only; None for a text.
    """

    prompt: Prompt
    dests: Int[Tensor, " dest"]
    tokens: Int[Tensor, " dest"]
    versus: Int[Tensor, " dest"] | None = None
    target: Target | None = None

    def counted(self, metric: MetricName) -> Explained:
        """What contributions beside this metric are to: the difference where that is measured, else
        the token's own logit; in a text the mean logit of the next tokens."""
        if self.target is None:
            return NextTokens(self.dests, self.tokens)
        if metric == "difference":
            return self.target
        return replace(self.target, versus=None, versus_label=None)


def case_of(prompt: Prompt, target: Target) -> Case:
    """A prompt, measured where its target is."""
    versus = None if target.versus is None else torch.tensor([target.versus])
    dests, tokens = torch.tensor([target.dest]), torch.tensor([target.token])
    return Case(prompt, dests, tokens, versus, target)


def text_cases(
    model: Model, text: str, length: int, most: int, prepend_bos: bool | None = None
) -> tuple[Case, ...]:
    """The first windows of a text, each measured at every next token.

    A window begins with BOS where the model's tokenizer puts one; the tokens that follow are the
    text's own, without a gap between windows. What does not fill a window is left out.

    Args:
        length: tokens of a window, BOS included.
        most: windows at most.
        prepend_bos: whether BOS stands in front of each; None as the tokenizer has it.

    Raises:
        CircuitviewError: where the text does not fill one window, or a window is no length for the
            model.
    """
    if not 2 <= length <= model.config.n_ctx:
        raise CircuitviewError(
            f"windows of {length} tokens: {model.name} reads up to {model.config.n_ctx}, and "
            f"something has to be predicted; choose 2 to {model.config.n_ctx}"
        )
    if most < 1:
        raise CircuitviewError(f"{most} windows: choose 1 or more")
    tokenizer = model.tokenizer
    wanted = tokenizer.bos_by_default if prepend_bos is None else prepend_bos
    if prepend_bos and tokenizer.bos_token_id is None:
        raise CircuitviewError(f"{model.name} has no BOS; leave it out (--no-bos)")
    bos = (tokenizer.bos_token_id,) if wanted and tokenizer.bos_token_id is not None else ()
    step = length - len(bos)
    ids = _first_tokens(model, text, step * most)
    starts = range(0, len(ids) - step + 1, step)
    if not starts:
        raise CircuitviewError(
            f"the text has {len(ids)} tokens, a window {step} beside BOS; give more text or "
            "shorter windows"
        )
    windows = [(*bos, *ids[start : start + step]) for start in starts[:most]]
    return tuple(window_case(model, window) for window in windows)


def _first_tokens(model: Model, text: str, count: int) -> tuple[int, ...]:
    """At least `count` tokens of a text, where it has as many; a book need not be read whole."""
    if not text.strip():
        raise CircuitviewError("the text is empty; give a file with text")
    read = 8 * count
    while True:
        begun = text if read >= len(text) else _whole_words(text[:read])
        ids = model.tokenizer.encode(begun, prepend_bos=False) if begun else ()
        # Near the cut the tokens may still be others than those of the whole text.
        if len(ids) >= count + _MARGIN or read >= len(text):
            return ids
        read *= 2


def _whole_words(text: str) -> str:
    """A text up to its last word, which may be cut: a vocabulary of words has no half ones."""
    parts = text.rsplit(maxsplit=1)
    return parts[0] if len(parts) > 1 else ""


def window_case(model: Model, token_ids: Sequence[int]) -> Case:
    """Tokens, measured at every next one."""
    labels = tuple(model.tokenizer.label(token) for token in token_ids)
    prompt = Prompt(model.name, tuple(token_ids), labels)
    return Case(prompt, torch.arange(len(token_ids) - 1), torch.tensor(token_ids[1:]))
