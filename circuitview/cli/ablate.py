"""`circuitview ablate`: what the model does without its heads, paths, orders or MLPs."""

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from circuitview.cli.opening import Opening, parse_config
from circuitview.cli.options import (
    BosOption,
    ConfigOption,
    DeviceOption,
    DtypeOption,
    EvenIfLargeOption,
    ModelArgument,
    TokenizerOption,
)
from circuitview.cli.outcome import emit, emit_json
from circuitview.cli.waiting import finished
from circuitview.core.ablation.metric import MetricName
from circuitview.core.names import CircuitviewError
from circuitview.session.lab import Question, What

if TYPE_CHECKING:  # torch is loaded when the model is opened
    from circuitview.core.progress import Progress
    from circuitview.session.lab import Run

Format = Literal["table", "json", "csv"]
FormatOption = Annotated[Format, typer.Option("--format", help="How to write it.")]
KindName = Literal["zero", "mean", "resample", "pattern"]
# The fields of the kinds in core/ablation/kinds, which load torch; a test holds them together.
SETTINGS = "mean: text, length, windows; resample: prompt, text; pattern: prompt"


def ablate(
    model: ModelArgument,
    prompts: Annotated[
        list[str] | None,
        typer.Option("--prompt", metavar="TEXT", help="What the model reads; may be repeated."),
    ] = None,
    text: Annotated[
        FilePath | None,
        typer.Option(
            "--text", metavar="FILE", help="A text file to read in windows, in place of a prompt."
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            "--length",
            metavar="N",
            min=2,
            help="Tokens of a window of the text, BOS included; at most what the model reads. "
            "Default: 128.",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(
            "--windows", metavar="N", min=1, help="Windows of the text at most. Default: 20."
        ),
    ] = None,
    what: Annotated[
        What | None,
        typer.Option(
            "--what",
            help="What is taken away, one row each: each head, the largest paths, paths up to each "
            "order (number of heads), pairs of heads, each MLP, each order alone, or what --only "
            "names. Default: heads, or chosen with --only.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="SITE",
            help="Take away this alone, like 1.4, 'mlp 0', 'order 1', direct, 'token > 0.3 > 1.4', "
            "or '0.3 + 1.4' together; may be repeated. With --what heads, paths, pairs or mlps "
            "those among which.",
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--most",
            metavar="N",
            min=1,
            max=100_000,
            help="With --what paths: how many, the largest of the first prompt. Default: 200.",
        ),
    ] = None,
    kind: Annotated[
        KindName,
        typer.Option(
            "--with",
            help="What is put in its place: nothing, its mean over a text (without one, over what "
            "is run), what it wrote on another prompt or a row drawn with --seed, or its own "
            "values moved by the pattern of another prompt (without one, its own: a control).",
        ),
    ] = "zero",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"A setting of --with, where a text is a file; may be repeated. Of {SETTINGS}.",
        ),
    ] = None,
    frozen: Annotated[
        bool | None,
        typer.Option(
            "--frozen/--free",
            help="Whether patterns, norm scales and MLP outputs behind it stay as recorded, or all "
            "is computed anew. Default: --free; --what orders is always frozen.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        MetricName | None,
        typer.Option(
            "--metric",
            help="What is measured: the target's logit, its difference to --versus, its "
            "probability, its loss, or the KL from the clean run (both in nats). Default: logit, "
            "difference with --versus; loss on a text and for --what orders.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="TOKEN",
            help="The token that is measured, leading space included, like ' tea' or '␣tea'. "
            "Default: each prompt's top prediction at dest. On a text every next token.",
        ),
    ] = None,
    versus: Annotated[
        str | None,
        typer.Option(
            "--versus", metavar="TOKEN", help="The token to subtract in a logit difference."
        ),
    ] = None,
    dest: Annotated[
        int | None,
        typer.Option(
            "--dest",
            metavar="N",
            help="The position that predicts, counted from 0; negative counts from the end. "
            "Default: the last.",
        ),
    ] = None,
    bos: BosOption = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=2**63 - 1, help="Of what is drawn.")
    ] = 0,
    dtype: DtypeOption = "float32",
    device: DeviceOption = "cpu",
    config: ConfigOption = None,
    tokenizer: TokenizerOption = None,
    even_if_large: EvenIfLargeOption = False,
    form: FormatOption = "table",
    save: Annotated[
        FilePath | None,
        typer.Option(
            "--save",
            metavar="FOLDER",
            help="Keep the run in a new folder, for `circuitview repeat FOLDER` and the window.",
        ),
    ] = None,
) -> None:
    """Measure what is lost without a head, a path, an order or an MLP.

    A contribution is bookkeeping, an effect an experiment: each row has both. effect = ablated
    minus clean, value = ablated, contribution = the sum of the paths taken away (of a prompt's
    logit; a text has none). A head takes its value bias along, which the list of paths counts under
    the bias of its layer. --frozen with --with zero, the effect on a logit is minus the
    contribution. Of several prompts or windows the mean, and its standard error. For --what orders
    the value is that with paths up to the order, positions and biases among them; marginal is what
    the order adds.
    """
    given = {"length": length, "windows": windows, "target": target, "versus": versus, "dest": dest}
    _require_cases(prompts, text, given)
    what = what or ("chosen" if only else "heads")
    _require_sites(what, only, most, frozen)
    question = Question(
        model=model,
        what=what,
        chosen=tuple(only or ()),
        kind=kind,
        parameters=parse_settings(kind, settings),
        frozen=bool(frozen) or what == "orders",
        metric=_metric(metric, versus, text, what),
        prompts=tuple(prompts or ()),
        text="" if text is None else str(text),
        length=128 if length is None else length,
        windows=20 if windows is None else windows,
        target=target,
        versus=versus,
        dest=dest,
        prepend_bos=bos,
        dtype=dtype,
        device=device,
        given=parse_config(config),
        tokenizer=tokenizer,
        seed=seed,
        most=200 if most is None else most,
    )
    if save is not None:
        from circuitview.session.run_file import require_new

        require_new(save)
    opening = Opening(model, device, question.given, tokenizer, even_if_large)
    run = measured(opening, question)
    if save is not None:
        _save(run, save, form)
    write(run, form)


