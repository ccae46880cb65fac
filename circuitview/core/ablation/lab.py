"""Ablations: each site is replaced in turn, in each case, and the metric is measured.

A contribution is bookkeeping, an effect is an experiment; every row carries both. Frozen, later
patterns, norm scales and MLP outputs stay as recorded, and zeroing has exactly minus the
contribution as its effect on a logit. Free, everything after the site is computed anew: later heads
and the norms react. An end-to-end path leaves the final stream alone; free, the final norm reacts.

Cost: for each case one forward pass, and one of the value side for the contributions of heads and
MLPs together; for each site what resumed.py says. Between two steps lies one forward pass at most.
"""

from collections.abc import Generator, Sequence

import numpy as np
import torch

from circuitview.core.ablation.bookkeeping import Bookkeeping
from circuitview.core.ablation.cases import Case
from circuitview.core.ablation.donors import FromRun
from circuitview.core.ablation.kinds.kind import Kind, Replacing, Setup
from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.metrics import measure
from circuitview.core.ablation.sites import Site
from circuitview.core.ablation.table import AblationTable, Row, row_of
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.progress import Progress, told

# What is put in place of so many sites is held at once.
_AT_ONCE = 128

Steps = Generator[Progress, None, AblationTable]


def ablate(
    model: Model,
    cases: Sequence[Case],
    sites: Sequence[Site],
    kind: Kind,
    *,
    metric: MetricName = "logit",
    frozen: bool = False,
    dtype: DtypeName = "float32",
    seed: int = 0,
    prepend_bos: bool | None = None,
) -> Steps:
    """The effect of replacing each of `sites`.

    Yields a Progress after each batch of runs, of at most about one forward pass; its partial
    result is the rows that are new, as a tuple. One unit is one run.

    Args:
        cases: prompts, or windows of a text.
        sites: one row each.
        kind: what is put in their place.
        metric: what is measured.
        frozen: whether everything but the site is held as recorded.
        dtype: the precision of all runs.
        seed: of what is drawn.
        prepend_bos: whether BOS stands in front of what a kind reads; None as the tokenizer has it.

    Raises:
        CircuitviewError: where there is nothing to run, a site does not exist in the model, the
            kind can't replace it, or a difference has no second token.
    """
    require_measurable(cases, metric)
    if not sites:
        raise CircuitviewError("nothing to take away: choose heads, paths, MLPs or orders")
    for site in sites:
        site.require_in(model.config)
        _require_paths(model, site, dtype)
    run = _Run(model, cases, sites, metric, frozen, dtype)
    setup = Setup(model, cases, sites, dtype, seed, prepend_bos)
    replacing = yield from _prepared(run, kind, setup)
    for place in range(len(cases)):
        yield from run.case(place, replacing)
    return run.table()


def _require_paths(model: Model, site: Site, dtype: DtypeName) -> None:
    """Pass only paths that start where the model writes something, and that can be followed."""
    for path in site.paths:
        through = path.kind == "through MLPs" or path.source.kind == "mlp bias"
        if through and not model.carries_mlps:
            raise CircuitviewError(
                f"{path}: paths can't be carried on through the MLPs of {model.name}; start at the "
                f'MLP instead ("mlp 0 > 1.4")'
            )
        source, weights = path.source, model.weights(dtype)
        mlp_bias = source.kind == "mlp bias"
        if not (weights.mlps[source.layer].biased if mlp_bias else source in weights.sources):
            what = "MLP" if mlp_bias else "attention"
            raise CircuitviewError(
                f"{path}: the {what} of layer {source.layer} has no biases in {model.name}; choose "
                "another source"
            )


def require_measurable(cases: Sequence[Case], metric: MetricName) -> None:
    """Pass only cases in which the metric means something.

    Raises:
        CircuitviewError: where there are none, or a difference has no second token.
    """
    if not cases:
        raise CircuitviewError("nothing to run: give a prompt or a text")
    if metric == "difference" and any(case.versus is None for case in cases):
        raise CircuitviewError(
            "a logit difference needs two tokens; name the one to subtract (versus), or measure "
            "the logit"
        )


def _prepared(run: "_Run", kind: Kind, setup: Setup) -> Generator[Progress, None, Replacing]:
    steps = kind.prepare(setup)
    try:
        while True:
            progress = next(steps)
            run.extra = progress.total
            run.done = progress.done
            yield Progress(run.done, run.total)
    except StopIteration as end:
        replacing: Replacing = end.value
        return replacing
    finally:
        steps.close()


class _Run:
    """One ablation on its way."""

    def __init__(
        self,
        model: Model,
        cases: Sequence[Case],
        sites: Sequence[Site],
        metric: MetricName,
        frozen: bool,
        dtype: DtypeName,
    ) -> None:
        self.model, self.cases, self.sites = model, cases, sites
        self.metric, self.frozen, self.dtype = metric, frozen, dtype
        self.done = self.extra = 0
        self.values = np.full((len(sites), len(cases)), np.nan)
        self.clean = np.full(len(cases), np.nan)
        self.contributions: list[list[float | None]] = [[] for _ in sites]

    @property
    def total(self) -> int:
        return self.extra + len(self.cases) * (1 + len(self.sites))

    @property
    def meanwhile(self) -> Progress:
        """Where it stands, between two runs."""
        return Progress(self.done, self.total)

    def case(self, place: int, replacing: Replacing) -> Generator[Progress, None, None]:
        """Measure every site in one case."""
        case = self.cases[place]
        recording = self.model.run(case.prompt, self.dtype)
        clean = recording.logits[case.dests]  # [dest, d_vocab]
        config = self.model.config
        with torch.inference_mode():
            found = measure(self.metric, case, config, clean.unsqueeze(0), clean)
        self.clean[place] = float(found[0])
        self.done += 1
        yield Progress(self.done, self.total)
        target = case.counted(self.metric)
        books = Bookkeeping(recording, target)
        run = FromRun(recording)
        if any(site.orders for site in self.sites):
            for steps in (run, books):
                yield from told(steps.order_steps(), self.meanwhile)
        edits_of = yield from told(replacing.in_case(place, run), self.meanwhile)
        for first in range(0, len(self.sites), _AT_ONCE):
            edits = []
            for taken in self.sites[first : first + _AT_ONCE]:
                made = yield from told(edits_of(taken), self.meanwhile)
                edits.append(made)
            for places, logits in self.model.logits_after(
                recording, edits, case.dests, self.frozen
            ):
                with torch.inference_mode():
                    values = measure(self.metric, case, config, logits, clean).tolist()
                seen = [(first + at, value) for at, value in zip(places, values, strict=True)]
                for site, value in seen:
                    self.values[site, place] = value
                    known = yield from told(books.steps(self.sites[site]), self.meanwhile)
                    self.contributions[site].append(known)
                self.done += len(seen)
                yield Progress(self.done, self.total, tuple(self.row(site) for site, _ in seen))

    def row(self, site: int) -> Row:
        """What is known of a site so far."""
        seen = len(self.contributions[site])
        values, clean = self.values[site, :seen], self.clean[:seen]
        return row_of(self.sites[site], values, clean, self.contributions[site])

    def table(self) -> AblationTable:
        return AblationTable(
            self.metric,
            self.frozen,
            float(self.clean.mean()),
            tuple(self.row(site) for site in range(len(self.sites))),
            self.clean,
            self.values,
        )
