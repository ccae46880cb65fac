"""The freezing experiments as questions of plain values, and what answers them in the worker.

As in lab.py: the same question of the same model gives the same numbers. torch is imported only
where something is computed.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from circuitview.core.names import CircuitviewError, Head
from circuitview.core.progress import Progress
from circuitview.session.state import State

if TYPE_CHECKING:
    from circuitview.core.freezing.linearity import Linearity
    from circuitview.core.freezing.row import TwoRows
    from circuitview.core.freezing.swap import Swap
    from circuitview.core.model import Model
    from circuitview.core.recording import Recording
    from circuitview.core.target import Target

    Finding = Linearity | Swap | TwoRows

Experiment = Literal["linearity", "swap", "row"]

EXPERIMENTS: Mapping[Experiment, str] = {
    "linearity": "Linearity",
    "swap": "Token swap",
    "row": "Two prompts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezingQuestion:
    """What is to be found out.

    Attributes:
        about: the model, prompt, target, dest and precision; its visual fields are not read.
        experiment: which of the three.
        other: a second prompt. For the row: prompt B. For linearity: whose tokens are b; empty
            takes the prompt's own in another order.
        position, new_token: of the swap: where, and the text of one token.
        head: of the row.
        seed: of the order in which linearity takes the prompt's own tokens.
    """

    about: State
    experiment: Experiment
    other: str = ""
    position: int = 0
    new_token: str = ""
    head: Head | None = None
    seed: int = 0


def run_freezing(
    model: "Model", question: FreezingQuestion
) -> "Generator[Progress, None, Finding]":
    """What `question` finds with `model`, which is open: a Linearity, a Swap or a TwoRows.

    Raises:
        CircuitviewError: where something that is asked can't be done; one line.
    """
    about = question.about
    yield Progress(0, 1)
    run = model.run(model.prompt(about.prompt, about.prepend_bos), about.dtype)
    yield Progress(0, 1)
    match question.experiment:
        case "linearity":
            from circuitview.core.freezing.linearity import linearity

            other = None
            if question.other.strip():
                other = model.prompt(question.other, about.prepend_bos)
            return (yield from linearity(model, run, other, question.seed))
        case "swap":
            from circuitview.core.freezing.swap import swap

            target = _target(model, run, about)
            return (yield from swap(model, run, target, question.position, question.new_token))
        case "row":
            from circuitview.core.freezing.row import row_under_two_prompts

            if not question.other.strip():
                raise CircuitviewError("prompt B is empty: write the prompt to compare with")
            other_run = model.run(model.prompt(question.other, about.prepend_bos), about.dtype)
            yield Progress(0, 1)
            target = _target(model, run, about)
            head = question.head or _strongest(run, target)
            return row_under_two_prompts(model, head, target.dest, run, other_run)


def _target(model: "Model", run: "Recording", about: State) -> "Target":
    from circuitview.core.target import resolve_target

    dest = -1 if about.dest is None else about.dest
    return resolve_target(run, model.tokenizer, about.target, about.versus, dest)


def _strongest(run: "Recording", target: "Target") -> Head:
    from circuitview.core.ov import strongest_head

    return strongest_head(run, target)
