"""The ablation lab: what is asked of a run, and what a run has found.

A Question is all plain values: as it stands it goes into a file, onto a command line, or into the
worker, and the same question of the same model gives the same numbers. torch is imported only where
something is measured.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path as FilePath
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from circuitview.core.ablation.metric import MetricName
from circuitview.core.device import DeviceName
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.places import find_place
from circuitview.core.progress import Progress

if TYPE_CHECKING:
    from circuitview.core.ablation.cases import Case
    from circuitview.core.ablation.kinds.kind import Kind
    from circuitview.core.ablation.table import AblationTable
    from circuitview.core.model import Model

What = Literal["heads", "paths", "orders", "pairs", "mlps", "each-order", "chosen"]

WHATS: Mapping[What, str] = {
    "heads": "each head",
    "paths": "each path",
    "orders": "paths by order",
    "pairs": "pairs of heads",
    "mlps": "each MLP",
    "each-order": "each order alone",
    "chosen": "a selection",
}


LARGEST = 2**63 - 1  # of what is counted, and of a seed: what other programs can read
OF_TEXT = ("length", "windows")  # settings that say how the text is read which a kind is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be measured.

    Attributes:
        model, device, given, tokenizer, dtype: as in State.
        what: what is taken away, one row each; "orders" is path ablation: paths up to each order,
            always frozen.
        chosen: sites by name. With "chosen" one row each; with "heads" and "pairs" the heads, with
            "mlps" the layers ("mlp 0"), with "paths" the paths; empty takes all, or, of the paths,
            the `most` largest of the first prompt. Of orders always all.
        kind, parameters: what is put in their place, by name and value.
        frozen: whether all else is held as recorded.
        prompts: what is run, where `text` is ""; target, versus and dest are of these alone.
        text: a text file, read in windows of `length` tokens, `windows` at most; a length of None
            is 128, or what the model reads where that is less.
        target, versus, dest: of each prompt, as in State; a target of None is each one's own top
            prediction, a dest of None the last position, and versus counts in a difference only.
        prepend_bos: of the prompts, of the windows of a text, and of what a kind reads.
        seed: of what is drawn.
        most: how many paths.
    """

    model: str
    what: What = "heads"
    chosen: tuple[str, ...] = ()
    kind: str = "zero"
    parameters: tuple[tuple[str, str | int], ...] = ()
    frozen: bool = False
    metric: MetricName = "logit"
    prompts: tuple[str, ...] = ()
    text: str = ""
    length: int | None = None
    windows: int = 20
    target: str | None = None
    versus: str | None = None
    dest: int | None = None
    prepend_bos: bool | None = None
    dtype: DtypeName = "float32"
    device: DeviceName = "cpu"
    given: tuple[tuple[str, str], ...] = ()
    tokenizer: str | None = None
    seed: int = 0
    most: int = 200


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Run:
    """What a question has found.

    Attributes:
        table: the numbers.
        model_name, model_hash: of the model that was run; the hash is of its weight files.
        data_hash: of the tokens that were run.
        donor_hash: of the text that the kind read, whole; "" where it read none.
        n_tokens: how many those are, and `n_cases` in how many prompts or windows.
        target: the target as shown ("·tea"), or "" for a text; of several prompts their own.
        version: of this program.
        seconds: how long it took.
        soft_cap: the model's on its logits, before which logits and differences are measured, or
            None.
        threads: how many shared each sum: with others the last bits differ. None where that is not
            known.
    """

    question: Question
    table: "AblationTable"
    model_name: str
    model_hash: str
    data_hash: str
    n_tokens: int
    n_cases: int
    target: str
    version: str
    seconds: float = 0.0
    soft_cap: float | None = None
    donor_hash: str = ""
    threads: int | None = None


