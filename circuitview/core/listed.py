"""Which paths an expansion lists one by one, and what they were chosen from."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.largest import ENUMERATED_HEADS, by_source, largest_paths
from circuitview.core.path import Path, chain_table, path_table
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording
from circuitview.core.target import Target
from circuitview.core.through_mlps import contributions_through_mlps


@dataclass(frozen=True, eq=False)
class Listed:
    """The listed paths, and the sums of those that were worked out with them.

    Attributes:
        paths, contributions, by_source: the listed ones; [path] and [path, src] (logits).
        worked_out: every path of up to this many steps was worked out.
        smaller, n_smaller: sum and number of those worked out but not listed (logits).
        longer: sum of the listed ones with more steps (logits).
    """

    paths: tuple[Path, ...]
    contributions: npt.NDArray[np.float64]
    by_source: npt.NDArray[np.float64]
    worked_out: int
    smaller: float = 0.0
    n_smaller: int = 0
    longer: float = 0.0


def list_all(recording: Recording, target: Target) -> Listed:
    """Every path through heads."""
    with torch.inference_mode():
        weights = recording.weights
        L, H = weights.config.n_layers, weights.config.n_heads
        w, v = grow_chains(recording, target, L)
        paths, places = path_table(L, H, L, weights.sources)
        rows = []
        for source, place in zip(weights.sources, places, strict=True):
            chains = slice(None) if len(place) == len(v) else torch.from_numpy(place)
            written = recording.source(source)  # [pos, d_model]
            if source.kind == "bias" and recording.post_scale is None:
                column = (v[chains] @ written[0]).unsqueeze(-1)  # [chain, 1]
            else:
                column = v[chains] @ written.mT  # [chain, src]
            rows.append(w[chains] * column)  # [chain, src]
        sent = torch.cat(rows).double().numpy()  # [path, src]
        return Listed(paths, sent.sum(-1), sent, L)


def list_largest(
    recording: Recording, target: Target, count: int
) -> Generator[Progress, None, Listed]:
    """The `count` largest paths through heads, of all with up to two and of longer ones found."""
    steps = largest_paths(recording, target, count)
    while True:
        with torch.inference_mode():  # not across a yield: the mode belongs to the thread
            try:
                progress = next(steps)
            except StopIteration as end:
                listing = end.value
                sent = by_source(recording, target, listing.paths)
                break
        yield progress
    short = np.array([len(path.steps) <= ENUMERATED_HEADS for path in listing.paths])
    contributions = sent.sum(-1)  # [path]
    return Listed(
        paths=listing.paths,
        contributions=contributions,
        by_source=sent,
        worked_out=ENUMERATED_HEADS,
        smaller=listing.enumerated - float(contributions[short].sum()),
        n_smaller=listing.n_enumerated - int(short.sum()),
        longer=float(contributions[~short].sum()),
    )


def list_through_mlps(
    recording: Recording, target: Target, count: int, most_steps: int
) -> Generator[Progress, None, Listed]:
    """The `count` largest paths through heads and MLPs of up to `most_steps` steps."""
    n_layers = recording.weights.config.n_layers
    steps = contributions_through_mlps(recording, target, most_steps)
    paths: list[Path] = []
    rows: list[Tensor] = []
    least, total, n_seen = 0.0, 0.0, 0
    while True:
        with torch.inference_mode():
            found = next(steps, None)
            if found is None:
                break
            sums = found.by_source.double().sum(-1)  # [chain, source]
            total += float(sums.sum())
            n_seen += sums.numel()
            chains, sources = (sums.abs() >= least).nonzero(as_tuple=True)
            paths += [
                Path(found.sources[source], found.chains[chain])
                for chain, source in zip(chains.tolist(), sources.tolist(), strict=True)
            ]
            rows.append(found.by_source[chains, sources])  # [path, src]
            if len(paths) > 2 * count:
                paths, kept, least = _largest(paths, torch.cat(rows), count)
                rows = [kept]
        done = n_layers - min((chain[0].layer for chain in found.chains if chain), default=n_layers)
        yield Progress(done, n_layers, "working out paths through MLPs")
    sent = np.zeros((len(paths), len(recording.tokens)))
    if len(paths) > count:
        paths, kept, _ = _largest(paths, torch.cat(rows), count)
        rows, sent = [kept], sent[:count]
    sent[:, : target.dest + 1] = torch.cat(rows).double().numpy()
    contributions = sent.sum(-1)  # [path]
    return Listed(
        paths=tuple(paths),
        contributions=contributions,
        by_source=sent,
        worked_out=most_steps,
        smaller=total - float(contributions.sum()) if n_seen > len(paths) else 0.0,
        n_smaller=n_seen - len(paths),
    )


def _largest(
    paths: list[Path], rows: Float[Tensor, "path src"], count: int
) -> tuple[list[Path], Tensor, float]:
    sizes = rows.double().sum(-1).abs()  # [path]
    best = sizes.topk(count)
    return (
        [paths[place] for place in best.indices.tolist()],
        rows[best.indices],
        float(best.values[-1]),
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
        moved = w[start:stop] @ recording.moved(layer)  # [head, chain, src]
        w[end : end + size] = (moved / recording.ln_scale[layer]).flatten(0, 1)
        values = v[start:stop] @ weights.W_O[layer].mT  # [head, chain, d_head]
        v[end : end + size] = (values @ weights.head_W_V(layer).mT).flatten(0, 1)
        end += size
    assert end == len(table.chains)
    return w, v
