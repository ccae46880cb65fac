"""The paths of an expansion as JSON, CSV and text; numbers in JSON and CSV in full precision."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circuitview.core.expansion import Expansion
from circuitview.core.model import Model
from circuitview.core.path import PathTerm
from circuitview.figures.ledger import Ledger, LedgerGroup, ledger
from circuitview.session import numbers
from circuitview.session.expansions import (
    B_MINUS_A,
    before_soft_cap,
    expansion_kind,
    expansion_shown,
    held_fixed,
    precision,
    soft_cap,
)

_SOURCES_SHOWN = 3


def token_text(model: Model, token: int) -> str:
    """The token's own text, as --target takes it; its label where it is no whole text."""
    text = model.tokenizer.text(token)
    return model.tokenizer.label(token) if text is None else text


def as_json(model: Model, expansion: Expansion, top: int, by_source: bool) -> dict[str, Any]:
    """What --format json writes; sum of terms + constant + remainder + error = logit."""
    target, between = expansion.target, expansion.between
    # Of a difference the recording's labels join both prompts; its tokens here are A's.
    prompt = (expansion if between is None else between[0]).recording.prompt
    book = ledger(expansion, top)
    versus = target.versus
    return {
        "model": model.name,
        "tokens": [token_text(model, token) for token in prompt.token_ids],
        "token_ids": list(prompt.token_ids),
        "dest": target.dest,
        "target": token_text(model, target.token),
        "target_id": target.token,
        "versus": None if versus is None else token_text(model, versus),
        "versus_id": versus,
        "dtype": expansion.dtype,
        "device": model.device,
        "expansion": expansion_kind(expansion),
        "soft_cap": soft_cap(model.config),
        "logit": expansion.logit,
        "probability": expansion.probability,
        "constant": expansion.constant,
        "remainder": book.remainder,
        "error": expansion.error,
        "n_paths": expansion.n_paths,
        "not_listed": [
            {"which": part.which, "n_paths": part.count, "contribution": part.total}
            for part in _parts(book, expansion)
        ],
        "terms": [_term(term, by_source) for term in book.listed],
        "groups": expansion.groups,
        **({} if between is None else {"b_minus_a": _both(model, *between)}),
    }


def _both(model: Model, a: Expansion, b: Expansion) -> dict[str, Any]:
    """The two prompts of a difference, and what the target has on each (logits)."""
    entries = {}
    for name, one in (("a", a), ("b", b)):
        ids = one.recording.prompt.token_ids
        entries[name] = {
            "tokens": [token_text(model, token) for token in ids],
            "token_ids": list(ids),
            "logit": one.logit,
            "probability": one.probability,
        }
    return entries


def _term(term: PathTerm, by_source: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "path": term.path.label,
        "source": str(term.path.source),
        "heads": [str(head) for head in term.path.heads],
        "steps": [str(step) for step in term.path.steps],
        "kind": term.path.kind,
        "contribution": term.contribution,
    }
    if by_source:
        entry["by_source"] = term.by_source.tolist()
    return entry


def as_csv(expansion: Expansion, top: int, by_source: bool) -> str:
    """What --format csv writes: one row a path, then b_U and the remainder."""
    book = ledger(expansion, top)
    labels = expansion.recording.prompt.labels if by_source else ()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    sources = [f"from {place} {label}" for place, label in enumerate(labels)]
    writer.writerow(["path", "source", "heads", "kind", "group", "contribution", *sources])
    for term in book.listed:
        path = term.path
        chain = " > ".join(map(str, path.heads))
        moved = map(repr, term.by_source.tolist()) if by_source else ()
        fixed = [path.label, str(path.source), chain, path.kind, expansion.grouping.of(path)]
        writer.writerow([*fixed, repr(term.contribution), *moved])
    nothing = [""] * len(labels)
    group = book.groups[-1].name
    writer.writerow(["b_U", "b_U", "", "constant", group, repr(expansion.constant), *nothing])
    writer.writerow(["remainder", "", "", "remainder", "", repr(float(book.remainder)), *nothing])
    return text.getvalue()


