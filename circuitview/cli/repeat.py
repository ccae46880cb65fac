"""`circuitview repeat`: a saved run once more, and whether its numbers are the same."""

from pathlib import Path as FilePath
from typing import Annotated

import typer

from circuitview.cli.ablate import FormatOption, measured, write
from circuitview.cli.opening import Opening
from circuitview.cli.options import EvenIfLargeOption
from circuitview.cli.outcome import UNBALANCED, complain


def repeat(
    run: Annotated[
        FilePath, typer.Argument(metavar="RUN", help="The folder of a run that was saved.")
    ],
    form: FormatOption = "table",
    even_if_large: EvenIfLargeOption = False,
) -> None:
    """Repeat a saved run exactly, and say whether the numbers are equal.

    The same question is put to the same model; the result goes to stdout as that of ablate does. A
    line on stderr says whether every number is equal bit by bit, or how far they are apart and what
    has changed. Exit code 1 where they are not equal.
    """
    from circuitview.session.lab import difference
    from circuitview.session.run_file import open_run

    saved = open_run(run)
    asked = saved.question
    opening = Opening(asked.model, asked.device, asked.given, asked.tokenizer, even_if_large)
    again = measured(opening, asked)
    write(again, form)
    found = difference(saved, again)
    if found is None:
        complain(f"every number is equal, bit by bit, to that in {run}")
    else:
        complain(f"the numbers differ from those in {run}: {found}")
        raise typer.Exit(UNBALANCED)
