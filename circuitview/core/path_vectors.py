"""What every path writes into the final stream, computed forwards.

expansion.py grows a path from the target backwards and keeps position and direction apart. Here a
source is pushed through the heads, layer after layer, and arrives as vectors: no step is shared, so
that the two check each other. The vectors of all paths sum to the final stream, at every dest.
Source: Elhage et al. 2021, A Mathematical Framework for Transformer Circuits.
"""

from collections.abc import Generator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.core.progress import Progress, finished
from circuitview.core.recording import Recording
from circuitview.core.target import Target


@dataclass(frozen=True, eq=False)
class PathVectors:
    """What paths write into the final stream.

    Attributes:
        recording: the run that is explained.
        paths: by source, then in the order in which the layers extend them.
        written: before the division by the final scale, in the unit of the stream.
    """

    recording: Recording
    paths: tuple[Path, ...]
    written: Float[Tensor, "path pos d_model"]

    def contributions(self, target: Target) -> Float[Tensor, " path"]:
        """Each path's share of the target [logits], in float64; the final scale is held fixed."""
        direction = target.direction(self.recording.weights).double()  # [d_model]
        scale = self.recording.final_scale[target.dest]
        return self.written[:, target.dest].double() @ direction / scale  # [path]


def path_vectors(recording: Recording, most: int | None = None) -> PathVectors:
    """What each path of at most `most` heads (None: every path) writes at each dest.

    Held fixed: patterns and norm scales, as recorded. Memory: n_paths n d_model numbers, and the
    number of paths grows as (1 + n_heads) ^ n_layers; in deep models give `most`.
    """
    with torch.inference_mode():
        found = [source_vectors(recording, source, most) for source in recording.weights.sources]
        paths = tuple(path for some, _ in found for path in some)
        return PathVectors(recording, paths, torch.cat([written for _, written in found]))


def source_vectors(
    recording: Recording, source: Source, most: int | None = None
) -> tuple[tuple[Path, ...], Float[Tensor, "path pos d_model"]]:
    """The paths that start at `source`, with at most `most` heads, and what each writes."""
    config = recording.weights.config
    longest = config.n_layers if most is None else most
    chains: list[tuple[Head, ...]] = [()]
    written = recording.source(source).unsqueeze(0)  # [path, pos, d_model]
    for layer in range(source.layer + 1, config.n_layers):
        short = [place for place, chain in enumerate(chains) if len(chain) < longest]
        if not short:
            break
        moved = _through_layer(recording, layer, written[short])  # [head, path, pos, d_model]
        chains += [
            (*chains[place], Head(layer, head)) for head in range(config.n_heads) for place in short
        ]
        written = torch.cat([written, moved.flatten(0, 1)])
    return tuple(Path(source, chain) for chain in chains), written


def path_vector(recording: Recording, path: Path) -> Float[Tensor, "pos d_model"]:
    """What one path writes into the final stream at each dest.

    Taking it out of the final stream is the frozen removal of the path: every logit falls by
    exactly its contribution. Held fixed: patterns and norm scales, as recorded.
    """
    with torch.inference_mode():
        written = recording.source(path.source)  # [pos, d_model]
        for step in path.steps:
            if isinstance(step, Mlp):
                written = through_mlp(recording, step.layer, written)  # [pos, d_model]
            else:
                written = _through_head(recording, step, written)  # [dest, d_model]
        return written


def order_vectors(recording: Recording) -> Float[Tensor, "order pos d_model"]:
    """What all paths with exactly n heads write into the final stream together, for each n.

    Held fixed: patterns, norm scales and MLP outputs, as recorded. What starts without reading the
    stream, the constants of every layer included, is order 0. Cost: n_layers passes of the value
    side for each order. Source: the path ablation of Elhage et al. 2021, whose run n + 1 holds the
    sum of orders 0 to n.
    """
    return finished(order_vector_steps(recording))


def order_vector_steps(
    recording: Recording,
) -> Generator[Progress, None, Float[Tensor, "order pos d_model"]]:
    """The same, layer by layer, to be stopped in between."""
    n_layers, sources = recording.weights.config.n_layers, recording.weights.sources
    with torch.inference_mode():  # not across a yield: the mode belongs to the thread
        found = recording.stream.new_zeros(n_layers + 1, *recording.stream[0].shape)
        for source in sources:
            if source.layer < 0:
                found[0] += recording.source(source)
    for layer in range(n_layers):
        with torch.inference_mode():
            # Before layer l no path has more than l heads.
            found[1 : layer + 2] += _through_heads(recording, layer, found[: layer + 1])
            for source in sources:
                if source.layer == layer:
                    found[0] += recording.source(source)
        yield Progress(layer + 1, n_layers)
    return found


def _through_head(
    recording: Recording, head: Head, stream: Float[Tensor, "src d_model"]
) -> Float[Tensor, "dest d_model"]:
    """What one head makes of a stream, value bias left out."""
    weights = recording.weights
    read = stream / recording.ln_scale[head.layer].unsqueeze(-1)  # [src, d_model]
    values = read @ weights.W_V_of(head)  # [src, d_head]
    mixed = recording.pattern[head.layer, head.head] @ values  # [dest, d_head]
    written = mixed @ weights.W_O_of(head)  # [dest, d_model]
    if recording.post_scale is None:
        return written
    return written / recording.post_scale[head.layer].unsqueeze(-1)


def through_mlp(
    recording: Recording, layer: int, stream: Float[Tensor, "pos d_model"]
) -> Float[Tensor, "pos d_model"]:
    """What the MLP of `layer` makes of a part of its stream, biases left out, with each neuron's
    nonlinearity held at its recorded ratio."""
    mlp = recording.weights.mlps[layer]
    ratio = recording.mlp_ratio(layer)  # [pos, d_mlp]
    read = mlp.normed(stream, recording.into_mlp_scale(layer))  # [pos, d_model]
    written = (ratio * (read @ mlp.W_in)) @ mlp.W_out  # [pos, d_model]
    if recording.mlp_post_scale is not None:
        written = written / recording.mlp_post_scale[layer].unsqueeze(-1)
    return written if mlp.out_gain is None else written * mlp.out_gain


def _through_layer(
    recording: Recording, layer: int, stream: Float[Tensor, "path pos d_model"]
) -> Float[Tensor, "head path pos d_model"]:
    """What each head of `layer` makes of streams, value biases left out."""
    weights = recording.weights
    read = stream / recording.ln_scale[layer].unsqueeze(-1)  # [path, src, d_model]
    values = read @ weights.head_W_V(layer).unsqueeze(1)  # [head, path, src, d_head]
    mixed = recording.moved(layer).unsqueeze(1) @ values  # [head, path, dest, d_head]
    return mixed @ weights.W_O[layer].unsqueeze(1)  # [head, path, dest, d_model]


def _through_heads(
    recording: Recording, layer: int, stream: Float[Tensor, "path pos d_model"]
) -> Float[Tensor, "path pos d_model"]:
    """What all heads of `layer` together make of streams, value biases left out."""
    weights = recording.weights
    read = stream / recording.ln_scale[layer].unsqueeze(-1)  # [path, src, d_model]
    values = read.unsqueeze(1) @ weights.head_W_V(layer)  # [path, head, src, d_head]
    mixed = recording.moved(layer) @ values  # [path, head, dest, d_head]
    flat = mixed.transpose(1, 2).flatten(2)  # [path, dest, head x d_head]
    return flat @ weights.W_O[layer].flatten(0, 1)  # [path, dest, d_model]
