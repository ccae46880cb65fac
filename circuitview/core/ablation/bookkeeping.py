"""What a site contributes: the sum of the paths that it takes away, computed backwards.

Forwards the same is a frozen run; the two share no step, so that they check each other.
"""

from collections.abc import Generator

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head, Mlp, Source, Step
from circuitview.core.orders import OrderSums, order_steps, order_sums
from circuitview.core.path import Path
from circuitview.core.progress import Progress, finished
from circuitview.core.recording import Recording
from circuitview.core.target import Explained


class Bookkeeping:
    """The contributions of sites to one target, or to the mean over the next tokens of a text
    [logits].

    Held fixed: patterns, norm scales and MLP outputs, as recorded.
    """

    def __init__(self, recording: Recording, target: Explained) -> None:
        self.recording, self.target = recording, target
        self._without: dict[tuple[Head, ...], OrderSums] = {}
        self._by_order: npt.NDArray[np.float64] | None = None

    def order_steps(self) -> Generator[Progress, None, None]:
        """Make ready for sites of orders, layer by layer, to be stopped in between."""
        sums = yield from order_steps(self.recording, self.target)
        self._by_order = sums.by_order()

    def of(self, site: Site) -> float | None:
        """The sum of all paths through any of its heads (their value biases included) or through
        its MLPs, or of its paths, or of its orders; None for a site of several kinds, whose paths
        would be counted twice."""
        return finished(self.steps(site))

    def steps(self, site: Site) -> Generator[Progress, None, float | None]:
        """The same, to be stopped between any two passes."""
        kinds = [site.heads, site.mlps, site.paths, site.orders]
        if sum(map(bool, kinds)) != 1:
            return None
        if site.heads:
            return (yield from self._through_any(site.heads))
        if site.mlps:
            sums = self._sums_without(())
            return sum(sums.net(Source("mlp", layer)) for layer in site.mlps)
        if site.orders:
            if self._by_order is None:
                yield from self.order_steps()
            assert self._by_order is not None
            return sum(float(self._by_order[order]) for order in site.orders)
        total = 0.0
        for path in site.paths:
            total += path_contribution(self.recording, self.target, path)
            yield Progress(0, 1)
        return total

    def _through_any(self, heads: tuple[Head, ...]) -> Generator[Progress, None, float]:
        """Each head's paths that run through none of the heads above it."""
        total, above = 0.0, tuple[Head, ...]()
        for head in sorted(heads, reverse=True):
            higher = tuple(one for one in above if one.layer > head.layer)
            if higher not in self._without:  # a pass of its own
                yield Progress(0, 1)
            total += self._sums_without(higher).head(head)
            above = (*above, head)
        return total

    def _sums_without(self, heads: tuple[Head, ...]) -> OrderSums:
        """Of all orders together: one pass."""
        if heads not in self._without:
            removed = frozenset(heads)
            self._without[heads] = order_sums(self.recording, self.target, most=0, without=removed)
        return self._without[heads]


def path_contribution(recording: Recording, target: Explained, path: Path) -> float:
    """What one path sends to the target [logits], from the target backwards.

    Held fixed: patterns and norm scales, as recorded; MLP outputs or, where the path runs through
    an MLP, the ratios of its neurons. Cost: n x d_model x d_head a head.
    """
    with torch.inference_mode():
        gradient = torch.zeros_like(recording.stream[-1])  # [pos, d_model]
        gradient[: target.last + 1] = target.gradient(recording)
        for step in reversed(path.steps):
            gradient = _before(recording, step, gradient)
        sent = gradient.double() * recording.source(path.source).double()  # [pos, d_model]
        return float(sent.sum())


def _before(
    recording: Recording, step: Step, gradient: Float[Tensor, "pos d_model"]
) -> Float[Tensor, "pos d_model"]:
    """The gradient before one step of a path, from the one behind it."""
    weights, layer = recording.weights, step.layer
    if isinstance(step, Mlp):
        mlp = weights.mlps[layer]
        if recording.mlp_post_scale is not None:
            gradient = gradient / recording.mlp_post_scale[layer].unsqueeze(-1)
        moved = mlp.out_of(mlp.into(gradient) * recording.mlp_ratio(layer))
        return moved / recording.into_mlp_scale(layer).unsqueeze(-1)
    if recording.post_scale is not None:
        gradient = gradient / recording.post_scale[layer].unsqueeze(-1)
    values = gradient @ weights.W_O_of(step).mT  # [dest, d_head]
    mixed = recording.pattern[layer, step.head].mT @ values  # [src, d_head]
    return (mixed @ weights.W_V_of(step).mT) / recording.ln_scale[layer].unsqueeze(-1)
