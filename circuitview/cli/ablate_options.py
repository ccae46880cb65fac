"""Options of `circuitview ablate`, as annotations."""

from pathlib import Path as FilePath
from typing import Annotated, Literal

import typer

from circuitview.core.ablation.metric import MetricName
from circuitview.session.lab import What

Format = Literal["table", "json", "csv"]
KindName = Literal["zero", "mean", "resample", "pattern"]
# The fields of the kinds in core/ablation/kinds, which load torch; a test holds them together.
SETTINGS = "mean: text, length, windows; resample: prompt, text; pattern: prompt"

FormatOption = Annotated[Format, typer.Option("--format", help="How to write it.")]
PromptsOption = Annotated[
    list[str] | None,
    typer.Option("--prompt", metavar="TEXT", help="What the model reads; may be repeated."),
]
TextOption = Annotated[
    FilePath | None,
    typer.Option(
        "--text", metavar="FILE", help="A text file to read in windows, in place of a prompt."
    ),
]
LengthOption = Annotated[
    int | None,
    typer.Option(
        "--length",
        metavar="N",
        min=2,
        help="Tokens of a window of the text, BOS included; no more than the model reads. "
        "Default: 128, or what the model reads where that is less.",
    ),
]
WindowsOption = Annotated[
    int | None,
    typer.Option("--windows", metavar="N", min=1, help="Windows of the text at most. Default: 20."),
]
WhatOption = Annotated[
    What | None,
    typer.Option(
        "--what",
        help="What is taken away, one row each: each head, the largest paths, paths up to each "
        "order (number of heads), pairs of heads, each MLP, each order alone, or what --only "
        "names. Default: heads, or chosen with --only.",
        show_default=False,
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="SITE",
        help="Take away this alone, like 1.4, 'mlp 0', 'order 1', direct, 'token > 0.3 > 1.4', "
        "or '0.3 + 1.4' together; may be repeated. With --what heads, paths, pairs or mlps "
        "those among which.",
    ),
]
MostOption = Annotated[
    int | None,
    typer.Option(
        "--most",
        metavar="N",
        min=1,
        max=100_000,
        help="With --what paths: how many, the largest of the first prompt. Default: 200.",
    ),
]
KindOption = Annotated[
    KindName,
    typer.Option(
        "--with",
        help="What is put in its place: nothing, its mean over a text (without one, over what "
        "is run), what it wrote on something else, or its own values moved by the pattern of "
        "another prompt (without one, its own: a control). resample takes the prompt of --set "
        "prompt=TEXT, or a row drawn with --seed: of --set text=FILE, or of what is run. A single "
        "prompt can't be drawn from: name another one, or a text.",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help=f"A setting of --with, where a text is a file; may be repeated. Of {SETTINGS}.",
    ),
]
FrozenOption = Annotated[
    bool | None,
    typer.Option(
        "--frozen/--free",
        help="Whether patterns, norm scales and MLP outputs behind it stay as recorded, or all "
        "is computed anew. Default: --free; --what orders is always frozen.",
        show_default=False,
    ),
]
MetricOption = Annotated[
    MetricName | None,
    typer.Option(
        "--metric",
        help="What is measured: the target's logit, its difference to --versus, its "
        "probability, its loss, or the KL from the clean run (both in nats). Default: logit, "
        "difference with --versus; loss on a text and for --what orders.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TOKEN",
        help="The token that is measured, leading space included, like ' tea' or '␣tea'. "
        "Default: each prompt's top prediction at dest. On a text every next token.",
    ),
]
VersusOption = Annotated[
    str | None,
    typer.Option("--versus", metavar="TOKEN", help="The token to subtract in a logit difference."),
]
DestOption = Annotated[
    int | None,
    typer.Option(
        "--dest",
        metavar="N",
        help="The position that predicts, counted from 0; negative counts from the end. "
        "Default: the last.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**63 - 1, help="Of what resample draws.")
]
SaveOption = Annotated[
    FilePath | None,
    typer.Option(
        "--save",
        metavar="FOLDER",
        help="Keep the run in a new folder, for `circuitview repeat FOLDER` and the window.",
    ),
]
