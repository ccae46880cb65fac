"""What a run is called and what it is of, in words: over a figure, in a list, above a table."""

from pathlib import Path as FilePath
from typing import Final

from circuitview.core.ablation.metric import METRICS
from circuitview.session.lab import WHATS, Question, Run

# What the columns of a run are called wherever a person reads them; JSON and CSV keep the names
# that programs know.
REMOVED: Final = "removed"
UP_TO: Final = "paths up to"
CONTRIBUTION: Final = "contribution"
EFFECT: Final = "effect"
INTERACTION: Final = "interaction"
ABLATED: Final = "ablated"

_SHOWN = 48  # characters of a prompt
_READ = 24  # and of one that a kind reads
_SAME = "what is run"


def asked_words(question: Question) -> str:
    """What is taken away and what is put there: "each head · mean over a.txt · free"."""
    what = WHATS[question.what]
    if question.what == "chosen" and question.chosen:
        what = ", ".join(question.chosen[:3]) + (" …" if len(question.chosen) > 3 else "")
    held = "frozen" if question.frozen or question.what == "orders" else "free"
    kind = "" if question.what == "orders" else f" · {_put_words(question)}"
    return f"{what}{kind} · {held}"


def _put_words(question: Question) -> str:
    """What is put there, and where it comes from: "resampled from “…”"."""
    settings = dict(question.parameters)
    text, prompt = str(settings.get("text", "")), str(settings.get("prompt", ""))
    source = _quoted(prompt, _READ) if prompt else FilePath(text).name if text else ""
    match question.kind:
        case "mean":
            return f"mean over {source or _SAME}"
        case "resample":
            return f"resampled from {source or _SAME}"
        case "pattern":
            return f"pattern of {source}" if source else "own pattern"
    return question.kind


def _quoted(text: str, most: int) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= most else line[: most - 1] + '…'}”"


def ran_words(question: Question, run: Run | None = None) -> str:
    """What is run: the prompt in quotes, how many prompts, or the text's name and its windows, as
    many and as long as `run` found them."""
    if question.text:
        windows = question.windows if run is None else run.n_cases
        length = question.length if run is None else run.n_tokens // run.n_cases
        each = "" if length is None else f" of {length}"
        plural = "" if windows == 1 else "s"
        return f"{FilePath(question.text).name}, {windows} window{plural}{each}"
    if len(question.prompts) != 1:
        return f"{len(question.prompts)} prompts"
    return _quoted(question.prompts[0], _SHOWN)


def measured_words(question: Question) -> str:
    """What is measured: "target logit"; a text has no target, but a token after each."""
    title = METRICS[question.metric].title
    return title.replace("target", "next-token") if question.text else title


def of_words(question: Question, model_name: str, run: Run | None = None) -> str:
    """Model, what is run, and what is measured."""
    measured = measured_words(question)
    if run is not None and run.target:
        measured += f" ({run.target})"
    return f"{model_name} · {ran_words(question, run)} · {measured}"


def draws(question: Question) -> bool:
    """Whether anything is drawn with the seed."""
    if question.what == "orders" or question.kind != "resample":
        return False
    return not dict(question.parameters).get("prompt")
