"""A run as text: the table that is read, and the JSON and CSV that programs read.

Effects are ablated minus clean. In JSON and CSV numbers are in full precision, and what is not
known, or is no finite number, is null or empty.
"""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from circuitview.core.ablation.metric import METRICS
from circuitview.session import numbers
from circuitview.session.lab import OF_TEXT, WHATS, Question, Run, in_effect, kind_of
from circuitview.session.run_words import (
    ABLATED,
    CONTRIBUTION,
    EFFECT,
    INTERACTION,
    REMOVED,
    UP_TO,
    draws,
    measured_words,
)

if TYPE_CHECKING:
    from circuitview.core.ablation.table import OrderRow, Row

_DIGITS = 4
_LONG = 80  # characters of a prompt that a heading shows
_SHOWN = 3  # prompts that a heading shows
_READS_ITSELF = {"mean": "over what is run", "resample": "from what is run"}
_KEYS = ("what", "contribution", "effect", "value", "stderr")
_ORDER_KEYS = ("marginal", "marginal_stderr")
_PAIR_KEYS = ("interaction", "interaction_stderr")


def as_json(run: Run) -> dict[str, Any]:
    """What a run is as JSON. The rows' numbers have the metric's unit, contributions are logits."""
    question, table = run.question, run.table
    return {
        "model": run.model_name,
        "metric": table.metric,
        "with": question.kind,
        "frozen": table.frozen,
        "seed": question.seed,
        "clean": _finite(table.clean),
        "what": question.what,
        "unit": METRICS[table.metric].unit,
        "target": run.target or None,
        "prompts": list(() if question.text else question.prompts),
        "text": question.text or None,
        "n": run.n_cases,
        "n_tokens": run.n_tokens,
        "parameters": dict(question.parameters),
        "dtype": question.dtype,
        "soft_cap": run.soft_cap,
        "model_hash": run.model_hash,
        "data_hash": run.data_hash,
        "donor_hash": run.donor_hash or None,
        "version": run.version,
        "rows": _entries(run, table.rows),
    }


def as_csv(run: Run, rows: "Sequence[Row | OrderRow] | None" = None) -> str:
    """What a run is as CSV: one row a site, with the keys of its JSON as columns.

    Args:
        rows: those of the run in the order that is wanted; None for their own.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_keys(run), "n"])
    for entry in _entries(run, run.table.rows if rows is None else rows):
        writer.writerow(["" if value is None else _cell(value) for value in entry.values()])
    return text.getvalue()


def _cell(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _keys(run: Run) -> tuple[str, ...]:
    more = {"orders": _ORDER_KEYS, "pairs": _PAIR_KEYS}
    return _KEYS + more.get(run.question.what, ())


def _entries(run: Run, rows: "Sequence[Row | OrderRow]") -> list[dict[str, Any]]:
    """`rows`, their numbers in full."""
    numbers_of = _numbers_of(run)
    return [
        {"what": str(row.site)}
        | {key: _finite(numbers_of(row, key)) for key in _keys(run)[1:]}
        | {"n": row.n}
        for row in rows
    ]


def _numbers_of(run: Run) -> "Callable[[Row | OrderRow, str], float | None]":
    """What gives the number of a row that has a key."""
    from circuitview.core.ablation.table import interactions

    between = interactions(run.table) if run.question.what == "pairs" else {}

    def number(row: "Row | OrderRow", key: str) -> float | None:
        if key not in _PAIR_KEYS:
            value: float | None = getattr(row, key)
            return value
        return between.get(row.site, (None, None))[_PAIR_KEYS.index(key)]

    return number


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of numbers: the key of the rows, its title, and how it is written."""

    key: str
    title: str
    write: Callable[[float], str]


def as_table(run: Run) -> str:
    """What a person reads: what was done, then one line a site; a column that nothing is known of
    is left out."""
    rows, number = run.table.rows, _numbers_of(run)
    columns = [
        column
        for column in _columns(run)
        if any(number(row, column.key) is not None for row in rows)
    ]
    cells = [[_written(column, number(row, column.key)) for column in columns] for row in rows]
    titles = [column.title for column in columns]
    widths = [max(map(len, texts)) for texts in zip(titles, *cells, strict=True)]
    first = UP_TO if run.question.what == "orders" else REMOVED
    names = [str(row.site) for row in rows]
    name_width = max(map(len, [first, *names]))

    def line(name: str, texts: Sequence[str]) -> str:
        padded = [f"{text:>{width}}" for text, width in zip(texts, widths, strict=True)]
        return "  ".join([f"{name:<{name_width}}", *padded]).rstrip()

    below = [line(name, texts) for name, texts in zip(names, cells, strict=True)]
    return "\n".join([*heading(run), "", line(first, titles), *below]) + "\n"


