"""Opening another model: where it can't read the prompt at hand, a prompt that it can.

A model with a small vocabulary could otherwise never be opened: its words fail on the old model,
the old model's words on it. Tried in turn: the prompt at hand; the one that the model's card says
to try ("Try it on", and the text on an indented line below); the default one; its own first words.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from circuitview.core.bundled import DEFAULT_PROMPT
from circuitview.core.names import CircuitviewError, ImbalanceError, IncomparableError
from circuitview.core.progress import Progress
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import Results, State

if TYPE_CHECKING:
    from circuitview.core.model import Model

_INVITATION = "Try it on"
_CARD = "README.md"
_N_WORDS = 8


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What came of a question.

    Attributes:
        state: what was answered: what was asked, or as near to it as the model can come.
        results: its results.
        why_prompt: why it has another prompt, or None.
        notice: what else is not as it was asked, or None.
    """

    state: State
    results: Results
    why_prompt: str | None = None
    notice: str | None = None


def opening_steps(pipeline: Pipeline, state: State) -> Generator[Progress, None, Answer]:
    """The results of `state`, or of the same with what the model can do: another precision where
    it runs in one only, MLPs as sources where paths can't run through them, another prompt.

    Raises:
        CircuitviewError: for `state`, where no prompt helps.
    """
    try:
        results = yield from pipeline.steps(state)
        return Answer(state, results, notice=_elsewhere(pipeline, state))
    except (ImbalanceError, IncomparableError):
        raise  # the prompts could be read
    except CircuitviewError as failure:
        model = pipeline.model_of(state)
        if model is None:
            raise
        able, notice = within_reach(pipeline, state)
        if notice is None and pipeline.recorded(state):
            raise  # not the prompt is at fault
        why = str(failure)
    if notice is None:
        return (yield from _with_another_prompt(pipeline, state, model, why))
    answer = yield from opening_steps(pipeline, able)
    return replace(answer, notice="; ".join(filter(None, (notice, answer.notice))))


def _elsewhere(pipeline: Pipeline, state: State) -> str | None:
    """What to say where the model of `state` computes on another device than was asked."""
    model = pipeline.model_of(state)
    return None if model is None else model.elsewhere(state.device)


def within_reach(pipeline: Pipeline, state: State) -> tuple[State, str | None]:
    """`state` with what its open model can do, and what is not as it was asked, or None."""
    facts = pipeline.facts_of(state)
    if facts is None:
        return state, None
    notices = []
    if state.dtype == "float64" and facts.no_float64:
        state = replace(state, dtype="float32")
        notices.append(f"{facts.name} runs in float32, not in float64: computed in float32")
    if state.through_mlps and facts.no_mlp_paths and not facts.config.attn_only:
        state = replace(state, through_mlps=False)
        notices.append(f"{facts.no_mlp_paths}; its MLPs are shown as sources")
    return state, "; ".join(notices) or None


def _with_another_prompt(
    pipeline: Pipeline, state: State, model: "Model", why: str
) -> Generator[Progress, None, Answer]:
    # A second prompt may be what can't be read: without it the first one is tried again.
    first = [] if state.other is None else [state.prompt]
    for prompt in (*first, *example_prompts(model)):
        other = replace(state.with_other(None).with_prompt(prompt), target=None, versus=None)
        try:
            results = yield from pipeline.steps(other)
        except ImbalanceError:
            raise  # the prompt could be read: the weights are at fault
        except CircuitviewError:
            continue
        return Answer(other, results, why, _elsewhere(pipeline, other))
    raise CircuitviewError(why)


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
