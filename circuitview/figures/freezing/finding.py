"""Whichever experiment was run, as a figure that says what it is of."""

from typing import TYPE_CHECKING, cast

from circuitview import __version__
from circuitview.figures.enlarge import enlarged, enlargement
from circuitview.figures.figure import Figure
from circuitview.figures.freezing.linearity import linearity_figure
from circuitview.figures.freezing.row import row_figure
from circuitview.figures.freezing.swap import SIDE_BY_SIDE, swap_figure
from circuitview.figures.theme import Theme
from circuitview.session import numbers
from circuitview.session.freezing import FreezingQuestion

if TYPE_CHECKING:  # torch loads only where something is computed
    from circuitview.core.freezing.linearity import Linearity
    from circuitview.core.freezing.row import TwoRows
    from circuitview.core.freezing.swap import Swap
    from circuitview.core.prompt import Prompt
    from circuitview.session.freezing import Finding

_MOST_ROWS = 60


def finding_figure(
    question: FreezingQuestion,
    found: "Finding",
    *,
    theme: Theme,
    width: float,
    height: float,
    former: bool = False,
) -> Figure:
    """The figure of what `question` has found.

    Args:
        question: what was asked.
        found: its answer.
        theme: whose colours.
        width, height: pixels.
        former: whether it is of a model or prompt that is no longer shown; the heading says so.
    """
    factor = enlargement(width, height)
    wide, high = width / factor, height / factor
    lead = "of a former question: " if former else ""
    match question.experiment:
        case "linearity":
            line = cast("Linearity", found)
            seed = f"\nseed {question.seed}" if line.shuffled else ""
            figure = linearity_figure(
                line,
                subtitle=lead + _run_line(line.prompt, line.dtype),
                theme=theme,
                width=wide,
                height=high,
                description=_origin(line.prompt, line.dtype) + f"\nb: {' '.join(line.other)}{seed}",
            )
        case "swap":
            swapped = cast("Swap", found)
            figure = swap_figure(
                swapped,
                subtitle=lead
                + _run_line(swapped.prompt, swapped.dtype)
                + f", dest {swapped.target.dest}, clean {numbers.logits(swapped.clean)}",
                theme=theme,
                width=wide,
                height=high,
                description=_origin(swapped.prompt, swapped.dtype)
                + f"\ntarget {swapped.target} at dest {swapped.target.dest}\n"
                "frozen: patterns, norm scales and MLP outputs of the clean run\n"
                f"frozen {swapped.frozen!r}, paths {swapped.predicted!r}, free "
                f"{swapped.free!r}, error {numbers.error(swapped.error)}",
            )
        case "row":
            rows = cast("TwoRows", found)
            figure = row_figure(
                rows,
                subtitle=lead + _run_line(rows.prompt_a, rows.dtype),
                theme=theme,
                width=wide,
                height=high,
                description=f"A: {_origin(rows.prompt_a, rows.dtype)}\n"
                f"B: {_origin(rows.prompt_b, rows.dtype)}",
            )
    return enlarged(figure, factor)


def height_for(question: FreezingQuestion, found: "Finding", width: float) -> float:
    """How high a figure of `width` has to be to show all that is worth it, in pixels."""
    match question.experiment:
        case "linearity":
            return 220.0
        case "swap":
            return 300.0 if width >= SIDE_BY_SIDE else 460.0
        case "row":
            return 112.0 + 22.0 * min(len(cast("TwoRows", found).same), _MOST_ROWS)


def _run_line(prompt: "Prompt", dtype: str) -> str:
    return f"{prompt.model}, {dtype}"


def _origin(prompt: "Prompt", dtype: str) -> str:
    tokens = " ".join(
        f"{label}({token})" for label, token in zip(prompt.labels, prompt.token_ids, strict=True)
    )
    return f"circuitview {__version__}, model {prompt.model}, {dtype}\n{tokens}"
