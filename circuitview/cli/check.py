"""`circuitview check`: whether a model does what the sums take for granted, layer by layer."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from circuitview.cli.opening import Opening, parse_config
from circuitview.cli.options import (
    ConfigOption,
    DeviceOption,
    DtypeOption,
    EvenIfLargeOption,
    ModelArgument,
    TokenizerOption,
)
from circuitview.cli.outcome import UNBALANCED, emit, emit_json
from circuitview.session import numbers

if TYPE_CHECKING:  # torch is loaded when the model is opened
    from circuitview.core.check import CheckReport, Comparison
    from circuitview.core.model import Model

Format = Literal["table", "json"]


def check(
    model: ModelArgument,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="TEXT",
            help="What the model reads. Default: a few tokens from all over its vocabulary.",
        ),
    ] = None,
    dtype: DtypeOption = "float32",
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = "table",
    device: DeviceOption = "cpu",
    config: ConfigOption = None,
    tokenizer: TokenizerOption = None,
    even_if_large: EvenIfLargeOption = False,
) -> None:
    """Check what exact paths take for granted, on one run of MODEL.

    In every layer: what attention and MLP write adds up in the stream, heads and b_O add up to what
    attention writes, a head mixes its values by its pattern. And at three dests: all paths add up
    to the logit. Each with the largest error. Exit code 1 where one of them fails; every other
    command refuses such a model.
    """
    opening = Opening(model, device, parse_config(config), tokenizer, even_if_large)
    opened = opening.open(dtype, checked=False)
    from circuitview.core.check import check_model

    asked = None if prompt is None else opened.prompt(prompt)
    report = check_model(opened, asked, dtype)
    if form == "json":
        emit_json(as_json(report))
    else:
        emit(as_table(opened, report))
    if not report.passed:
        raise typer.Exit(UNBALANCED)


def as_json(report: "CheckReport") -> dict[str, Any]:
    """What --format json writes; a number that is none is null."""
    failed = report.first_failure
    return {
        "model": report.model,
        "passed": report.passed,
        "failure": None if failed is None else failed.failure,
        "dtype": report.dtype,
        "stored": report.stored,
        "device": report.device,
        "tokens": list(report.labels),
        "tolerance": report.worst.tolerance,
        "identities": [_entry(found) for found in report.comparisons],
        "dests": [
            {
                "dest": dest.dest,
                "token": dest.label,
                "target": dest.target,
                "sum": _finite(dest.total),
                "logit": _finite(dest.logit),
                **_entry(dest.compared),
            }
            for dest in report.dests
        ],
    }


def _entry(found: "Comparison") -> dict[str, Any]:
    return {
        "identity": found.identity,
        "layer": found.layer,
        "error": _finite(found.error),
        "largest": _finite(found.largest),
        "relative": _finite(found.relative),
        "passed": found.passed,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_table(model: "Model", report: "CheckReport") -> str:
    """What --format table writes: a line a layer, the dests, and the verdict."""
    from circuitview.core.model import NativeModel

    config, names = model.config, report.identities
    layers = f"{config.n_layers} layers of {config.n_heads} heads"
    how = f"stored as {report.stored}, checked in {report.dtype} on {report.device}"
    lines = [
        f"{report.model}: run by {model.runs_by}, {layers}, {how}",
        f"{len(report.labels)} tokens: {' '.join(report.labels)}",
        "largest error of each identity, and its share of the largest entry:",
        "",
        *(f"  {letter}  {name}" for letter, name in zip(_letters(), names, strict=False)),
        "",
        "layer" + "".join(f"{letter:>15}" for letter, _ in zip(_letters(), names, strict=False)),
    ]
    if isinstance(model, NativeModel):
        lines.insert(
            2,
            "both sides are this runner's own: they show whether its parts fit together, no other "
            "program's word for them",
        )
    for layer in range(config.n_layers):
        found = report.of_layer(layer)
        lines.append(f"{layer:>5}" + "".join(f"{_errors(found[name]):>15}" for name in names))
    lines.append("")
    lines += [
        f"{found.identity}: {_errors(found)}" for found in report.comparisons if found.layer is None
    ]
    for dest in report.dests:
        lines.append(
            f"{dest.compared.identity} at dest {dest.dest} ({dest.label}) of {dest.target}: "
            f"{numbers.logits(dest.total, digits=4)} and {numbers.logits(dest.logit, digits=4)}, "
            f"{_errors(dest.compared)}"
        )
    return "\n".join([*lines, "", _verdict(report)]) + "\n"


def _letters() -> str:
    return "abcdefgh"


def _errors(found: "Comparison") -> str:
    mark = "" if found.passed else " !"
    return f"{numbers.error(found.error)} ({numbers.error(found.relative)}){mark}"


def _verdict(report: "CheckReport") -> str:
    failed, worst = report.first_failure, report.worst
    if failed is not None:
        return f"FAILED: {failed.failure}"
    return (
        f"passed: the largest relative error is {numbers.error(worst.relative)}, the tolerance "
        f"{numbers.error(worst.tolerance)}"
    )
