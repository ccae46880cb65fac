"""The pictures of one run: for export with heading and provenance, and bare beside the table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from circuitview.core.ablation.sites import Site
from circuitview.figures.figure import Figure
from circuitview.figures.pair_grid import PairValue
from circuitview.figures.run_figure import provenance, rows_figure, run_title
from circuitview.figures.theme import Theme
from circuitview.gui.lab_queue import LabRun
from circuitview.session.run_words import of_words

if TYPE_CHECKING:
    from circuitview.core.ablation.table import OrderRow, Row

    AnyRow = Row | OrderRow


def run_figure(
    entry: LabRun,
    rows: "Sequence[AnyRow]",
    theme: Theme,
    width: float,
    height: float,
    *,
    marked: Site | None = None,
    former: bool = False,
    pairs: PairValue = "effect",
    state: str = "",
) -> Figure:
    """The run as a picture of its own.

    Args:
        rows: its rows, in the order in which a table is to have them.
        former: whether it is of something else than what the window shows.
        pairs: what a matrix of pairs shows.
        state: how it stands, where it is not done.
    """
    note = of_words(entry.question, entry.model_name, entry.run)
    if entry.state != "done":
        note += f"; {state or entry.state}"
    if former:
        note += "; not of what is open now"
    return rows_figure(
        entry.question,
        rows,
        clean=clean_value(entry) or 0.0,
        theme=theme,
        width=width,
        height=height,
        title=run_title(entry.question),
        note=note,
        description=provenance(entry.question, entry.model_name, entry.run),
        marked=marked,
        pairs=pairs,
    )


def bare_figure(
    entry: LabRun,
    theme: Theme,
    width: float,
    height: float,
    marked: Site | None,
    pairs: PairValue = "effect",
) -> Figure:
    """The picture beside the table, which has the words."""
    return rows_figure(
        entry.question,
        tuple(entry.rows.values()),
        clean=clean_value(entry) or 0.0,
        theme=theme,
        width=width,
        height=height,
        marked=marked,
        pairs=pairs,
    )


def clean_value(entry: LabRun) -> float | None:
    """The metric of the unchanged model, as far as is known."""
    if entry.run is not None:
        return entry.run.table.clean
    row = next(iter(entry.rows.values()), None)
    return None if row is None else row.value - row.effect
