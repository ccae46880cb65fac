"""What a run and its repetition have in common, number by number and hash by hash."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from circuitview.session.lab import Run
from circuitview.session.run_words import ABLATED, CONTRIBUTION, EFFECT

if TYPE_CHECKING:
    from circuitview.core.ablation.table import OrderRow, Row

_Numbers = npt.NDArray[np.float64]
_COLUMNS = {
    CONTRIBUTION: "contribution",
    EFFECT: "effect",
    "±": "stderr",
    "marginal": "marginal",
    "± of marginal": "marginal_stderr",
}


def difference(first: Run, again: Run) -> str | None:
    """How `again` differs from `first`, of the same question, and what may be why, in one line;
    None where every number that `first` has is equal bit by bit, and of the same model and text.

    Of a run that knows no contributions (see lacks_contributions) the others are compared.
    """
    changed = list(_other_things(first, again))
    found = _other_rows(first, again) or _other_numbers(first, again)
    if found is None:
        same = "every number is equal, bit by bit, but "
        return same + " and ".join(changed) if changed else None
    if first.version != again.version:
        changed.append(f"the program's version changed ({first.version}, {again.version} now)")
    if first.threads is not None and first.threads != again.threads:
        changed.append(f"the number of threads changed ({first.threads}, {again.threads} now)")
    return f"{found}; {' and '.join(changed) or 'the program or the machine may have changed'}"


def lacks_contributions(first: Run, again: Run) -> bool:
    """Whether `first` has none where `again` has: once they were not measured in a text."""
    return all(row.contribution is None for row in first.table.rows) and any(
        row.contribution is not None for row in again.table.rows
    )


def _other_things(first: Run, again: Run) -> Iterator[str]:
    """What is another thing by now, and can't give the same run but by chance."""
    if first.model_hash != again.model_hash:
        yield "the model's weight file changed"
    if first.data_hash != again.data_hash:
        yield "what is run changed"
    if first.donor_hash != again.donor_hash:
        yield f"the text that {first.question.kind} reads changed"
    if first.target != again.target:
        yield f"the target changed ({first.target or 'none'}, {again.target or 'none'} now)"


def _other_rows(first: Run, again: Run) -> str | None:
    """That the rows are others, so that their numbers can't be compared."""
    one, other = first.table, again.table
    if one.values.shape != other.values.shape:
        return (
            f"{len(one.rows)} rows of {first.n_cases} cases, {len(other.rows)} of "
            f"{again.n_cases} now"
        )
    for place, (before, now) in enumerate(zip(one.rows, other.rows, strict=True), 1):
        if before.site != now.site:
            return f"row {place} is {before.site}, {now.site} now"
    return None


def _other_numbers(first: Run, again: Run) -> str | None:
    """The columns that differ, and by how much at most."""
    found = []
    for name, before, now in _columns(first, again):
        if (apart := _apart(before, now)) is not None:
            found.append(f"{name} {apart}")
    return f"the numbers differ: {', '.join(found)}" if found else None


def _columns(first: Run, again: Run) -> Iterator[tuple[str, _Numbers, _Numbers]]:
    """What is compared; nan where nothing is known."""
    one, other = first.table, again.table
    yield (
        "clean",
        np.append(one.clean_values, one.clean),
        np.append(other.clean_values, other.clean),
    )
    yield (
        ABLATED,
        np.append(one.values.ravel(), _column(one.rows, "value")),
        np.append(other.values.ravel(), _column(other.rows, "value")),
    )
    for name, key in _COLUMNS.items():
        if key != "contribution" or not lacks_contributions(first, again):
            yield name, _column(one.rows, key), _column(other.rows, key)


def _column(rows: "tuple[Row | OrderRow, ...]", key: str) -> _Numbers:
    found = (getattr(row, key, None) for row in rows)
    return np.array([np.nan if value is None else value for value in found], np.float64)


def _apart(before: _Numbers, now: _Numbers) -> str | None:
    """The largest difference, in words; None where all are equal bit by bit. What is no number is
    equal to what is none: files don't keep its bits."""
    same = (before.view(np.int64) == now.view(np.int64)) | (np.isnan(before) & np.isnan(now))
    if same.all():
        return None
    with np.errstate(invalid="ignore"):
        largest = float(np.abs(before - now)[~same].max())
    if not np.isfinite(largest):
        return "is a number in one alone"
    return f"by up to {largest:.0e}" if largest else "by the sign of a zero"
