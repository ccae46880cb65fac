"""What of a saved run must fit together, as far as that is known without its model."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.ablation.sites import Site, each_pair
from circuitview.core.names import CircuitviewError
from circuitview.session.lab import LARGEST, WHATS, Question, require_consistent
from circuitview.session.lab_inputs import LENGTH, named_sites
from circuitview.session.run_fields import Number, Numbers, SavedRow, SavedRun, one_line

if TYPE_CHECKING:
    from circuitview.core.ablation.table import AblationTable

_MOST_THREADS = 4096  # that a run is believed to have had
_SHOWN = ("model_name", "target", "version", "model_hash", "data_hash", "donor_hash")


def require_facts(saved: SavedRun, question: Question) -> None:
    """Pass only a run whose facts can be, and go with what was asked.

    Raises:
        CircuitviewError: naming the first that doesn't.
    """
    _require_cases(saved, question)
    if saved.metric != question.metric:
        raise CircuitviewError(f"measured {saved.metric}, asked for {question.metric}")
    if not saved.rows:
        raise CircuitviewError("it has no rows")
    if saved.threads is not None and not 1 <= saved.threads <= _MOST_THREADS:
        raise CircuitviewError(f"{saved.threads} threads can't have measured it")
    if saved.frozen != (question.frozen or question.what == "orders"):
        raise CircuitviewError("frozen is not what was asked for")
    seconds, cap = float(saved.seconds), saved.soft_cap
    if not 0 <= seconds < math.inf:
        raise CircuitviewError(f"it can't have taken {seconds:g} seconds")
    if cap is not None and not 0 < float(cap) < math.inf:
        raise CircuitviewError(f"there is no soft cap of {float(cap):g}")
    for name in _SHOWN:
        if one_line(getattr(saved, name)) != getattr(saved, name):
            raise CircuitviewError(f"{name} has control characters")
    require_consistent(question)


def _require_cases(saved: SavedRun, question: Question) -> None:
    n_cases, n_tokens = saved.n_cases, saved.n_tokens
    if n_cases < 1 or not n_cases <= n_tokens <= LARGEST:
        raise CircuitviewError(f"{n_cases} cases of {n_tokens} tokens are no run")
    counts = {name: getattr(question, name) for name in ("length", "windows", "most", "seed")}
    if question.dest is not None:  # negative counts from the end
        counts["dest"] = abs(question.dest)
    counts |= {name: value for name, value in question.parameters if isinstance(value, int)}
    for name, value in counts.items():
        if value is not None and not 0 <= value <= LARGEST:
            raise CircuitviewError(f"there is no {name} of {value}")
    if question.text:
        each, over = divmod(n_tokens, n_cases)
        if over or each > (question.length or LENGTH) or n_cases > question.windows:
            raise CircuitviewError(
                f"{n_cases} windows of {n_tokens} tokens are not those asked for"
            )
    elif n_cases != len(question.prompts):
        raise CircuitviewError(f"{n_cases} cases of {len(question.prompts)} prompts")


def require_numbers(saved: SavedRun, clean_values: Numbers, values: Numbers) -> None:
    """Pass only rows whose numbers follow from the [case] clean values and [row, case] values.

    Raises:
        CircuitviewError: naming the first that doesn't.
    """
    rows = saved.rows
    for row in rows:
        if row.n != saved.n_cases:
            raise CircuitviewError(f"a row of {row.n} cases among {saved.n_cases}")
        _require_contribution(row, saved.clean)
    _require_means([saved.clean], clean_values[None], "clean")
    _require_means([row.value for row in rows], values, "value")
    effects = values - clean_values
    _require_means([row.effect for row in rows], effects, "effect")
    _require_errors([row.stderr for row in rows], effects, "stderr")
    if saved.question.get("what") == "orders":
        steps = values[1:] - values[:-1]
        if rows[0].marginal is not None or rows[0].marginal_stderr is not None:
            raise CircuitviewError("order 0 has a marginal value, and none before it")
        _require_means([row.marginal for row in rows[1:]], steps, "marginal")
        _require_errors([row.marginal_stderr for row in rows[1:]], steps, "marginal_stderr")


def _require_contribution(row: SavedRow, clean: Number) -> None:
    """Pass only a number, or none, unless the model itself gave none."""
    if row.contribution is None or math.isfinite(float(row.contribution)):
        return
    if math.isfinite(float(row.value)) and math.isfinite(float(clean)):
        raise CircuitviewError(f"contribution {row.contribution} is no number")


def _require_means(found: Sequence[Number | None], values: Numbers, name: str) -> None:
    """Pass only the means of [row, case] `values`. All rows at once: there may be very many."""
    with np.errstate(invalid="ignore"):
        _require_close(found, values.mean(1), values, name, "the mean")


def _require_errors(found: Sequence[Number | None], values: Numbers, name: str) -> None:
    """Pass only their standard errors; None for one case."""
    n = values.shape[1]
    if n < 2:
        if any(number is not None for number in found):
            raise CircuitviewError(f"{name} of one case: there is none")
        return
    with np.errstate(invalid="ignore"):
        errors = values.std(1, ddof=1) / np.sqrt(n)
        _require_close(found, errors, values, name, "the standard error")


def _require_close(
    found: Sequence[Number | None], known: Numbers, values: Numbers, name: str, what: str
) -> None:
    """Pass only what is known, but for the last bits: a sum may be added up in another order."""
    if any(number is None for number in found):
        raise CircuitviewError(f"a row has no {name}")
    given = np.array([float(number) for number in found if number is not None])
    scale = np.abs(values).max(1)
    same = np.isclose(given, known, 1e-12, 1e-12 * scale, equal_nan=True)
    if not same.all():
        raise CircuitviewError(f"{name} {found[int(same.argmin())]} is not {what} of its numbers")


def require_rows(table: "AblationTable", question: Question) -> None:
    """Pass only rows of what was asked for, no two of the same.

    Raises:
        CircuitviewError: naming the row that isn't.
    """
    sites = [row.site for row in table.rows]
    expected = _expected(question, sites)
    for place, (site, asked) in enumerate(zip(sites, expected, strict=False)):
        if _parts(site) != _parts(asked):
            raise CircuitviewError(
                f"row {place} is {site}: not what was asked for ({WHATS[question.what]})"
            )
    if len(sites) != len(expected):
        raise CircuitviewError(f"{len(sites)} rows, asked for {len(expected)}")
    if len(set(map(_parts, sites))) < len(sites):
        raise CircuitviewError("two rows take the same away")


def _expected(question: Question, sites: Sequence[Site]) -> Sequence[Site]:
    """What the rows must be, as far as that is known without the model."""
    named = named_sites(question)
    if named is not None:
        return named
    match question.what:
        case "heads":
            return [Site(heads=site.heads[:1]) for site in sites]
        case "pairs":
            return each_pair(site.heads[0] for site in sites if len(site.heads) == 1)
        case "mlps":
            return [Site(mlps=(layer,)) for layer in range(len(sites))]
        case "paths":
            return [Site(paths=site.paths[:1]) for site in sites[: question.most]]
    return [Site(orders=(order,)) for order in range(len(sites))]


def _parts(site: Site) -> tuple[object, ...]:
    """What makes a site, in whatever order it is named."""
    return tuple(map(frozenset, (site.heads, site.mlps, site.paths, site.orders)))
