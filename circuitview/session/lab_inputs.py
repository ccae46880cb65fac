"""What a question runs and what it takes away, once its model is open."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from circuitview.core.ablation.sites import (
    Site,
    all_heads,
    each_head,
    each_mlp,
    each_order,
    each_pair,
    parse_each,
)
from circuitview.core.config import ModelConfig
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.path import Path
from circuitview.core.progress import Progress
from circuitview.session.lab import Question

if TYPE_CHECKING:
    from circuitview.core.ablation.cases import Case
    from circuitview.core.model import Model
    from circuitview.core.recording import Recording
    from circuitview.core.target import Target

LENGTH = 128  # tokens of a window, where the model reads as many


def window_length(question: Question, config: ModelConfig) -> int:
    """How many tokens a window of the text has, BOS included.

    Raises:
        CircuitviewError: where one is asked for that the model can't read.
    """
    if question.length is None:
        return min(LENGTH, config.n_ctx)
    if question.length > config.n_ctx:
        raise CircuitviewError(
            f"windows of {question.length:,} tokens: the model reads up to {config.n_ctx:,}; "
            "choose as many or fewer"
        )
    return question.length


def cut_to(question: Question, n_ctx: int) -> Question:
    """`question` as it was once understood: windows of a kind's text that were longer than the
    model's context were cut to it without a word, and are now refused."""
    kept = tuple(
        (name, min(value, n_ctx) if name == "length" and isinstance(value, int) else value)
        for name, value in question.parameters
    )
    return replace(question, parameters=kept)


def cases_of(model: "Model", question: Question) -> "Generator[Progress, None, list[Case]]":
    """What is run, prompt by prompt or window by window.

    Raises:
        CircuitviewError: where that can't be run; one line.
    """
    from circuitview.core.ablation.cases import case_of, text_cases
    from circuitview.core.files import read_text

    if question.text:
        length = window_length(question, model.config)
        text = read_text(question.text)
        if not text.strip():
            raise CircuitviewError(f"{question.text}: the file is empty; name one with text")
        bos = question.prepend_bos
        return list(text_cases(model, text, length, question.windows, bos))
    cases = []
    for place, text in enumerate(question.prompts):
        yield Progress(place, len(question.prompts))
        recording, target = _aimed(model, question, text)
        cases.append(case_of(recording.prompt, target))
    return cases


def _aimed(model: "Model", question: Question, text: str) -> "tuple[Recording, Target]":
    from circuitview.core.target import resolve_target

    prompt = model.prompt(text, question.prepend_bos)
    recording = model.run(prompt, question.dtype)
    dest = -1 if question.dest is None else question.dest
    # What is subtracted is no part of any other metric, nor of the contribution beside it.
    versus = question.versus if question.metric == "difference" else None
    target = resolve_target(recording, model.tokenizer, question.target, versus, dest)
    return recording, target


def sites_of(
    model: "Model", question: Question, cases: "list[Case]"
) -> Generator[Progress, None, tuple[Site, ...]]:
    """What is taken away, one row each.

    Yields while the largest paths are searched for.

    Raises:
        CircuitviewError: where something named does not go with what is asked; one line.
    """
    config = model.config
    if question.what == "mlps" and config.attn_only:
        raise CircuitviewError(f"{model.name} has no MLPs; choose heads or paths")
    named = named_sites(question)
    if named is not None:
        return named
    match question.what:
        case "heads":
            return each_head(config)
        case "pairs":
            return each_pair(_enough(all_heads(config)))
        case "mlps":
            return each_mlp(config)
        case "paths":
            return (yield from _largest_paths(model, question, cases))
    return each_order(config)


def named_sites(question: Question) -> tuple[Site, ...] | None:
    """What `question` itself names, one row each; None where that follows from the model.

    Raises:
        CircuitviewError: where something named does not go with what is asked; one line.
    """
    if question.what in ("orders", "each-order"):
        return None
    chosen = parse_each(question.chosen)
    match question.what:
        case "heads":
            _require_only(chosen, "heads", "heads")
        case "mlps":
            _require_only(chosen, "mlps", "MLPs")
        case "pairs" if chosen:
            return each_pair(_enough([_head(site) for site in chosen]))
        case "paths" if chosen:
            # "mlp 0" is a path here, that of the MLP's output to the target.
            return tuple(_paths_named(text) for text in question.chosen)
        case "chosen":
            return chosen
    return chosen or None


def _enough(heads: Sequence[Head]) -> Sequence[Head]:
    if len(heads) < 2:
        raise CircuitviewError("a pair needs two heads; name another one, or none for all")
    return heads


def _require_only(sites: tuple[Site, ...], part: str, named: str) -> None:
    """Pass only sites made of nothing but their `part`."""
    parts = ("heads", "mlps", "paths", "orders")
    for site in sites:
        if any(getattr(site, other) for other in parts if other != part):
            raise CircuitviewError(f"{site}: not among the {named}; choose what = chosen for it")


def _paths_named(text: str) -> Site:
    labels = [part.strip() for part in text.split("+")]
    return Site(paths=tuple(Path.parse("token" if one == "direct" else one) for one in labels))


def _head(site: Site) -> Head:
    if len(site.heads) != 1 or str(site) != str(site.heads[0]):
        raise CircuitviewError(f"{site} is not one head: pairs are of heads")
    return site.heads[0]


def _largest_paths(
    model: "Model", question: Question, cases: "list[Case]"
) -> Generator[Progress, None, tuple[Site, ...]]:
    """The largest paths of the first prompt, one row each."""
    from circuitview.core.expansion import expansion_steps

    target = cases[0].target
    if target is None:
        raise CircuitviewError(
            "the largest paths are those of a prompt's target: name the paths to measure on a text"
        )
    recording = model.run(cases[0].prompt, question.dtype)
    expansion = yield from expansion_steps(recording, target, listed=max(question.most, 1))
    expansion.require_balance()
    return tuple(Site(paths=(term.path,)) for term in expansion.terms[: question.most])