def _columns(run: Run) -> list[_Column]:
    contribution = _Column("contribution", CONTRIBUTION, _signed)
    effect = [_Column("effect", EFFECT, _signed), _Column("stderr", "±", _error)]
    if run.question.what != "orders":
        value = _Column("value", ABLATED, _plain)
        between = [_Column("interaction", INTERACTION, _signed)]
        between.append(_Column("interaction_stderr", "±", _error))
        return [contribution, *effect, value, *(between if run.question.what == "pairs" else [])]
    return [
        _Column("value", run.table.metric, _plain),
        *effect,
        _Column("marginal", "marginal", _signed),
        _Column("marginal_stderr", "±", _error),
        contribution,
    ]


def _written(column: _Column, value: float | None) -> str:
    return "" if value is None else column.write(value)


def _plain(value: float) -> str:
    return numbers.logits(value, digits=_DIGITS)


def _signed(value: float) -> str:
    return numbers.logits(value, signed=True, digits=_DIGITS)


def _error(value: float) -> str:
    return numbers.logits(value, digits=_DIGITS)


def heading(run: Run) -> list[str]:
    """What was run, what was done to it, and the clean value: one line each."""
    table, metric = run.table, METRICS[run.table.metric]
    unit = f" {metric.unit}" if metric.unit else ""
    capped = metric.linear and run.soft_cap is not None
    cap = f" before the soft cap of {run.soft_cap:g}" if capped else ""
    dest = "" if run.question.dest is None else f" at dest {run.question.dest}"
    target = f"target {run.target}{dest}, " if run.target else ""
    over = ""
    if run.n_cases > 1:
        cases = "windows" if run.question.text else "prompts"
        over = f", the mean over {run.n_cases:,} {cases}; ± is the standard error of the mean"
    return [
        f"{run.model_name}: {_data(run)}",
        f"{taken(run.question)}; {held(table.frozen)}; {run.question.dtype}",
        f"{target}{measured_words(run.question)}{cap}: clean {_plain(table.clean)}{unit}{over}",
        *_about_contributions(run),
    ]


def _about_contributions(run: Run) -> list[str]:
    """What is easily taken amiss in that column, where there is one."""
    if all(row.contribution is None for row in run.table.rows):
        return []
    notes = []
    if run.question.text:
        notes.append("to the logits of the next tokens, their mean")
    if run.question.what == "orders":
        notes.append("that of order 0 leaves out b_U, which its value holds")
    return [f"{CONTRIBUTION} (logits): {'; '.join(notes)}"] if notes else []


def _data(run: Run) -> str:
    question = run.question
    if question.text:
        windows = f"{run.n_cases:,} window" + ("s" if run.n_cases > 1 else "")
        each = run.n_tokens // max(run.n_cases, 1)
        return f"{FilePath(question.text).name}, {windows} of {each:,} tokens"
    shown = [repr(_shortened(prompt)) for prompt in question.prompts[:_SHOWN]]
    more = len(question.prompts) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def taken(question: Question) -> str:
    """What is taken away and what is put there: "each head, mean (text = a.txt, length = 64,
    windows = 16)"."""
    if question.what == "orders":
        return "paths of up to n heads, all others left out"
    settings = _in_full(question)
    if draws(question):
        settings.append(f"seed = {question.seed}")
    said = f" ({', '.join(settings)})" if settings else ""
    return f"{WHATS[question.what]}, {question.kind}{said}"


def _in_full(question: Question) -> list[str]:
    """The kind's settings that change something, those that were left as they are among them."""
    given = dict(in_effect(question.parameters))
    if "text" in given:
        kind = kind_of(question)
        given |= {name: getattr(kind, name) for name in OF_TEXT if hasattr(kind, name)}
    elif question.kind in _READS_ITSELF and "prompt" not in given:
        return [_READS_ITSELF[question.kind]]
    return [f"{name} = {value}" for name, value in given.items()]


def held(frozen: bool) -> str:
    """What a run holds fixed."""
    if frozen:
        return "frozen: patterns, norm scales and MLP outputs held as recorded"
    return "free: what comes after it is computed anew"
