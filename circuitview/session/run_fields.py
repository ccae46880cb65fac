"""What run.json of a saved run holds, field by field."""

import math
import unicodedata
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt

from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.sites import Site
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.path import Path
from circuitview.session.lab import Question

if TYPE_CHECKING:
    from circuitview.core.ablation.table import AblationTable, OrderRow, Row

_BREAKING = ("Cc", "Zl", "Zp")  # control characters, and ends of lines and paragraphs
# JSON has no numbers for these.
NonFinite = Literal["nan", "inf", "-inf"]
Number = float | NonFinite
Numbers = npt.NDArray[np.float64]


class SavedSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site, part by part: as one text "mlp 0" would be an MLP or the path from its output."""

    heads: tuple[str, ...] = ()
    mlps: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    orders: tuple[int, ...] = ()


class SavedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Row or an OrderRow."""

    what: SavedSite
    contribution: Number | None
    value: Number
    effect: Number
    stderr: Number | None
    n: int
    marginal: Number | None = None
    marginal_stderr: Number | None = None


class Mark(msgspec.Struct, frozen=True):
    """What tells a run from other JSON; all else is looked at once the format is known."""

    circuitview_run: int


class SavedRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Run. `question` is checked against question_type; `values_sha256` is that of the arrays'
    file."""

    circuitview_run: int
    version: str
    question: dict[str, Any]
    model_name: str
    model_hash: str
    data_hash: str
    donor_hash: str
    n_tokens: int
    n_cases: int
    target: str
    seconds: Number
    soft_cap: Number | None
    metric: MetricName
    frozen: bool
    clean: Number
    rows: tuple[SavedRow, ...]
    values_sha256: str
    threads: int | None = None


@cache
def question_type() -> type[msgspec.Struct]:
    """Question's fields and types, for strict reading."""
    hints = get_type_hints(Question)
    return msgspec.defstruct(
        "SavedQuestion",
        [(field.name, hints[field.name]) for field in fields(Question)],
        forbid_unknown_fields=True,
        kw_only=True,
        frozen=True,
    )


def saved_row(row: "Row | OrderRow") -> SavedRow:
    """A row as run.json has it."""
    site = row.site
    return SavedRow(
        what=SavedSite(
            tuple(map(str, site.heads)), site.mlps, tuple(map(str, site.paths)), site.orders
        ),
        contribution=_maybe(row.contribution),
        value=saved_number(row.value),
        effect=saved_number(row.effect),
        stderr=_maybe(row.stderr),
        n=row.n,
        marginal=_maybe(getattr(row, "marginal", None)),
        marginal_stderr=_maybe(getattr(row, "marginal_stderr", None)),
    )


def saved_number(value: float) -> Number:
    """A number, or the name of what JSON has no number for."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"


def one_line(text: str) -> str:
    """`text` with a sign in the place of what would break a line or move a terminal's cursor."""
    return "".join("\ufffd" if unicodedata.category(one) in _BREAKING else one for one in text)


def _maybe(value: float | None) -> Number | None:
    return None if value is None else saved_number(value)


def table_of(saved: SavedRun, clean_values: Numbers, values: Numbers) -> "AblationTable":
    """The table that was saved, unchecked but for its sites.

    Raises:
        CircuitviewError: where a row is of nothing that can be taken away.
    """
    from circuitview.core.ablation.table import AblationTable

    orders = saved.question.get("what") == "orders"
    rows = tuple(
        _order_row(row, place) if orders else _row(row) for place, row in enumerate(saved.rows)
    )
    clean = float(saved.clean)
    return AblationTable(saved.metric, saved.frozen, clean, rows, clean_values, values)


def _row(row: SavedRow) -> "Row":
    from circuitview.core.ablation.table import Row

    if row.marginal is not None or row.marginal_stderr is not None:
        raise CircuitviewError("only orders have a marginal value")
    return Row(
        site=_site(row.what),
        contribution=_read(row.contribution),
        value=float(row.value),
        effect=float(row.effect),
        stderr=_read(row.stderr),
        n=row.n,
    )


def _order_row(row: SavedRow, order: int) -> "OrderRow":
    from circuitview.core.ablation.table import OrderRow

    if _site(row.what) != Site(orders=(order,)):
        raise CircuitviewError(f"row {order} is not order {order}")
    return OrderRow(
        order=order,
        contribution=_read(row.contribution),
        value=float(row.value),
        effect=float(row.effect),
        stderr=_read(row.stderr),
        marginal=_read(row.marginal),
        marginal_stderr=_read(row.marginal_stderr),
        n=row.n,
    )


def _site(saved: SavedSite) -> Site:
    site = Site(
        tuple(Head.parse(text) for text in saved.heads),
        saved.mlps,
        tuple(Path.parse(text) for text in saved.paths),
        saved.orders,
    )
    if not any((site.heads, site.mlps, site.paths, site.orders)):
        raise CircuitviewError("a row takes nothing away")
    if any(number < 0 for number in (*site.mlps, *site.orders)):
        raise CircuitviewError(f"there is no {site}")
    return site


def _read(value: Number | None) -> float | None:
    return None if value is None else float(value)
