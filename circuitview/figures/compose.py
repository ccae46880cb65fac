"""Core results as finished figures, the same for the command line and the window's exports.

What a figure says about its origin is composed here: the heading names the run; the description
that travels in the file holds version, model, tokens, target, precision, what was held, the sum.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from circuitview import __version__
from circuitview.core.names import AttentionMode, Head
from circuitview.figures.enlarge import enlarged, enlargement
from circuitview.figures.figure import Figure
from circuitview.figures.heading import MARGIN, heading
from circuitview.figures.heatmap import heatmap_figure
from circuitview.figures.ledger import Ledger, LedgerGroup, ledger
from circuitview.figures.ov_bars import OVRow
from circuitview.figures.ov_bars import ov_figure as bars_figure
from circuitview.figures.path_table import TableRow, table_figure
from circuitview.figures.theme import Theme
from circuitview.session import numbers
from circuitview.session.expansions import (
    B_MINUS_A,
    before_soft_cap,
    expansion_shown,
    explained,
    held_fixed,
    logit_name,
)

if TYPE_CHECKING:  # torch loads only where something is computed
    from circuitview.core.expansion import Expansion
    from circuitview.core.ov import OVBreakdown
    from circuitview.core.path import PathTerm
    from circuitview.core.prompt import Prompt

# What table_figure needs around its rows and for each, at least: rows are counted before drawing.
_TABLE_RIM, _TABLE_ROW = 24 + MARGIN, 19
_MODES: dict[AttentionMode, str] = {
    "pattern": "attention pattern",
    "scores": "scores before softmax",
    "value-weighted": "pattern × norm of what is moved",
}
_SENSES = {
    "token": "what the source's own embedding sends",
    "everything": "everything that its last hop carries",
}


def provenance(expansion: "Expansion") -> str:
    """Where the numbers come from, in a few lines: travels in every exported file."""
    prompt, target = expansion.recording.prompt, expansion.target
    between = expansion.between
    versus = "" if target.versus is None else f" − {target.versus_label} (id {target.versus})"
    error = numbers.error(expansion.error)
    shown = expansion_shown(expansion)
    named = logit_name(expansion) + before_soft_cap(expansion.recording.weights.config)
    if between is None:
        runs = [f"{len(prompt)} tokens with their ids: {_tokens(prompt)}"]
    else:
        runs = [f"{B_MINUS_A}: every number is that of prompt B minus that of prompt A"]
        runs += [
            f"{name}: {len(prompt)} tokens with their ids: {_tokens(one.recording.prompt)}; "
            f"logit {one.logit!r}"
            for name, one in zip("AB", between, strict=True)
        ]
    return "\n".join(
        [
            f"circuitview {__version__}, model {prompt.model}, {expansion.dtype}",
            *runs,
            f"target {target.label} (id {target.token}){versus} at dest {target.dest}",
            f"{held_fixed(expansion)} as recorded; norms folded into the weights",
            *([shown] if shown else []),
            f"sum {expansion.total!r}, {named} {expansion.logit!r}, error {error}",
        ]
    )


def _tokens(prompt: "Prompt") -> str:
    """Every token with its id."""
    return " ".join(
        f"{label}({token})" for label, token in zip(prompt.labels, prompt.token_ids, strict=True)
    )


def run_line(expansion: "Expansion") -> str:
    """Which run a figure is of, for its heading: model, target and dest."""
    prompt, target = expansion.recording.prompt, expansion.target
    shown = expansion_shown(expansion)
    compared = "" if expansion.between is None else f"{B_MINUS_A}, "
    return (
        f"{compared}{prompt.model}, target {target} at dest {target.dest} "
        f"({prompt.labels[target.dest]}), {expansion.dtype}" + (f", {shown}" if shown else "")
    )


def chain_name(heads: Sequence[Head]) -> str:
    """What a chain is called: "Head 1.4", "Virtual head 0.3 > 1.4"."""
    kind = "Head" if len(heads) == 1 else "Virtual head"
    return f"{kind} {' > '.join(map(str, heads))}"


def attention_figure(
    expansion: "Expansion",
    heads: tuple[Head, ...],
    mode: AttentionMode = "pattern",
    *,
    theme: Theme,
    width: float,
    height: float,
    source: int | None = None,
    values: npt.NDArray[np.float64] | None = None,
) -> Figure:
    """The heatmap of a head, or of a virtual head, with the target's dest outlined.

    Args:
        expansion: must balance.
        heads: the chain, nearest the source first.
        mode: what its cells hold.
        theme: whose colours.
        width, height: pixels.
        source: the src position to mark, or None.
        values: [dest, src], where they are known already.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
        CircuitviewError: for the scores of a virtual head, which has none.
    """
    expansion.require_balance()
    factor = enlargement(width, height)
    if values is None:
        from circuitview.core.difference import attention_of

        values = attention_of(expansion, heads, mode)
    compared = expansion.between is not None
    shown = f"{_MODES[mode]}, {B_MINUS_A}" if compared else _MODES[mode]
    figure = heatmap_figure(
        values,
        expansion.recording.prompt.labels,
        title=f"{chain_name(heads)}: {shown}",
        subtitle=run_line(expansion),
        mode=mode,
        theme=theme,
        width=width / factor,
        height=height / factor,
        dest=expansion.target.dest,
        source=source,
        description=provenance(expansion),
        difference=compared,
    )
    return enlarged(figure, factor)


def ov_figure(
    expansion: "Expansion",
    breakdown: "OVBreakdown",
    vocabulary: Sequence[str],
    *,
    theme: Theme,
    width: float,
    height: float,
) -> Figure:
    """A chain's part of the logit by source token: weight × column value = contribution.

    Args:
        expansion: must balance.
        breakdown: of the same recording and target.
        vocabulary: [d_vocab], the label of every token.
        theme: whose colours.
        width, height: pixels.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
    """
    expansion.require_balance()
    labels = expansion.recording.prompt.labels
    rows = [
        OVRow(
            label=label if labels.count(label) == 1 else f"{src} {label}",
            weight=float(breakdown.weight[src]),
            value=float(breakdown.value[src]),
            contribution=float(breakdown.contribution[src]),
            raises=tuple((vocabulary[token], value) for token, value in breakdown.raises[src]),
            lowers=tuple((vocabulary[token], value) for token, value in breakdown.lowers[src]),
        )
        for src, label in enumerate(labels)
    ]
    factor = enlargement(width, height)
    figure = bars_figure(
        rows,
        title=f"{chain_name(breakdown.heads)} by source: {_SENSES[breakdown.sense]}",
        subtitle=run_line(expansion),
        theme=theme,
        width=width / factor,
        height=height / factor,
        description=provenance(expansion),
    )
    return enlarged(figure, factor)


def paths_figure(
    expansion: "Expansion",
    top: int,
    *,
    theme: Theme,
    width: float,
    height: float,
    by_source: bool = True,
) -> Figure:
    """The paths as a table: groups with subtotals, then the sum and what it must equal.

    Args:
        expansion: must balance.
        top: how many paths are listed at most; fewer where there is no room, the rest summed.
        theme: whose colours.
        width, height: pixels.
        by_source: whether a column says where each path mostly starts.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
    """

    def fitting(capacity: int) -> list[TableRow]:
        rows = _fitting_rows(expansion, min(top, len(expansion.paths)), capacity)
        if by_source:
            return rows
        return [replace(row, cells=(row.cells[0], row.cells[2])) for row in rows]

    return rows_figure(
        expansion,
        ("path", "starts mostly at", "logits") if by_source else ("path", "logits"),
        fitting,
        title=f"Paths to {explained(expansion)}",
        theme=theme,
        width=width,
        height=height,
    )


def rows_figure(
    expansion: "Expansion",
    headers: Sequence[str],
    fitting: Callable[[int], Sequence[TableRow]],
    *,
    title: str,
    theme: Theme,
    width: float,
    height: float,
) -> Figure:
    """Rows that stand for all terms, under them the sum and what it must equal.

    Args:
        expansion: must balance.
        headers: the names of the columns, the amount last.
        fitting: gives the rows; asked for at most so many.
        title: what the table shows.
        theme: whose colours.
        width, height: pixels.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
    """
    expansion.require_balance()
    subtitle = run_line(expansion)
    factor = enlargement(width, height)
    _, below = heading(title, subtitle, theme, width / factor)
    capacity = int((height / factor - below - _TABLE_RIM) // _TABLE_ROW)
    closing = _closing_rows(expansion, len(headers))
    figure = table_figure(
        headers,
        [*fitting(capacity - len(closing)), *closing],
        title=title,
        subtitle=subtitle,
        theme=theme,
        width=width / factor,
        height=height / factor,
        description=provenance(expansion),
    )
    return enlarged(figure, factor)


def _fitting_rows(expansion: "Expansion", top: int, capacity: int) -> list[TableRow]:
    """The rows of the ledger with the most listed paths, up to `top`, that has room."""
    # Each path takes a line, each group one or two more: start near, then step down.
    for listed in range(min(top, max(capacity, 0)), 0, -1):
        rows = _rows(ledger(expansion, listed), expansion)
        if len(rows) <= capacity:
            return rows
    return _rows(ledger(expansion, 0), expansion)


def _rows(book: Ledger, expansion: "Expansion") -> list[TableRow]:
    labels = expansion.recording.prompt.labels
    return [row for group in book.groups for row in _group_rows(group, labels)]


def _closing_rows(expansion: "Expansion", n_columns: int) -> list[TableRow]:
    """The sum and what it must equal."""
    single = expansion.target.versus is None and expansion.between is None
    difference = "" if single else " difference"
    capped = before_soft_cap(expansion.recording.weights.config)
    closing: list[tuple[str, str | float]] = [
        ("sum", expansion.total),
        (f"{logit_name(expansion)}{capped}", expansion.logit),
        (f"probability{difference}", numbers.percent(expansion.probability)),
        ("error", numbers.error(expansion.error)),
    ]
    between = ("",) * (n_columns - 2)
    return [TableRow((name, *between, value), "total") for name, value in closing]


def _group_rows(group: LedgerGroup, labels: Sequence[str]) -> list[TableRow]:
    rows = [TableRow((group.name, "", group.total), "group")]
    for term in group.terms:
        cells = (term.path.label, _main_source(term, labels), term.contribution)
        rows.append(TableRow(cells, data=term.path))
    if group.constant is not None:
        rows.append(TableRow(("b_U", "", group.constant)))
    if group.n_rest:
        more = f"{numbers.readable(group.n_rest)} {'more' if group.terms else 'not listed'}"
        rows.append(TableRow((more, "", group.rest), id="more"))
    return rows


def _main_source(term: "PathTerm", labels: Sequence[str]) -> str:
    """The position that brings most of a path: "4 ␣tea +2.86"."""
    src = int(np.abs(term.by_source).argmax())
    return f"{src} {labels[src]} {numbers.logits(float(term.by_source[src]), signed=True)}"
