"""A logit written out as the sum of its end-to-end paths, exactly.

With patterns and norm scales held at what the model did on this prompt, the logit of a target is
linear in what is written to the stream, so that

    logit = Σ contributions of paths + b_U + remainder.

A path's contribution splits into a position part w [src] and a direction part v [d_model], both
grown from the target backwards, one head at a time: w <- (w A) / ln_scale, v <- W_V W_O v. The
remainder is the sum of the paths that are not listed, from the order sums; it never comes from the
model's own logit, or the balance would prove nothing.

Cost of c chains on n tokens, in multiplications: where all are listed, about c x (n² + 2 d_model
d_head + n_sources n d_model); in deep models see largest.py. Source: Elhage et al. 2021, A
Mathematical Framework for Transformer Circuits.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from circuitview.core.groups import BIASES, Grouping
from circuitview.core.listed import Listed, list_all, list_largest, list_through_mlps
from circuitview.core.names import CircuitviewError, Head, ImbalanceError, Mlp, Source, Step
from circuitview.core.orders import OrderSums, order_steps, path_sources
from circuitview.core.path import Path, PathTerm
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording
from circuitview.core.target import Target

# So many paths are listed whole; of more, the largest that a person could read.
FEW = 5_000
LISTED = 2_000
# Where paths run on through MLPs and are very many, all of up to this many steps are worked out.
STEPS_THROUGH_MLPS = 2
# Relative to the largest of |terms| and |logits|: what rounding may leave behind in a sum.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}


@dataclass(frozen=True, eq=False)
class Expansion:
    """The paths to one target, and the sum that proves them.

    Attributes:
        recording: the run that is explained.
        target: what is explained.
        paths: the listed paths.
        contributions: [path] (logits).
        by_source: [path, src] (logits); each row sums to its contribution.
        constant: the part of b_U (logits).
        smaller, n_smaller: the exact sum of paths that were worked out but are not listed, and how
            many they are (logits).
        beyond, n_beyond: the same of paths too long to be worked out one by one.
        logit: the model's own logit, before a soft cap, or difference of logits.
        probability: of the target at dest; with versus the difference of the two.
        orders: exact sums by order.
        scale: what the error is measured against: the largest of |terms|, |logit A|, |logit B|.
        through_mlps: whether paths run on through MLPs, their ratios held; else an MLP's recorded
            output is a source.
        between: (A, B) where every number is B's minus A's, see difference.py; else None.
    """

    recording: Recording
    target: Target
    paths: tuple[Path, ...]
    contributions: npt.NDArray[np.float64]
    by_source: npt.NDArray[np.float64]
    constant: float
    smaller: float
    n_smaller: int
    beyond: float
    n_beyond: int
    logit: float
    probability: float
    orders: OrderSums
    scale: float
    through_mlps: bool = False
    between: "tuple[Expansion, Expansion] | None" = None

    @property
    def remainder(self) -> float:
        """The exact sum of the paths not listed (logits)."""
        return self.smaller + self.beyond

    @property
    def n_unlisted(self) -> int:
        """How many those are."""
        return self.n_smaller + self.n_beyond

    @cached_property
    def terms(self) -> tuple[PathTerm, ...]:
        """The listed paths, the largest |contribution| first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        return tuple(
            PathTerm(self.paths[i], float(self.contributions[i]), self.by_source[i]) for i in order
        )

    @property
    def dtype(self) -> str:
        """The precision of the run, "float32" or "float64"."""
        return self.recording.dtype

    @property
    def n_paths(self) -> int:
        """How many paths the model has, listed or not; b_U is one term more."""
        return len(self.paths) + self.n_unlisted

    @property
    def total(self) -> float:
        """What the paths, the constant and the remainder add up to."""
        return float(self.contributions.sum()) + self.constant + self.remainder

    @property
    def error(self) -> float:
        """The model's logit minus that sum."""
        return self.logit - self.total

    @property
    def tolerance(self) -> float:
        """The largest error that rounding explains (logits)."""
        return _TOLERANCE[self.recording.weights.dtype] * self.scale

    @property
    def balanced(self) -> bool:
        return abs(self.error) <= self.tolerance  # False where anything is NaN

    def require_balance(self) -> None:
        """Pass only what adds up.

        Raises:
            ImbalanceError: with the numbers, where the error passes the tolerance.
        """
        if not self.balanced:
            raise ImbalanceError(
                f"the paths don't add up: sum {self.total:.6g}, model {self.logit:.6g}, error "
                f"{self.error:.1e} passes the tolerance of {self.tolerance:.1e}; nothing is shown. "
                "Try float64, or check the weights"
            )

    @cached_property
    def grouping(self) -> Grouping:
        """The groups that its paths are summed in."""
        return _grouping(
            self.recording, self.orders.sources, self.through_mlps, self.n_unlisted == 0
        )

    @cached_property
    def groups(self) -> dict[str, float]:
        """The sum of each group (logits): every path, listed or not, and b_U; but for rounding they
        add up to `total`. "virtual heads" is among them at any depth, 0 where there is one layer.
        """
        grouping = self.grouping
        sums = dict.fromkeys(grouping.summed, 0.0)
        if grouping.all_listed:
            for path, contribution in zip(self.paths, self.contributions, strict=True):
                sums[grouping.of(path)] += float(contribution)
        else:
            for source, orders in zip(self.orders.sources, self.orders.by_source, strict=True):
                for order, value in enumerate(orders):
                    sums[grouping.of_sum(source, order)] += float(value)
        sums[BIASES] += self.constant
        return sums

    @cached_property
    def place(self) -> dict[Path, int]:
        """Where each listed path stands in `paths`."""
        return {path: place for place, path in enumerate(self.paths)}

    @cached_property
    def nets(self) -> dict[Source | Step, float]:
        """What all paths from each source, and through each head and MLP, add up to (logits),
        listed or not."""
        layers, heads = self.orders.through.shape
        nets: dict[Source | Step, float] = {
            source: self.orders.net(source) for source in self.orders.sources
        }
        for layer in range(layers):
            for head in range(heads):
                nets[Head(layer, head)] = self.orders.net(Head(layer, head))
        for layer in range(len(self.orders.mlps)):
            nets[Mlp(layer)] = self.orders.net(Mlp(layer))
        return nets

    def term(self, path: Path) -> PathTerm:
        """The term of one listed path.

        Raises:
            KeyError: where it is not listed.
        """
        place = self.place[path]
        return PathTerm(path, float(self.contributions[place]), self.by_source[place])

    def through(self, head: Head) -> Iterator[PathTerm]:
        """The listed paths that run through `head`."""
        return (term for term in self.terms if head in term.path.heads)


