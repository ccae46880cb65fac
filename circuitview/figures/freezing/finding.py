"""Whichever experiment was run, as a figure that says what it is of."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from circuitview import __version__
from circuitview.figures.enlarge import enlarged, enlargement
from circuitview.figures.figure import Figure, Group, Image, Item
from circuitview.figures.freezing.linearity import DEFINED, linearity_figure
from circuitview.figures.freezing.prompts import quoted, quoted_pair
from circuitview.figures.freezing.row import row_figure
from circuitview.figures.freezing.swap import SIDE_BY_SIDE, swap_figure
from circuitview.figures.heading import SUBTITLE_SIZE, heading_room
from circuitview.figures.text_width import width as text_width
from circuitview.figures.theme import Theme
from circuitview.session import numbers
from circuitview.session.freezing import FreezingQuestion

if TYPE_CHECKING:  # torch loads only where something is computed
    from circuitview.core.freezing.linearity import Linearity
    from circuitview.core.freezing.row import TwoRows
    from circuitview.core.freezing.swap import Swap
    from circuitview.core.prompt import Prompt
    from circuitview.session.freezing import Finding

FORMER = "Of another question: "  # as over an ablation run
_PALE = 0.4  # opacity, as of an ablation's plot
_MOST_ROWS = 60


def finding_figure(
    question: FreezingQuestion,
    found: "Finding",
    *,
    theme: Theme,
    width: float,
    height: float,
    former: bool = False,
    pale: bool = False,
) -> Figure:
    """The figure of what `question` has found.

    Args:
        question: what was asked.
        found: its answer.
        theme: whose colours.
        width, height: pixels.
        former: whether it is not of what the window asks by now; the heading says so.
        pale: whether what is under the heading is drawn pale.
    """
    factor = enlargement(width, height)
    wide, high = width / factor, height / factor
    draw = {"linearity": _linearity, "swap": _swap, "row": _row}[question.experiment]
    lead = FORMER if former else ""
    head = _Head(lead, heading_room(wide), theme.accent if former else None)
    figure = draw(question, found, head, theme, wide, high)
    if pale:
        title, *rest = figure.items
        figure = replace(figure, items=(title, *(_paled(item) for item in rest)))
    return enlarged(figure, factor)


class _Head(NamedTuple):
    """What the lines under a title begin with, the pixels each has, and the first one's colour."""

    lead: str
    room: float
    ink: str | None


def _linearity(
    question: FreezingQuestion,
    found: "Finding",
    head: _Head,
    theme: Theme,
    wide: float,
    high: float,
) -> Figure:
    line = cast("Linearity", found)
    a = quoted("a: ", question.about.prompt, SUBTITLE_SIZE, head.room)
    if line.shuffled:
        b = f"b: the same tokens in another order, seed {question.seed}"
    else:
        a, b = quoted_pair(
            ("a: ", "b: "), (question.about.prompt, question.other), SUBTITLE_SIZE, head.room
        )
    run = f"{head.lead}{_run_line(line.prompt, line.dtype)}, all positions"
    seed = f"\nseed {question.seed}" if line.shuffled else ""
    return linearity_figure(
        line,
        subtitle="\n".join((run, a, b, DEFINED)),
        theme=theme,
        width=wide,
        height=high,
        ink=head.ink,
        description=_origin(line.prompt, line.dtype) + f"\nb: {' '.join(line.other)}{seed}",
    )


def _swap(
    question: FreezingQuestion,
    found: "Finding",
    head: _Head,
    theme: Theme,
    wide: float,
    high: float,
) -> Figure:
    swapped = cast("Swap", found)
    dest = swapped.target.dest
    run = (
        f"{head.lead}{_run_line(swapped.prompt, swapped.dtype)}, target {swapped.target} at dest "
        f"{dest} ({swapped.prompt.labels[dest]})"
    )
    clean = f", clean logit {numbers.logits(swapped.clean)}"
    room = head.room - text_width(clean, SUBTITLE_SIZE)
    asked = quoted("", question.about.prompt, SUBTITLE_SIZE, room) + clean
    return swap_figure(
        swapped,
        subtitle=f"{run}\n{asked}",
        theme=theme,
        width=wide,
        height=high,
        ink=head.ink,
        description=_origin(swapped.prompt, swapped.dtype)
        + f"\ntarget {swapped.target} at dest {dest}, clean {swapped.clean!r}\n"
        "frozen: patterns, norm scales and MLP outputs of the clean run\n"
        f"frozen {swapped.frozen!r}, paths {swapped.predicted!r}, free "
        f"{swapped.free!r}, error {numbers.error(swapped.error)}",
    )


def _row(
    question: FreezingQuestion,
    found: "Finding",
    head: _Head,
    theme: Theme,
    wide: float,
    high: float,
) -> Figure:
    rows = cast("TwoRows", found)
    prompts = question.about.prompt, question.other
    a, b = quoted_pair(("A: ", "B: "), prompts, SUBTITLE_SIZE, head.room)
    return row_figure(
        rows,
        subtitle=f"{head.lead}{_run_line(rows.prompt_a, rows.dtype)}\n{a}\n{b}",
        theme=theme,
        width=wide,
        height=high,
        ink=head.ink,
        description=f"A: {_origin(rows.prompt_a, rows.dtype)}\n"
        f"B: {_origin(rows.prompt_b, rows.dtype)}",
    )


def _paled(item: Item) -> Item:
    if isinstance(item, Group):
        return replace(item, items=tuple(_paled(part) for part in item.items))
    return item if isinstance(item, Image) else replace(item, opacity=_PALE * item.opacity)


def height_for(question: FreezingQuestion, found: "Finding", width: float) -> float:
    """How high a figure of `width` has to be to show all that is worth it, in pixels."""
    match question.experiment:
        case "linearity":
            return 236.0
        case "swap":
            return 316.0 if width >= SIDE_BY_SIDE else 476.0
        case "row":
            return 144.0 + 22.0 * min(len(cast("TwoRows", found).same), _MOST_ROWS)


def _run_line(prompt: "Prompt", dtype: str) -> str:
    return f"{prompt.model}, {dtype}"


def _origin(prompt: "Prompt", dtype: str) -> str:
    tokens = " ".join(
        f"{label}({token})" for label, token in zip(prompt.labels, prompt.token_ids, strict=True)
    )
    return f"circuitview {__version__}, model {prompt.model}, {dtype}\n{tokens}"
