"""`circuitview repeat`: a saved run once more, and whether its numbers are the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Annotated

import typer

from circuitview.cli.ablate import deliver, measured
from circuitview.cli.ablate_options import FormatOption
from circuitview.cli.figure_file import (
    FigureFile,
    FigureOption,
    ScaleOption,
    SizeOption,
    ThemeOption,
    TransparentOption,
)
from circuitview.cli.opening import Opening
from circuitview.cli.options import EvenIfLargeOption
from circuitview.cli.outcome import UNBALANCED, complain


def repeat(
    run: Annotated[
        FilePath, typer.Argument(metavar="RUN", help="The folder of a run that was saved.")
    ],
    form: FormatOption = "table",
    even_if_large: EvenIfLargeOption = False,
    figure: FigureOption = None,
    size: SizeOption = None,
    scale: ScaleOption = None,
    theme: ThemeOption = None,
    transparent: TransparentOption = False,
) -> None:
    """Repeat a saved run exactly, and say whether the numbers are equal.

    The same question is put to the same model, by as many threads; the result goes to stdout, and
    with --figure into a picture, as that of ablate does. A line on stderr says whether every number
    is equal bit by bit, or how far they are apart, column by column, and what has changed. Exit
    code 1 where they are not equal, or are those of other weights or of another text.
    """
    from circuitview.session.run_difference import difference, lacks_contributions
    from circuitview.session.run_file import open_run

    drawn = FigureFile.asked(figure, size, scale, theme, transparent)
    saved = open_run(run)
    asked = saved.question
    opening = Opening(asked.model, asked.device, asked.given, asked.tokenizer, even_if_large)
    with _threads(saved.threads):
        # Runs know of their threads since such windows are refused.
        again = measured(opening, asked, once_cut=saved.threads is None)
    deliver(again, form, drawn=drawn)
    found = difference(saved, again)
    if found is None:
        lacking = "; contributions were not kept then" if lacks_contributions(saved, again) else ""
        complain(f"every number is equal, bit by bit, to that in {run}{lacking}")
    else:
        complain(f"not as in {run}: {found}")
        raise typer.Exit(UNBALANCED)


@contextmanager
def _threads(wanted: int | None) -> Iterator[None]:
    """As many threads as a run had: the window leaves a core free, and how a sum is shared out
    changes its last bits."""
    import torch

    usual = torch.get_num_threads()
    if wanted is not None:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
