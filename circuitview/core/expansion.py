"""A logit written out as the sum of its end-to-end paths, exactly.

With patterns and norm scales held at what the model did on this prompt, the logit of a target is
linear in what is written to the stream, so that

    logit = Σ contributions of paths + b_U + remainder.

A path's contribution splits into a position part w [src] and a direction part v [d_model], both
grown from the target backwards, one head at a time: w <- (w A) / ln_scale, v <- W_V W_O v. The
remainder is the sum of the paths that are not listed, from the order sums; it never comes from the
model's own logit, or the balance would prove nothing.

Cost of c chains on n tokens, in multiplications: about c x (n² + 2 d_model d_head + n_sources n
d_model). Source: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import POSITION, TOKEN, Head, ImbalanceError, Source
from circuitview.core.orders import OrderSums, order_sums
from circuitview.core.path import (
    Path,
    PathTerm,
    all_groups,
    chain_table,
    count_chains,
    group_of,
    path_table,
)
from circuitview.core.recording import Recording
from circuitview.core.target import Target

# Up to this depth every path is listed; beyond, those of up to two heads.
_ALL_PATHS_LAYERS = 3
_DEEP_HEADS = 2
# Relative to the largest of |terms| and |logits|: what rounding may leave behind in a sum.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}


@dataclass(frozen=True, eq=False)
class Expansion:
    """All paths to one target, and the sum that proves them.

    Attributes:
        recording: the run that is explained.
        target: what is explained.
        paths: the listed paths.
        contributions: [path] (logits).
        by_source: [path, src] (logits); each row sums to its contribution.
        constant: the part of b_U (logits).
        remainder: the exact sum of the paths not listed (logits).
        n_unlisted: how many those are.
        logit: the model's own logit, or difference of logits.
        probability: of the target at dest; with versus the difference of the two.
        orders: exact sums by order.
        scale: what the error is measured against: the largest of |terms|, |logit A|, |logit B|.
    """

    recording: Recording
    target: Target
    paths: tuple[Path, ...]
    contributions: npt.NDArray[np.float64]
    by_source: npt.NDArray[np.float64]
    constant: float
    remainder: float
    n_unlisted: int
    logit: float
    probability: float
    orders: OrderSums
    scale: float

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
        return str(self.recording.weights.dtype).removeprefix("torch.")

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
    def groups(self) -> dict[str, float]:
        """The sum of each group (logits): every path, listed or not, and b_U; they add up to
        `total`. "virtual heads" is among them at any depth, 0 where there is one layer."""
        sums = dict.fromkeys(all_groups(self.recording.weights.config.n_layers), 0.0)
        for path, contribution in zip(self.paths, self.contributions, strict=True):
            sums[group_of(path)] += float(contribution)
        sums["positions and biases"] += self.constant
        if self.n_unlisted:
            deep = self.orders.sums[:, _DEEP_HEADS + 1 :].sum((1, 2))  # [source]
            token = self.orders.sources.index(TOKEN)
            sums["virtual heads"] += float(deep[token])
            sums["positions and biases"] += float(np.delete(deep, token).sum())
        return sums

    @cached_property
    def place(self) -> dict[Path, int]:
        """Where each listed path stands in `paths`."""
        return {path: place for place, path in enumerate(self.paths)}

    @cached_property
    def nets(self) -> dict[Source | Head, float]:
        """What all listed paths from each source, and through each head, add up to (logits)."""
        sums: dict[Source | Head, float] = defaultdict(float)
        for path, contribution in zip(self.paths, self.contributions.tolist(), strict=True):
            sums[path.source] += contribution
            for head in path.heads:
                sums[head] += contribution
        return dict(sums)

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


def expand(recording: Recording, target: Target) -> Expansion:
    """The expansion of `target` into all paths; in models deeper than three layers, all paths of up
    to two heads, the rest summed exactly as the remainder.

    Held fixed: patterns and norm scales, as recorded.
    """
    with torch.inference_mode():
        return _expand(recording, target)


def _expand(recording: Recording, target: Target) -> Expansion:
    weights = recording.weights
    L, H = weights.config.n_layers, weights.config.n_heads
    most = L if L <= _ALL_PATHS_LAYERS else _DEEP_HEADS
    w, v = grow_chains(recording, target, most)
    sources = weights.sources
    paths, places = path_table(L, H, most, sources)
    rows = []
    for source, place in zip(sources, places, strict=True):
        chains = slice(None) if len(place) == len(v) else torch.from_numpy(place)
        if source in (TOKEN, POSITION):
            column = v[chains] @ recording.source(source).mT  # [chain, src]
        else:
            column = (v[chains] @ recording.source(source)[0]).unsqueeze(-1)  # [chain, 1]
        rows.append(w[chains] * column)  # [chain, src]
    by_source = torch.cat(rows).double().numpy()  # [path, src]
    contributions = by_source.sum(-1)  # [path]
    orders = order_sums(recording, target)
    n_paths = sum(count_chains(L, H, above=source.layer) for source in sources)
    logits = recording.logits[target.dest].double()  # [d_vocab]
    chosen = [target.token] if target.versus is None else [target.token, target.versus]
    return Expansion(
        recording=recording,
        target=target,
        paths=paths,
        contributions=contributions,
        by_source=by_source,
        constant=target.of(weights.b_U),
        remainder=float(orders.by_order()[most + 1 :].sum()),
        n_unlisted=n_paths - len(paths),
        logit=target.of(logits),
        probability=target.of(logits.softmax(-1)),
        orders=orders,
        scale=float(max(np.abs(contributions).max(), logits[chosen].abs().max())),
    )


def grow_chains(
    recording: Recording, target: Target, most: int
) -> tuple[Float[Tensor, "chain src"], Float[Tensor, "chain d_model"]]:
    """The position part w and the direction part v of every chain of at most `most` heads, in the
    order of path.chain_table."""
    weights = recording.weights
    H, D = weights.config.n_heads, weights.config.d_model
    table = chain_table(weights.config.n_layers, H, most)
    w = recording.stream.new_zeros(len(table.chains), len(recording.tokens))  # [chain, src]
    v = recording.stream.new_zeros(len(table.chains), D)  # [chain, d_model]
    w[0, target.dest] = 1 / recording.final_scale[target.dest]
    v[0] = target.direction(weights)
    end = 1
    for start, stop, layer in table.steps:
        size = H * (stop - start)
        moved = w[start:stop] @ recording.pattern[layer]  # [head, chain, src]
        w[end : end + size] = (moved / recording.ln_scale[layer]).flatten(0, 1)
        values = v[start:stop] @ weights.W_O[layer].mT  # [head, chain, d_head]
        v[end : end + size] = (values @ weights.W_V[layer].mT).flatten(0, 1)
        end += size
    assert end == len(table.chains)
    return w, v