def as_table(model: Model, expansion: Expansion, prompt: str, top: int, by_source: bool) -> str:
    """What --format table writes: groups with subtotals, then the sum and what it must equal."""
    book = ledger(expansion, top)
    labels = expansion.recording.prompt.labels
    lines = [*_heading(model, expansion, prompt), *_not_listed(book, expansion), ""]
    rows = [row for group in book.groups for row in _group_rows(group, labels, by_source)]
    of_model = "model's logit" if expansion.target.versus is None else "model's difference"
    if expansion.between is not None:
        of_model += f", {B_MINUS_A}"
    of_model += before_soft_cap(model.config)
    name_width = max(len(of_model) - 12, len("model's logit"), *(len(row[0]) for row in rows))
    for name, inner, outer, note in rows:
        lines.append(f"{name:<{name_width}}  {inner:>10}  {outer:>10}  {note}".rstrip())
    lines.append("─" * (name_width + 24))
    difference = expansion.target.versus is not None or expansion.between is not None
    closing = [
        ("sum", _number(expansion.total)),
        (of_model, _number(expansion.logit)),
        ("probability difference" if difference else "probability", _number(expansion.probability)),
        ("error", numbers.error(expansion.error)),
    ]
    lines += [f"{name:<{name_width + 12}}  {value:>10}" for name, value in closing]
    return "\n".join(lines) + "\n"


def _heading(model: Model, expansion: Expansion, prompt: str) -> list[str]:
    target, labels = expansion.target, expansion.recording.prompt.labels
    versus = "" if target.versus is None else f" versus {target.versus_label}"
    shown = expansion_shown(expansion)
    compared = "" if expansion.between is None else f"{B_MINUS_A}, "
    return [
        f"{model.name}: {compared}{prompt if len(prompt) <= 80 else prompt[:79] + '…'!r}",
        f"{len(labels)} tokens: {_shortened(labels)}",
        (
            f"target {target.label}{versus} at dest {target.dest} ({labels[target.dest]}), "
            f"{precision(expansion.dtype, model.stored)}, {held_fixed(expansion)}; numbers in "
            "logits"
        ),
        *([shown] if shown else []),
    ]


def _shortened(labels: Sequence[str], most: int = 24) -> str:
    if len(labels) <= most:
        return " ".join(labels)
    return " ".join([*labels[: most // 2], "…", *labels[-most // 2 :]])


def _group_rows(
    group: LedgerGroup, labels: Sequence[str], by_source: bool
) -> list[tuple[str, str, str, str]]:
    """Name, number in the inner column, number in the outer column, and a note, for each line."""
    rows = [(group.name, "", _number(group.total), "")]
    for term in group.terms:
        note = _largest_sources(term, labels) if by_source else ""
        rows.append((f"  {term.path.label}", _number(term.contribution), "", note))
    if group.constant is not None:
        rows.append(("  b_U", _number(group.constant), "", ""))
    if group.n_rest:
        more = "more" if group.terms else "not listed"
        rows.append((f"  {numbers.readable(group.n_rest)} {more}", _number(group.rest), "", ""))
    return rows


def _largest_sources(term: PathTerm, labels: Sequence[str]) -> str:
    """The positions where most of a path starts: "␣tea@5 +3.21  ␣drink@8 −0.40"."""
    order = np.argsort(-np.abs(term.by_source), kind="stable")[:_SOURCES_SHOWN]
    return "  ".join(
        f"{labels[src]}@{src} {numbers.logits(float(term.by_source[src]), signed=True)}"
        for src in order
        if term.by_source[src] != 0
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Paths that are not listed, and their exact sum (logits)."""

    which: str
    count: int
    total: float


def _parts(book: Ledger, expansion: Expansion) -> list[_Part]:
    """What is not listed: paths that were worked out, and those too long for that."""
    cut = len(expansion.paths) - len(book.listed)
    parts = [
        _Part("worked out", expansion.n_smaller + cut, float(book.remainder - expansion.beyond)),
        _Part("summed only", expansion.n_beyond, float(expansion.beyond)),
    ]
    return [part for part in parts if part.count]


def _not_listed(book: Ledger, expansion: Expansion) -> list[str]:
    if not book.n_rest:
        return []
    listed, paths = numbers.count(len(book.listed)), numbers.count(expansion.n_paths)
    rest, parts = numbers.count(book.n_rest), _parts(book, expansion)
    others = f"the other {rest} bring {_number(book.remainder)}, counted in below"
    lines = [f"{listed} of {paths} paths listed; {others}"]
    if len(parts) > 1:
        words = ("worked out and smaller", "longer, known by their exact sum")
        lines += [
            f"  {numbers.count(part.count)} are {what}: {_number(part.total)}"
            for part, what in zip(parts, words, strict=True)
        ]
    return lines


def _number(value: float) -> str:
    return numbers.logits(value, digits=4)
