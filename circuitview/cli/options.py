"""Options that several commands share, as annotations."""

from typing import Annotated

import typer

from circuitview.core.names import DtypeName

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A bundled model's name, or a folder.")
]
PromptOption = Annotated[
    str, typer.Option("--prompt", metavar="TEXT", help="What the model reads.")
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
NoBosOption = Annotated[
    bool,
    typer.Option("--no-bos", help="Put no BOS in front; changes nothing where the model has none."),
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
DtypeOption = Annotated[DtypeName, typer.Option("--dtype", help="The precision of the run.")]
