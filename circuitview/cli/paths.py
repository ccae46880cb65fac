"""`circuitview paths`: every path to a logit, as a table, as JSON or as CSV."""

from typing import Annotated, Literal

import typer

from circuitview.cli.opening import Opening, parse_config
from circuitview.cli.options import (
    BosOption,
    ConfigOption,
    DestOption,
    DeviceOption,
    DtypeOption,
    EvenIfLargeOption,
    ListOption,
    ModelArgument,
    PromptBOption,
    PromptOption,
    TargetOption,
    ThroughMlpsOption,
    TokenizerOption,
    TopOption,
    VersusOption,
)
from circuitview.cli.outcome import emit, emit_json
from circuitview.cli.question import Question

Format = Literal["table", "json", "csv"]


def paths(
    model: ModelArgument,
    prompt: PromptOption,
    target: TargetOption = None,
    versus: VersusOption = None,
    prompt_b: PromptBOption = None,
    dest: DestOption = -1,
    bos: BosOption = None,
    top: TopOption = 50,
    by_source: Annotated[
        bool,
        typer.Option(
            "--by-source",
            help="Say what starts at each position: as a list in each JSON term, a column each in "
            "CSV, the largest three in the table.",
        ),
    ] = False,
    through_mlps: ThroughMlpsOption = False,
    listed: ListOption = None,
    dtype: DtypeOption = "float32",
    device: DeviceOption = "cpu",
    config: ConfigOption = None,
    tokenizer: TokenizerOption = None,
    even_if_large: EvenIfLargeOption = False,
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = "table",
) -> None:
    """List the paths to a target's logit, and the sum that proves them.

    Attention patterns, norm scales and MLP outputs are held at what the model did on this prompt.
    Of very many paths the largest that were found are listed. What is not listed or what --top
    leaves out is summed exactly: terms + constant + remainder + error = logit. In CSV the last two
    rows are the constant b_U and the remainder, so that the column adds up too. Exit code 1 where
    the paths do not add up to the model's own logit. With --prompt-b every number is that of B
    minus that of A, and they add up to logit B − logit A.
    """
    opening = Opening(model, device, parse_config(config), tokenizer, even_if_large)
    question = Question(
        opening, prompt, target, versus, dest, bos, dtype, through_mlps, listed, prompt_b
    )
    opened, expansion = question.answer()
    from circuitview.cli import path_report

    if form == "json":
        emit_json(path_report.as_json(opened, expansion, top, by_source))
    elif form == "csv":
        emit(path_report.as_csv(expansion, top, by_source))
    else:
        asked = prompt if prompt_b is None else f"{prompt_b} − {prompt}"
        emit(path_report.as_table(opened, expansion, asked, top, by_source))
