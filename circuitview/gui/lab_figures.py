"""The pictures of one run: for export with heading and provenance, and bare beside the table."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from circuitview import __version__
from circuitview.core.ablation.sites import Site
from circuitview.figures.ablation import lab_figure
from circuitview.figures.figure import Figure
from circuitview.figures.order_bars import order_figure
from circuitview.figures.pair_grid import PairValue
from circuitview.figures.pair_matrix import pair_figure
from circuitview.figures.theme import Theme
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_words import asked_words, of_words, state_words
from circuitview.session.command_line import command_line

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
) -> Figure:
    """The run as a picture of its own.

    Args:
        rows: its rows, in the order in which a table is to have them.
        former: whether it is of something else than what the window shows.
        pairs: what a matrix of pairs shows.
    """
    title = asked_words(entry.question).capitalize()
    note = of_words(entry)
    if entry.state != "done":
        note += f"; {state_words(entry)}"
    if former:
        note += "; not of what is open now"
    return _figure(entry, rows, theme, width, height, marked, title, note, pairs)


def bare_figure(
    entry: LabRun,
    theme: Theme,
    width: float,
    height: float,
    marked: Site | None,
    pairs: PairValue = "effect",
) -> Figure:
    """The picture beside the table, which has the words."""
    rows = tuple(entry.rows.values())
    return _figure(entry, rows, theme, width, height, marked, "", "", pairs)


def clean_value(entry: LabRun) -> float | None:
    """The metric of the unchanged model, as far as is known."""
    if entry.run is not None:
        return entry.run.table.clean
    row = next(iter(entry.rows.values()), None)
    return None if row is None else row.value - row.effect


def _figure(
    entry: LabRun,
    rows: "Sequence[AnyRow]",
    theme: Theme,
    width: float,
    height: float,
    marked: Site | None,
    title: str,
    note: str,
    pairs: PairValue,
) -> Figure:
    asked, clean = entry.question, clean_value(entry) or 0.0
    description = "" if not title else _provenance(entry)
    if asked.what == "orders":
        ordered = sorted(cast("Sequence[OrderRow]", rows), key=lambda row: row.order)
        return order_figure(
            ordered,
            metric=asked.metric,
            clean=clean,
            theme=theme,
            width=width,
            height=height,
            title=title,
            note=note,
            description=description,
        )
    draw = partial(pair_figure, show=pairs) if asked.what == "pairs" else lab_figure
    return draw(
        cast("Sequence[Row]", rows),
        metric=asked.metric,
        clean=clean,
        frozen=asked.frozen,
        theme=theme,
        width=width,
        height=height,
        title=title,
        note=note,
        marked=marked,
        description=description,
    )


def _provenance(entry: LabRun) -> str:
    """Where the numbers come from: travels in every exported file."""
    lines = [f"circuitview {__version__}, model {entry.model_name}, {entry.question.dtype}"]
    if entry.run is not None:
        run = entry.run
        lines[0] = f"circuitview {run.version}, model {run.model_name}, {entry.question.dtype}"
        lines.append(f"model files sha256 {run.model_hash}")
        lines.append(f"{run.n_tokens} tokens in {run.n_cases} cases, sha256 {run.data_hash}")
    return "\n".join([*lines, command_line(entry.question)])
