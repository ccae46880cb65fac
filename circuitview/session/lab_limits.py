"""Why a question can't be asked, known before anything runs, and how many runs it takes.

Only what follows from the question, the model's sizes and whether a file is there; what a tokenizer
or the text itself has to say comes when it runs. Nothing heavy.
"""

from pathlib import Path as FilePath

from circuitview.core.ablation.sites import Site, parse_each
from circuitview.core.config import ModelConfig
from circuitview.core.names import CircuitviewError
from circuitview.session.lab import Question

_ONLY_HEADS = "only heads have a pattern: choose each head, pairs, or another kind"


def reason_against(question: Question, config: ModelConfig) -> str | None:
    """Why `question` can't be run on a model of `config`, in one line; None where it can."""
    reasons = (_about_cases, _about_sites, _about_kind, _about_metric, _about_files)
    found = (reason(question, config) for reason in reasons)
    return next((text for text in found if text is not None), None)


def count_sites(question: Question, config: ModelConfig) -> int:
    """How many rows it gives, at most."""
    n_chosen, n_heads = len(question.chosen), config.n_layers * config.n_heads
    match question.what:
        case "heads":
            return n_chosen or n_heads
        case "pairs":
            count = n_chosen or n_heads
            return count + count * (count - 1) // 2
        case "mlps":
            return n_chosen or config.n_layers
        case "orders" | "each-order":
            return config.n_layers + 1
        case "paths":
            return n_chosen or question.most
        case _:
            return n_chosen


def _about_cases(question: Question, _config: ModelConfig) -> str | None:
    if question.text or any(prompt.strip() for prompt in question.prompts):
        return None
    return "nothing to run: give a prompt or a text"


def _about_sites(question: Question, config: ModelConfig) -> str | None:
    try:
        sites = parse_each(question.chosen)
        for site in sites:
            site.require_in(config)
    except CircuitviewError as error:
        return str(error)
    match question.what:
        case "chosen" if not sites:
            return "nothing is selected: click a head or a path in the diagram, or name some"
        case "pairs":
            if any(
                len(site.heads) != 1 or site.mlps or site.paths or site.orders for site in sites
            ):
                return "pairs are of heads: name heads alone (0.3, 1.4)"
            if len(sites) == 1 or config.n_layers * config.n_heads < 2:
                return "a pair needs two heads"
        case "mlps" if config.attn_only:
            return "the model has no MLPs"
        case "paths" if not sites and question.text:
            return "the largest paths are those of a prompt's target: on a text, name the paths"
    return None


def _about_kind(question: Question, _config: ModelConfig) -> str | None:
    given = {name: value for name, value in question.parameters if value != ""}
    match question.what, question.kind:
        case "orders", kind if kind != "zero":
            return "paths up to an order are left out, not replaced: choose zero"
        case (("paths" | "mlps" | "each-order"), "pattern"):
            return _ONLY_HEADS
        case _, "pattern" if not _heads_alone(question):
            return _ONLY_HEADS
        case _, "resample" if not given:
            if not question.text and len(question.prompts) < 2:
                return "nothing to resample from: name another prompt, or a text"
    return None


def _heads_alone(question: Question) -> bool:
    sites = [Site.parse(text) for text in question.chosen]
    return all(not site.mlps and not site.paths and not site.orders for site in sites)


def _about_metric(question: Question, _config: ModelConfig) -> str | None:
    if question.metric == "difference" and (question.text or question.versus is None):
        return "a logit difference needs two tokens: name the one to subtract, or measure the logit"
    return None


def _about_files(question: Question, config: ModelConfig) -> str | None:
    if question.text and question.length is not None and question.length > config.n_ctx:
        return (
            f"windows of {question.length:,} tokens: the model reads up to {config.n_ctx:,}; "
            "choose as many or fewer"
        )
    read = str(dict(question.parameters).get("text", ""))
    for path, reader in ((question.text, ""), (read, f" for {question.kind} to read")):
        if path and (trouble := _trouble_with(path)):
            return f"{path}: {trouble}; name a text file{reader}"
    return None


def _trouble_with(path: str) -> str | None:
    """Why there is nothing to read at `path`; None where there may be."""
    try:
        if FilePath(path).is_dir():
            return "a folder"
        return None if FilePath(path).exists() else "no such file"
    except (OSError, ValueError) as error:  # the latter: a NUL in the name
        return getattr(error, "strerror", None) or "no name of a file"
