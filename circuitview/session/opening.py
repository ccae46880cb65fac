"""Opening another model: where it can't read the prompt at hand, a prompt that it can.

A model with a small vocabulary could otherwise never be opened: its words fail on the old model,
the old model's words on it. Tried in turn: the prompt at hand; the one that the model's card says
to try ("Try it on", and the text on an indented line below); the default one; its own first words.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from circuitview.core.bundled import DEFAULT_PROMPT
from circuitview.core.names import CircuitviewError, ImbalanceError
from circuitview.core.progress import Progress
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import Results, State

if TYPE_CHECKING:
    from circuitview.core.model import Model

_INVITATION = "Try it on"
_CARD = "README.md"
_N_WORDS = 8

Answer = tuple[State, Results, str | None]


def opening_steps(pipeline: Pipeline, state: State) -> Generator[Progress, None, Answer]:
    """The results of `state`, or of the same with another prompt: (state, results, why another).

    Raises:
        CircuitviewError: for `state`, where no prompt helps.
    """
    try:
        results = yield from pipeline.steps(state)
    except CircuitviewError as failure:
        model = pipeline.model_of(state)
        if model is None or pipeline.recorded(state):
            raise  # it has no model, or not the prompt is at fault
        for prompt in example_prompts(model):
            other = replace(state.with_prompt(prompt), target=None, versus=None)
            try:
                results = yield from pipeline.steps(other)
            except ImbalanceError:
                raise  # the prompt could be read: the weights are at fault
            except CircuitviewError:
                continue
            return other, results, str(failure)
        raise
    return state, results, None


def example_prompts(model: "Model") -> Iterator[str]:
    """Prompts that `model` should be able to read."""
    prompt = card_prompt(model)
    if prompt is not None:
        yield prompt
    yield DEFAULT_PROMPT
    tokens = range(min(model.config.d_vocab, 4 * _N_WORDS))
    texts = [model.tokenizer.text(token) for token in tokens if token != model.config.bos_token_id]
    words = [text for text in texts if text and not text.isspace()][:_N_WORDS]
    if words:
        yield " ".join(words)
        yield "".join(words)


def card_prompt(model: "Model") -> str | None:
    """The prompt that the model's card says to try, or None."""
    try:
        lines = (model.folder / _CARD).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for place, line in enumerate(lines):
        if line.startswith(_INVITATION):
            for below in lines[place + 1 :]:
                if below.startswith("    ") and below.strip():
                    return below[4:]
                if below.strip():
                    break
    return None