def run_question(model: "Model", question: Question) -> Generator[Progress, None, Run]:
    """Measure what `question` asks of `model`, which is open.

    Yields what core.ablation.lab.ablate yields: its partial results are tuples of rows. Before,
    while weight files are hashed and the largest paths searched for, they are what is being done,
    as a text.

    Raises:
        CircuitviewError: where something that is asked can't be done; one line.
    """
    import torch

    import circuitview
    from circuitview.core.ablation.by_order import ablate_orders
    from circuitview.core.ablation.lab import ablate
    from circuitview.core.files import read_text
    from circuitview.core.fingerprint import hash_of_model, hash_of_text, hash_of_tokens
    from circuitview.session.expansions import soft_cap
    from circuitview.session.lab_inputs import cases_of, sites_of

    began = perf_counter()
    kind = kind_of(question)
    require_consistent(question)
    # First: a run must not be lost because its model was moved meanwhile.
    model_hash = yield from hash_of_model(question.model)
    donor = str(dict(question.parameters).get("text", ""))
    donor_hash = hash_of_text(read_text(donor)) if donor else ""
    yield Progress(0, 1)
    cases = yield from cases_of(model, question)
    if question.what == "orders":
        table = yield from ablate_orders(model, cases, metric=question.metric, dtype=question.dtype)
    else:
        sites = yield from sites_of(model, question, cases)
        table = yield from ablate(
            model,
            cases,
            sites,
            kind,
            metric=question.metric,
            frozen=question.frozen,
            dtype=question.dtype,
            seed=question.seed,
            prepend_bos=question.prepend_bos,
        )
    return Run(
        question=question,
        table=table,
        model_name=model.name,
        model_hash=model_hash,
        data_hash=hash_of_tokens(case.prompt.token_ids for case in cases),
        n_tokens=sum(len(case.prompt) for case in cases),
        n_cases=len(cases),
        target=_target_shown(cases),
        version=circuitview.__version__,
        seconds=perf_counter() - began,
        soft_cap=soft_cap(model.config),
        donor_hash=donor_hash,
        threads=torch.get_num_threads(),
    )


def _target_shown(cases: "Sequence[Case]") -> str:
    targets = {str(case.target) for case in cases if case.target is not None}
    return targets.pop() if len(targets) == 1 else "their own" if targets else ""


def kind_of(question: Question) -> "Kind":
    """What is put in the place of what is taken away.

    Raises:
        CircuitviewError: where there is no such kind, or one of its settings is at fault.
    """
    from circuitview.core.ablation.kinds import kind_named

    kind = kind_named(question.kind)
    known = {one.name: one for one in fields(kind)}
    if len(dict(question.parameters)) < len(question.parameters):
        raise CircuitviewError(f"{question.kind}: a setting is given twice; give it once")
    for name, value in question.parameters:
        if name not in known:
            raise CircuitviewError(
                f"{question.kind} has no setting {name!r}; it has {', '.join(known) or 'none'}"
            )
        default, limits = known[name].default, known[name].metadata
        if type(value) is not type(default):
            wanted = "a whole number" if isinstance(default, int) else "a text"
            raise CircuitviewError(f"{question.kind}: {name} is {wanted}, not {value!r}")
        low, high = limits["low"], limits["high"]
        if isinstance(value, int) and not (low or 0) <= value <= (value if high is None else high):
            raise CircuitviewError(f"{question.kind}: {name} is {low:,} to {high:,}, not {value:,}")
    return kind(**dict(question.parameters))


def in_effect(parameters: tuple[tuple[str, str | int], ...]) -> tuple[tuple[str, str | int], ...]:
    """Those of a kind's `parameters` that change something: how a text is read is nothing without
    one."""
    given = tuple((name, value) for name, value in parameters if value != "")
    if "text" in dict(given):
        return given
    return tuple((name, value) for name, value in given if name not in OF_TEXT)


def require_consistent(question: Question) -> None:
    """Pass only a question whose parts go together.

    Raises:
        CircuitviewError: naming the two that don't, and what to do.
    """
    if question.metric == "difference" and question.text:
        raise CircuitviewError(
            "a logit difference is of a prompt's two tokens; of a text measure the loss, the logit "
            "of each next token, its probability or the KL"
        )
    alone = ("prompts", "target", "versus", "dest")
    alien = [name for name in alone if getattr(question, name) not in ((), None)]
    if question.text and alien:
        raise CircuitviewError(
            f"a text is measured at every next token, and alone: leave out {', '.join(alien)}"
        )
    if question.seed < 0:
        raise CircuitviewError(f"seed {question.seed}: choose 0 or more")
    if question.seed > LARGEST:
        raise CircuitviewError(f"seed {question.seed}: choose {LARGEST} or less")
    if question.what == "paths" and question.most < 1:
        raise CircuitviewError(f"{question.most} paths: choose 1 or more")
    if question.what == "orders" and question.kind != "zero":
        raise CircuitviewError(
            "paths up to an order are left out, not replaced: choose zero, or each order alone"
        )


def located(question: Question) -> Question:
    """`question` with each file that it names named by its whole path, so that it can be asked
    from another folder."""
    kept = tuple(
        (name, _whole(value) if name == "text" and isinstance(value, str) else value)
        for name, value in question.parameters
    )
    file = question.tokenizer
    return replace(
        question,
        model=_whole_model(question.model),
        text=_whole(question.text),
        parameters=kept,
        tokenizer=file if file is None or file == "numbers" else _whole(file),
    )


def _whole(path: str) -> str:
    return str(FilePath(path).expanduser().absolute()) if path else path


def _whole_model(named: str) -> str:
    try:
        place = find_place(named)
    except CircuitviewError:  # gone by now
        return named
    return _whole(named) if place.kind in ("folder", "file") else named
