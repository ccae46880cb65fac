"""Options that several commands share, as annotations."""

from typing import Annotated

import typer

from circuitview.core.answers import KEYS
from circuitview.core.device import DeviceName
from circuitview.core.names import DtypeName

MODEL_HELP = (
    "A bundled model's name, a folder, a .gguf, .safetensors, .pth or .pt file, or the name of a "
    "model in the Hugging Face cache. Nothing is fetched from the network."
)

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
DeviceOption = Annotated[
    DeviceName,
    typer.Option(
        "--device",
        help="Where a Hugging Face or GGUF model computes; others, and all sums, stay on the CPU.",
    ),
]
ConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="For a bare weights file: what it does not say of its config, like act_fn=gelu; may "
        f"be repeated. Keys: {', '.join(KEYS)}.",
    ),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="FILE",
        help="For a model without one: its tokenizer.json, or 'numbers' to type tokens as numbers.",
    ),
]
EvenIfLargeOption = Annotated[
    bool,
    typer.Option("--even-if-large", help="Open a model that does not fit into what is free."),
]
ThroughMlpsOption = Annotated[
    bool,
    typer.Option(
        "--through-mlps",
        help="Carry paths on through MLPs, the activation ratios of their neurons held; else an "
        "MLP's output is a source.",
    ),
]
PromptOption = Annotated[
    str, typer.Option("--prompt", metavar="TEXT", help="What the model reads.")
]
PromptBOption = Annotated[
    str | None,
    typer.Option(
        "--prompt-b",
        metavar="TEXT",
        help="A second prompt, B, of as many tokens: every number is then B's minus that of "
        "--prompt, A, with one target for both.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="TOKEN",
        help="The token whose logit is explained, leading space included, like ' tea' or '␣tea'. "
        "Default: the top prediction at dest.",
    ),
]
VersusOption = Annotated[
    str | None,
    typer.Option(
        "--versus",
        metavar="TOKEN",
        help="A token to subtract: every number is then the difference target − versus.",
    ),
]
DestOption = Annotated[
    int,
    typer.Option(
        "--dest",
        metavar="N",
        help="The position that predicts, counted from 0; negative counts from the end.",
    ),
]
BosOption = Annotated[
    bool | None,
    typer.Option(
        "--bos/--no-bos",
        help="Whether BOS stands in front. Default: as the model was trained; --no-bos changes "
        "nothing where it has none.",
        show_default=False,
    ),
]
TopOption = Annotated[
    int,
    typer.Option(
        "--top",
        metavar="K",
        min=0,
        help="List the K paths that contribute most; the others are summed exactly.",
    ),
]
ListOption = Annotated[
    int | None,
    typer.Option(
        "--list",
        metavar="N",
        min=1,
        max=1_000_000,
        help="How many paths to find and list where a model has very many, more than 5,000; of "
        "fewer all are. Default: 2,000.",
    ),
]
DtypeOption = Annotated[DtypeName, typer.Option("--dtype", help="The precision of the run.")]
