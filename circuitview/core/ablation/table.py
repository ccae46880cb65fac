"""What an ablation found: one row for each site."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.sites import Site


@dataclass(frozen=True, slots=True)
class Row:
    """One site, replaced.

    Attributes:
        site: what was taken away.
        contribution: the sum of its paths to the target [logits], the mean over prompts; in a text
            to the mean logit of the next tokens, the mean over windows; None for a site of several
            kinds.
        value: the metric without it, the mean over what is run.
        effect: that minus the clean value.
        stderr: the standard error of the effect over prompts or windows; None for one.
        n: how many of them are measured.
    """

    site: Site
    contribution: float | None
    value: float
    effect: float
    stderr: float | None
    n: int


@dataclass(frozen=True, slots=True)
class OrderRow:
    """The model with paths of up to `order` heads.

    Attributes:
        contribution: the sum of the paths of exactly this order [logits], as in Row.
        value: the metric with paths up to this order.
        effect: that minus the clean value.
        stderr: the standard error of the effect; None for one case.
        marginal: the value minus that of the order before; None for order 0.
        marginal_stderr: its standard error; None for one case.
    """

    order: int
    contribution: float | None
    value: float
    effect: float
    stderr: float | None
    marginal: float | None
    marginal_stderr: float | None
    n: int

    @property
    def site(self) -> Site:
        return Site(orders=(self.order,))


@dataclass(frozen=True, eq=False, slots=True)
class AblationTable:
    """All that was measured.

    Attributes:
        clean: the metric of the unchanged model, the mean over what is run.
        rows: in the order of the sites.
        clean_values: [case], the clean value of each prompt or window.
        values: [row, case], the value without each site.
    """

    metric: MetricName
    frozen: bool
    clean: float
    rows: tuple[Row | OrderRow, ...]
    clean_values: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


def interactions(table: AblationTable) -> dict[Site, tuple[float, float | None]]:
    """For each pair of heads the effect of both beyond the effects of each, and its standard error
    over what is run (None for one): 0 where they don't depend on each other.

    Pairs of which one head was not measured alone have none. Source: the interaction of two factors
    in an experiment with both, each and neither.
    """
    places = {row.site: place for place, row in enumerate(table.rows)}
    found = [
        (site, place, *alone)
        for site, place in places.items()
        if len(site.heads) == 2
        and site == Site(heads=site.heads)
        and None not in (alone := [places.get(Site(heads=(head,))) for head in site.heads])
    ]
    if not found:
        return {}
    sites, both, first, second = zip(*found, strict=True)
    values = table.values  # [row, case]
    beyond = values[list(both)] - values[list(first)] - values[list(second)] + table.clean_values
    n = beyond.shape[1]
    errors = beyond.std(1, ddof=1) / np.sqrt(n) if n > 1 else None
    means = beyond.mean(1)
    return {
        site: (float(means[k]), None if errors is None else float(errors[k]))
        for k, site in enumerate(sites)
    }


def mean_and_error(values: npt.NDArray[np.float64]) -> tuple[float, float | None]:
    """The mean of some values, and its standard error where there are several."""
    n = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    return float(values.mean()), error


def row_of(
    site: Site,
    values: npt.NDArray[np.float64],
    clean: npt.NDArray[np.float64],
    contributions: Sequence[float | None],
) -> Row:
    """The row of a site from its value, the clean value and the contribution in each case."""
    effect, error = mean_and_error(values - clean)
    known = [one for one in contributions if one is not None]
    contribution = float(np.mean(known)) if known and len(known) == len(values) else None
    return Row(site, contribution, float(values.mean()), effect, error, len(values))
