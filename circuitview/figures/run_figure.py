"""The picture of a run of the ablation lab, whichever belongs to what was asked.

Heads, MLPs, paths and selections: contribution against effect, or the effects as bars. Paths up to
each order: bars of the metric. Pairs: a matrix. The window and the command line draw through here.
"""

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
from circuitview.session.command_line import command_line
from circuitview.session.lab import Question, Run
from circuitview.session.run_words import asked_words, of_words

if TYPE_CHECKING:
    from circuitview.core.ablation.table import OrderRow, Row

    AnyRow = Row | OrderRow


def run_figure(run: Run, theme: Theme, width: float, height: float) -> Figure:
    """The picture of a finished run, with its heading, its rows in their order.

    Args:
        theme: whose colours.
        width, height: pixels.
    """
    return rows_figure(
        run.question,
        run.table.rows,
        clean=run.table.clean,
        theme=theme,
        width=width,
        height=height,
        title=run_title(run.question),
        note=of_words(run.question, run.model_name, run),
        description=provenance(run.question, run.model_name, run),
    )


def rows_figure(
    asked: Question,
    rows: "Sequence[AnyRow]",
    *,
    clean: float,
    theme: Theme,
    width: float,
    height: float,
    title: str = "",
    note: str = "",
    description: str = "",
    marked: Site | None = None,
    pairs: PairValue = "effect",
) -> Figure:
    """What is known of a run as the picture that belongs to it.

    Args:
        asked: what the run measures.
        rows: what is known so far, in the order in which a table is to have them.
        clean: the metric of the unchanged model.
        theme: whose colours.
        width, height: pixels.
        title, note: what was measured, and of which run.
        description: where the numbers come from.
        marked: the selected site.
        pairs: what a matrix of pairs shows.
    """
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
    if asked.what == "pairs":
        draw = partial(pair_figure, show=pairs)
    else:
        draw = partial(lab_figure, of_text=bool(asked.text))
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


def run_title(asked: Question) -> str:
    """What was done, as a heading: "Each head · zero · free"."""
    words = asked_words(asked)
    return words[:1].upper() + words[1:]


def provenance(asked: Question, model_name: str, run: Run | None = None) -> str:
    """Where the numbers come from: travels in every file.

    Args:
        model_name: short name of the model.
        run: all that was found, once it is done.
    """
    if run is None:
        lines = [f"circuitview {__version__}, model {model_name}, {asked.dtype}"]
    else:
        lines = [
            f"circuitview {run.version}, model {run.model_name}, {asked.dtype}",
            f"model files sha256 {run.model_hash}",
            f"{run.n_tokens} tokens in {run.n_cases} cases, sha256 {run.data_hash}",
        ]
        if run.donor_hash:
            lines.append(f"text that {asked.kind} reads, sha256 {run.donor_hash}")
    return "\n".join([*lines, command_line(asked)])