def measured(opening: Opening, question: Question) -> "Run":
    """What `question` finds, with a bar on stderr.

    Raises:
        CircuitviewError: where something that is asked can't be done.
        StoppedError: after Ctrl-C, saying how far it came.
    """
    from circuitview.session.lab import run_question

    opened = opening.open(question.dtype)
    rows = _Rows()
    return finished(run_question(opened, question), "runs", rows.note, rows.stopped)


class _Rows:
    """Which rows have a number so far."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._runs = "0"

    def note(self, progress: "Progress") -> None:
        if not isinstance(progress.partial, str):
            self._runs = f"{progress.done:,} of {progress.total:,}"
        if isinstance(progress.partial, tuple):
            self._seen |= {str(row.site) for row in progress.partial}

    def stopped(self) -> str:
        count = len(self._seen)
        rows = f"{count:,} row" + ("" if count == 1 else "s")
        return f"stopped after {self._runs} runs, {rows} measured; nothing is written"


def write(run: "Run", form: Format) -> None:
    """Write a run to stdout."""
    from circuitview.session import run_text

    if form == "json":
        emit_json(run_text.as_json(run))
    elif form == "csv":
        emit(run_text.as_csv(run))
    else:
        emit(run_text.as_table(run))


def _save(run: "Run", folder: FilePath, form: Format) -> None:
    """Keep the run; where that fails it is at least written to stdout."""
    from circuitview.session.run_file import save_run

    try:
        save_run(run, folder)
    except CircuitviewError:
        write(run, form)
        raise


def parse_settings(kind: str, pairs: Sequence[str] | None) -> tuple[tuple[str, str | int], ...]:
    """The settings that `--set NAME=VALUE …` gives for a kind.

    Raises:
        CircuitviewError: where one has no "=", is none of the kind's, comes twice, or is no number
            where it has to be one.
    """
    found: dict[str, str | int] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise CircuitviewError(f"--set {pair!r} is not NAME=VALUE, like text=book.txt")
        known = _settings_of(kind)
        if name not in known:
            has = ", ".join(known) or "none"
            raise CircuitviewError(f"--set {name}: {kind} has no such setting; it has {has}")
        if name in found:
            raise CircuitviewError(f"--set gives {name} twice; give it once")
        found[name] = _whole_number(name, value) if name in ("length", "windows") else value
    return tuple(found.items())


def _settings_of(kind: str) -> list[str]:
    """The names of a kind's settings, from the list in the help."""
    by_kind = dict(part.split(": ") for part in SETTINGS.split("; "))
    return by_kind[kind].split(", ") if kind in by_kind else []


def _whole_number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise CircuitviewError(f"--set {name}={value}: give a whole number") from None


def _require_cases(
    prompts: Sequence[str] | None, text: FilePath | None, given: Mapping[str, object]
) -> None:
    """Pass either prompts or a text, and of `given`, by name, only what goes with that."""
    if prompts and text is not None:
        raise CircuitviewError("--prompt and --text can't both be run; give one of them")
    if not prompts and text is None:
        raise CircuitviewError("nothing to run: give --prompt TEXT or --text FILE")
    alien = ("length", "windows") if text is None else ("target", "versus", "dest")
    for name in alien:
        if given[name] is not None:
            goes = "--text" if text is None else "--prompt"
            why = "" if text is None else "; a text is measured at every next token"
            raise CircuitviewError(f"--{name} goes with {goes}{why}")


def _require_sites(
    what: What, only: Sequence[str] | None, most: int | None, frozen: bool | None
) -> None:
    """Pass only options that go with `what`."""
    if what == "chosen" and not only:
        raise CircuitviewError("--what chosen: name what to take away, with --only SITE")
    if only and what in ("orders", "each-order"):
        raise CircuitviewError(
            f"--only {only[0]!r}: --what {what} is of all orders; take --what chosen"
        )
    if most is not None and (what != "paths" or only):
        raise CircuitviewError("--most goes with --what paths, without --only")
    if what == "orders" and frozen is False:
        raise CircuitviewError(
            "--what orders is always frozen: only then do paths add up; leave out --free"
        )


def _metric(
    metric: MetricName | None, versus: str | None, text: FilePath | None, what: What
) -> MetricName:
    """What is measured where `metric` is asked for, or nothing is."""
    if metric is None:
        if versus is not None:
            return "difference"
        return "loss" if text is not None or what == "orders" else "logit"
    if metric == "difference" and text is not None:
        raise CircuitviewError(
            "--metric difference is of a prompt's two tokens; of a text measure loss, logit, "
            "probability or kl"
        )
    if metric == "difference" and versus is None:
        raise CircuitviewError("--metric difference needs the token to subtract, with --versus")
    if metric != "difference" and versus is not None:
        raise CircuitviewError(f"--versus goes with --metric difference, not with {metric}")
    return metric