def expand(
    recording: Recording,
    target: Target,
    through_mlps: bool = False,
    listed: int = LISTED,
    few: int = FEW,
) -> Expansion:
    """The expansion of `target`; see expansion_steps."""
    steps = expansion_steps(recording, target, through_mlps, listed, few)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            expansion: Expansion = end.value
            return expansion


def expansion_steps(
    recording: Recording,
    target: Target,
    through_mlps: bool = False,
    listed: int = LISTED,
    few: int = FEW,
) -> Generator[Progress, None, Expansion]:
    """The expansion of `target`: every path where there are few, else the largest of all paths of
    up to two steps and of the longer ones that were found; the rest is summed exactly.

    Held fixed: patterns and norm scales, as recorded; MLP outputs, or, with `through_mlps`, the
    ratios of their neurons.

    Args:
        through_mlps: whether paths run on through MLPs.
        listed: how many paths to list where there are more than `few`.
        few: so many paths are all listed.

    Raises:
        CircuitviewError: for `through_mlps`, where the model's MLPs can't be linearised; for a
            `listed` below 1.
    """
    if listed < 1:
        raise CircuitviewError(f"{listed} paths can't be listed; list 1 or more")
    if through_mlps and not recording.weights.mlps:
        through_mlps = _require_mlps(recording)
    grouping = _grouping(recording, path_sources(recording, through_mlps), through_mlps, True)
    whole = grouping.n_paths <= few
    if through_mlps:
        longest = 2 * grouping.n_layers if whole else STEPS_THROUGH_MLPS
        count = few if whole else listed
        found = yield from list_through_mlps(recording, target, count, longest)
    elif whole:
        found = list_all(recording, target)
    else:
        found = yield from list_largest(recording, target, listed)
    orders = yield from order_steps(recording, target, through_mlps)
    with torch.inference_mode():
        return _balanced_against(recording, target, found, orders, through_mlps)


def _grouping(
    recording: Recording, sources: tuple[Source, ...], through_mlps: bool, all_listed: bool
) -> Grouping:
    config = recording.weights.config
    return Grouping(
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        sources=sources,
        through_mlps=through_mlps,
        parallel=config.parallel_attn_mlp,
        all_listed=all_listed,
    )


def _require_mlps(recording: Recording) -> bool:
    if recording.weights.config.attn_only:
        return False  # without MLPs both expansions are the same
    raise CircuitviewError(
        f"{recording.prompt.model}: paths can't be carried on through its MLPs (mixtures of "
        "experts, or a norm inside); show the expansion in which MLPs are sources"
    )


def _balanced_against(
    recording: Recording, target: Target, found: Listed, orders: OrderSums, through_mlps: bool
) -> Expansion:
    """The listed paths beside the exact sums of everything, and the model's own logit."""
    n_paths = _grouping(recording, orders.sources, through_mlps, True).n_paths
    longer = float(orders.by_order()[found.worked_out + 1 :].sum())
    logits = recording.logits[target.dest].double()  # [d_vocab]
    chosen = [target.token] if target.versus is None else [target.token, target.versus]
    largest = np.abs(found.contributions).max(initial=0.0)
    return Expansion(
        recording=recording,
        target=target,
        paths=found.paths,
        contributions=found.contributions,
        by_source=found.by_source,
        constant=target.constant(recording.weights),
        smaller=found.smaller,
        n_smaller=found.n_smaller,
        beyond=longer - found.longer,
        n_beyond=n_paths - len(found.paths) - found.n_smaller,
        logit=target.of(logits),
        probability=target.of(recording.probabilities(target.dest)),
        orders=orders,
        scale=float(max(largest, logits[chosen].abs().max())),
        through_mlps=through_mlps,
    )
