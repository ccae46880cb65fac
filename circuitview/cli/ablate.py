"""`circuitview ablate`: what the model does without its heads, paths, orders or MLPs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from circuitview.cli.ablate_options import (
    SETTINGS,
    DestOption,
    Format,
    FormatOption,
    FrozenOption,
    KindOption,
    LengthOption,
    MetricOption,
    MostOption,
    OnlyOption,
    PromptsOption,
    SaveOption,
    SeedOption,
    SettingsOption,
    TargetOption,
    TextOption,
    VersusOption,
    WhatOption,
    WindowsOption,
)
from circuitview.cli.figure_file import (
    FigureFile,
    FigureOption,
    ScaleOption,
    SizeOption,
    ThemeOption,
    TransparentOption,
)
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
from circuitview.session.lab import OF_TEXT, Question, What

if TYPE_CHECKING:  # torch is loaded when the model is opened
    from circuitview.core.progress import Progress
    from circuitview.session.lab import Run


def ablate(
    model: ModelArgument,
    prompts: PromptsOption = None,
    text: TextOption = None,
    length: LengthOption = None,
    windows: WindowsOption = None,
    what: WhatOption = None,
    only: OnlyOption = None,
    most: MostOption = None,
    kind: KindOption = "zero",
    settings: SettingsOption = None,
    frozen: FrozenOption = None,
    metric: MetricOption = None,
    target: TargetOption = None,
    versus: VersusOption = None,
    dest: DestOption = None,
    bos: BosOption = None,
    seed: SeedOption = 0,
    dtype: DtypeOption = "float32",
    device: DeviceOption = "cpu",
    config: ConfigOption = None,
    tokenizer: TokenizerOption = None,
    even_if_large: EvenIfLargeOption = False,
    form: FormatOption = "table",
    save: SaveOption = None,
    figure: FigureOption = None,
    size: SizeOption = None,
    scale: ScaleOption = None,
    theme: ThemeOption = None,
    transparent: TransparentOption = False,
) -> None:
    """Measure what is lost without a head, a path, an order or an MLP.

    A contribution is bookkeeping, an effect an experiment: each row has both. ablated (in JSON and
    CSV: value) is what is measured without it, effect = ablated minus clean, contribution = the sum
    of the paths removed, to the target's logit, or in a text to the mean logit of its next tokens.
    A head takes its value bias along, which the list of paths counts under the bias of its layer.
    --frozen with --with zero, the effect on a logit is minus the contribution. Of several prompts
    or windows the mean, and its standard error. For --what orders the value is that with paths up
    to the order, positions and biases among them; marginal is what the order adds. The contribution
    of order 0 leaves out b_U, the unembedding's constant; the value holds it.
    """
    cases = _Cases(tuple(prompts or ()), text, length, windows, target, versus, dest)
    sites = _Sites(what or ("chosen" if only else "heads"), tuple(only or ()), most, frozen)
    question = Question(
        model=model,
        **cases.asked(),
        **sites.asked(),
        kind=kind,
        parameters=parse_settings(kind, settings),
        metric=_metric(metric, versus, text, sites.what),
        prepend_bos=bos,
        dtype=dtype,
        device=device,
        given=parse_config(config),
        tokenizer=tokenizer,
        seed=seed,
    )
    if save is not None:
        from circuitview.session.run_file import require_new

        require_new(save)
    drawn = FigureFile.asked(figure, size, scale, theme, transparent)
    if save is not None and drawn is not None:
        drawn.require_beside(save)
    opening = Opening(model, device, question.given, tokenizer, even_if_large)
    deliver(measured(opening, question), form, save, drawn)


@dataclass(frozen=True, slots=True)
class _Cases:
    """The options that say what is run."""

    prompts: tuple[str, ...]
    text: FilePath | None
    length: int | None
    windows: int | None
    target: str | None
    versus: str | None
    dest: int | None

    def asked(self) -> dict[str, Any]:
        """Their fields of a Question.

        Raises:
            CircuitviewError: where neither or both of prompts and text are given, or something that
                goes with the other.
        """
        text = self.text
        if self.prompts and text is not None:
            raise CircuitviewError("--prompt and --text can't both be run; give one of them")
        if not self.prompts and text is None:
            raise CircuitviewError("nothing to run: give --prompt TEXT or --text FILE")
        alien = ("length", "windows") if text is None else ("target", "versus", "dest")
        for name in alien:
            if getattr(self, name) is not None:
                goes = "--text" if text is None else "--prompt"
                why = "" if text is None else "; a text is measured at every next token"
                raise CircuitviewError(f"--{name} goes with {goes}{why}")
        return {
            "prompts": self.prompts,
            "text": "" if text is None else str(text),
            "length": self.length,
            "windows": 20 if self.windows is None else self.windows,
            "target": self.target,
            "versus": self.versus,
            "dest": self.dest,
        }


@dataclass(frozen=True, slots=True)
class _Sites:
    """The options that say what is taken away, and what the rest does."""

    what: What
    only: tuple[str, ...]
    most: int | None
    frozen: bool | None

    def asked(self) -> dict[str, Any]:
        """Their fields of a Question.

        Raises:
            CircuitviewError: where they don't go together.
        """
        what, only = self.what, self.only
        if what == "chosen" and not only:
            raise CircuitviewError("--what chosen: name what to take away, with --only SITE")
        if only and what in ("orders", "each-order"):
            raise CircuitviewError(
                f"--only {only[0]!r}: --what {what} is of all orders; take --what chosen"
            )
        if self.most is not None and (what != "paths" or only):
            raise CircuitviewError("--most goes with --what paths, without --only")
        if what == "orders" and self.frozen is False:
            raise CircuitviewError(
                "--what orders is always frozen: only then do paths add up; leave out --free"
            )
        return {
            "what": what,
            "chosen": only,
            "most": 200 if self.most is None else self.most,
            "frozen": bool(self.frozen) or what == "orders",
        }


def measured(opening: Opening, question: Question, once_cut: bool = False) -> "Run":
    """What `question` finds, with a bar on stderr.

    Args:
        once_cut: whether it was asked when windows beyond the context were still cut to it.

    Raises:
        CircuitviewError: where something that is asked can't be done.
        StoppedError: after Ctrl-C, saying how far it came.
    """
    from circuitview.session.lab import run_question

    opened = opening.open(question.dtype)
    if once_cut:
        from circuitview.session.lab_inputs import cut_to

        question = cut_to(question, opened.config.n_ctx)
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


def deliver(
    run: "Run", form: Format, save: FilePath | None = None, drawn: FigureFile | None = None
) -> None:
    """Draw and keep the run where that is asked for, and write it to stdout, whatever fails.

    Raises:
        CircuitviewError: where it can't be drawn or kept; the first reason.
    """
    failures = []
    try:
        if drawn is not None:
            drawn.write(run)
    except CircuitviewError as error:
        failures.append(error)
    try:
        if save is not None:
            from circuitview.session.run_file import save_run

            save_run(run, save)
    except CircuitviewError as error:
        failures.append(error)
    write(run, form)
    for failure in failures:
        raise failure


def parse_settings(kind: str, pairs: Sequence[str] | None) -> tuple[tuple[str, str | int], ...]:
    """The settings that `--set NAME=VALUE …` gives for a kind.

    Raises:
        CircuitviewError: where one has no "=", is none of the kind's, comes twice, is no number
            where it has to be one, or says how a text is read where there is none.
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
        found[name] = _whole_number(name, value) if name in OF_TEXT else value
    for name in OF_TEXT:
        if name in found and not found.get("text"):
            raise CircuitviewError(
                f"--set {name} goes with --set text=FILE: without one, {kind} is over what is run"
            )
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
