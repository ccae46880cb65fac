"""What is put in the place of a site: where the values come from."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.ablation.sites import Site
from circuitview.core.edits import Edits
from circuitview.core.names import Head
from circuitview.core.path import Path
from circuitview.core.path_vectors import order_vector_steps, path_vector
from circuitview.core.progress import Progress, finished
from circuitview.core.recording import Recording


class Donor(ABC):
    """Values for one prompt's positions."""

    def order_steps(self) -> Generator[Progress, None, None]:
        """Make ready for sites of orders, to be stopped in between; most have nothing to do."""
        yield from ()

    @abstractmethod
    def z(self, head: Head) -> Float[Tensor, "pos d_head"]:
        """A head's output, value bias included."""

    @abstractmethod
    def mlp_out(self, layer: int) -> Float[Tensor, "pos d_model"]:
        """What the MLP of a layer adds to the stream."""

    @abstractmethod
    def written(self, path: Path) -> Float[Tensor, "pos d_model"]:
        """What a path writes into the final stream."""

    @abstractmethod
    def order(self, order: int) -> Float[Tensor, "pos d_model"]:
        """What all paths of an order write into the final stream."""


@dataclass(frozen=True, eq=False)
class Nothing(Donor):
    """Zeros, for the prompt of `recording`."""

    recording: Recording

    def z(self, head: Head) -> Float[Tensor, "pos d_head"]:
        return torch.zeros_like(self.recording.z[head.layer, head.head])

    def mlp_out(self, layer: int) -> Float[Tensor, "pos d_model"]:  # noqa: ARG002
        return torch.zeros_like(self.recording.stream[-1])

    def written(self, path: Path) -> Float[Tensor, "pos d_model"]:  # noqa: ARG002
        return torch.zeros_like(self.recording.stream[-1])

    def order(self, order: int) -> Float[Tensor, "pos d_model"]:  # noqa: ARG002
        return torch.zeros_like(self.recording.stream[-1])


class FromRun(Donor):
    """What `recording` has there: of the same prompt, or of another one of as many tokens."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._orders: Tensor | None = None

    def z(self, head: Head) -> Float[Tensor, "pos d_head"]:
        return self.recording.z[head.layer, head.head]

    def mlp_out(self, layer: int) -> Float[Tensor, "pos d_model"]:
        assert self.recording.mlp_out is not None
        return self.recording.mlp_out[layer]

    def written(self, path: Path) -> Float[Tensor, "pos d_model"]:
        return path_vector(self.recording, path)

    def order(self, order: int) -> Float[Tensor, "pos d_model"]:
        if self._orders is None:
            finished(self.order_steps())
        assert self._orders is not None
        return self._orders[order]

    def order_steps(self) -> Generator[Progress, None, None]:
        """Make ready for sites of orders, layer by layer."""
        self._orders = yield from order_vector_steps(self.recording)


@dataclass(frozen=True, eq=False)
class Means:
    """Means over all positions of some runs.

    Attributes:
        z: [layer, head, d_head]. mlp_out: [layer, d_model], or None. paths, orders: [d_model] each.
    """

    z: Float[Tensor, "layer head d_head"]
    mlp_out: Float[Tensor, "layer d_model"] | None
    paths: dict[Path, Float[Tensor, " d_model"]]
    orders: dict[int, Float[Tensor, " d_model"]]

    @classmethod
    def steps(
        cls, recording: Recording, sites: Sequence[Site]
    ) -> Generator[Progress, None, "Means"]:
        """Those of one run, in float64; paths and orders only where a site needs them.

        Yields between its parts, none of which takes longer than a forward pass, so that it can be
        stopped there.
        """
        donor = FromRun(recording)
        paths = dict.fromkeys(path for site in sites for path in site.paths)
        orders = dict.fromkeys(order for site in sites for order in site.orders)
        by_path, by_order = dict[Path, Tensor](), dict[int, Tensor]()
        for done, path in enumerate(paths):
            with torch.inference_mode():
                by_path[path] = donor.written(path).double().mean(0)  # [d_model]
            yield Progress(done + 1, len(paths))
        if orders:
            yield from donor.order_steps()
        mlp_out = recording.mlp_out
        with torch.inference_mode():
            for order in orders:
                by_order[order] = donor.order(order).double().mean(0)  # [d_model]
            return cls(
                recording.z.double().mean(2),
                None if mlp_out is None else mlp_out.double().mean(1),
                by_path,
                by_order,
            )

    def plus(self, other: "Means") -> "Means":
        """The sums of both."""
        mlp_out = self.mlp_out
        if mlp_out is not None and other.mlp_out is not None:
            mlp_out = mlp_out + other.mlp_out
        return Means(
            self.z + other.z,
            mlp_out,
            {path: mean + other.paths[path] for path, mean in self.paths.items()},
            {order: mean + other.orders[order] for order, mean in self.orders.items()},
        )

    def over(self, count: int) -> "Means":
        """The sums of `count` runs, divided by their number."""
        return Means(
            self.z / count,
            None if self.mlp_out is None else self.mlp_out / count,
            {path: mean / count for path, mean in self.paths.items()},
            {order: mean / count for order, mean in self.orders.items()},
        )


@dataclass(frozen=True, eq=False)
class MeanDonor(Donor):
    """The same mean at each position of `recording`'s prompt."""

    recording: Recording
    means: Means

    def z(self, head: Head) -> Float[Tensor, "pos d_head"]:
        return self._everywhere(self.means.z[head.layer, head.head])

    def mlp_out(self, layer: int) -> Float[Tensor, "pos d_model"]:
        assert self.means.mlp_out is not None
        return self._everywhere(self.means.mlp_out[layer])

    def written(self, path: Path) -> Float[Tensor, "pos d_model"]:
        return self._everywhere(self.means.paths[path])

    def order(self, order: int) -> Float[Tensor, "pos d_model"]:
        return self._everywhere(self.means.orders[order])

    def _everywhere(self, mean: Float[Tensor, " width"]) -> Float[Tensor, "pos width"]:
        return mean.to(self.recording.stream.dtype).expand(len(self.recording.tokens), -1)


def edits_steps(site: Site, clean: FromRun, donor: Donor) -> Generator[Progress, None, Edits]:
    """What a run changes so that `site` has the donor's values.

    Yields after each path: what one writes is worked out, not looked up.

    Args:
        clean: the run's own values: what an end-to-end path writes is taken out of the final stream
            before the donor's is put in.
    """
    added: Tensor | None = None
    for path in site.paths:
        with torch.inference_mode():
            change = donor.written(path) - clean.written(path)  # [pos, d_model]
            added = change if added is None else added + change
        yield Progress(0, 1)
    with torch.inference_mode():
        for order in site.orders:
            change = donor.order(order) - clean.order(order)  # [pos, d_model]
            added = change if added is None else added + change
        return Edits(
            z={head: donor.z(head) for head in site.heads},
            mlp_out={layer: donor.mlp_out(layer) for layer in site.mlps},
            added=added,
        )
