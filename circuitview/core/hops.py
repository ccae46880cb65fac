"""Many chains carried through one layer's heads at once, and what each contributes: the engine
behind the lists of paths of deep models.

A chain has a position part w [src] and a direction part v [d_model] (see expansion.py). Through a
head, v first shrinks to the head's value space, q = W_O v [d_head]; a source's path through head
and chain then contributes Σ_j w[j] (source[j] W_V · q). For each layer either the sources are
projected into the value spaces, or the chains are brought back to the stream, whichever costs fewer
multiplications; so a path costs about n x d_head, and no chain that is not carried further is ever
brought back.

Source: (A₂⊗W₂)(A₁⊗W₁) = A₂A₁ ⊗ W₂W₁ in Elhage et al. 2021, with W factored.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import Source
from circuitview.core.recording import Recording
from circuitview.core.target import Target

# How many numbers one intermediate product may hold: 2 million float32 are 8 MB.
_ROOM = 2_000_000


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains of heads on their way down from the target, in rows.

    Attributes:
        w: position part. v: direction part.
    """

    w: Float[Tensor, "chain src"]
    v: Float[Tensor, "chain d_model"]

    @classmethod
    def start(cls, recording: Recording, target: Target) -> "Chains":
        """The empty chain: at dest, the direction that the target reads."""
        w = recording.stream.new_zeros(1, target.dest + 1)
        w[0, target.dest] = 1 / recording.final_scale[target.dest]
        return cls(w, target.direction(recording.weights).unsqueeze(0))

    def __len__(self) -> int:
        return len(self.w)

    def first(self, count: int) -> "Chains":
        return Chains(self.w[:count], self.v[:count])

    def at(self, places: Tensor) -> "Chains":
        return Chains(self.w[places], self.v[places])

    def joined(self, other: "Chains") -> "Chains":
        return Chains(torch.cat([self.w, other.w]), torch.cat([self.v, other.v]))


@dataclass(frozen=True, eq=False)
class Layer:
    """What stands under one layer's heads, made ready for many chains.

    Attributes:
        sources: those that write below the layer, in the order of the model's.
        rows: what they write, [source, pos, d_model].
        projected: the same in each head's value space, [source, pos, kv_head, d_head], or None
            where it is cheaper to bring the chains to the stream.
    """

    layer: int
    sources: tuple[Source, ...]
    rows: Float[Tensor, "source pos d_model"]
    projected: Float[Tensor, "source pos kv_head d_head"] | None


def layer_below(
    recording: Recording, layer: int, sources: tuple[Source, ...], n_chains: int, dest: int
) -> Layer:
    """The sources under `layer`'s heads, for chains of which there will be `n_chains`.

    Only positions up to `dest` count.
    """
    weights = recording.weights
    below = tuple(source for source in sources if source.layer < layer)
    rows = torch.stack([recording.source(source)[: dest + 1] for source in below])
    n_rows = rows.shape[0] * rows.shape[1]
    _, n_kv, d_model, d_head = weights.W_V.shape
    n_heads = weights.config.n_heads
    project = n_rows * d_model * d_head * n_kv + n_chains * n_heads * n_rows * d_head
    bring_back = n_chains * n_heads * (d_model * d_head + n_rows * d_model)
    if bring_back < project:
        return Layer(layer, below, rows, None)
    flat = weights.W_V[layer].transpose(0, 1).flatten(1)  # [d_model, kv_head x d_head]
    projected = (rows @ flat).view(*rows.shape[:2], n_kv, d_head)  # [source, pos, kv_head, d_head]
    return Layer(layer, below, rows, projected)


@dataclass(frozen=True, eq=False)
class Hop:
    """Chains, each extended by every head of one layer.

    Attributes:
        w: position parts, [head, chain, src].
        q: direction parts in the heads' value spaces, [head, chain, d_head].
    """

    recording: Recording
    layer: int
    w: Float[Tensor, "head chain src"]
    q: Float[Tensor, "head chain d_head"]

    def chains(self, heads: Tensor, places: Tensor) -> Chains:
        """Some of the extended chains: those of the heads `heads` and the chains `places`."""
        weights = self.recording.weights
        W_V = weights.W_V[self.layer]  # [kv_head, d_model, d_head]
        v = torch.stack(
            [
                W_V[head // weights.group] @ self.q[head, place]
                for head, place in zip(heads.tolist(), places.tolist(), strict=True)
            ]
        )
        return Chains(self.w[heads, places], v)

    def at(self, places: list[int]) -> "Hop":
        """The same of some of the chains."""
        return Hop(self.recording, self.layer, self.w[:, places], self.q[:, places])

    def all(self) -> Chains:
        """Every extended chain, head by head."""
        v = self.q @ self.recording.weights.head_W_V(self.layer).mT  # [head, chain, d_model]
        return Chains(self.w.flatten(0, 1), v.flatten(0, 1))  # [head x chain, ..]

    def contributions(self, below: Layer) -> Float[Tensor, "head chain source"]:
        """What each source under the layer sends along each chain [logits]."""
        if below.projected is not None:
            return self._in_value_space(below.projected)
        return self._in_stream(below.rows)

    def carried(self) -> Float[Tensor, "head chain"]:
        """Everything that each chain carries, whatever came before: the stream under the layer
        [logits]."""
        n, weights = self.w.shape[-1], self.recording.weights
        values = self.recording.stream[self.layer, :n] @ weights.W_V[self.layer]
        values = values.repeat_interleave(weights.group, 0)  # [head, src, d_head]
        return ((self.w @ values) * self.q).sum(-1)  # [head, chain]

    def _in_value_space(
        self, projected: Float[Tensor, "source pos kv_head d_head"]
    ) -> Float[Tensor, "head chain source"]:
        n_sources, n, _, d_head = projected.shape
        n_heads, n_chains, _ = self.w.shape
        group = self.recording.weights.group
        flat = projected.permute(2, 1, 0, 3).reshape(-1, n, n_sources * d_head)
        flat = flat.repeat_interleave(group, 0)  # [head, pos, source x d_head]
        sent = self.w.new_empty(n_heads, n_chains, n_sources)
        step = max(1, _ROOM // (n_heads * n_sources * d_head))
        for start in range(0, n_chains, step):
            part = slice(start, start + step)
            mixed = (self.w[:, part] @ flat).view(n_heads, -1, n_sources, d_head)
            sent[:, part] = (mixed * self.q[:, part].unsqueeze(2)).sum(-1)
        return sent

    def _in_stream(
        self, rows: Float[Tensor, "source pos d_model"]
    ) -> Float[Tensor, "head chain source"]:
        n_heads, n_chains, n = self.w.shape
        W_V = self.recording.weights.head_W_V(self.layer)  # [head, d_model, d_head]
        flat = rows.flatten(0, 1).mT  # [d_model, source x pos]
        sent = self.w.new_empty(n_heads, n_chains, len(rows))
        step = max(1, _ROOM // (n_heads * len(rows) * n))
        for start in range(0, n_chains, step):
            part = slice(start, start + step)
            v = self.q[:, part] @ W_V.mT  # [head, chain, d_model]
            read = (v @ flat).view(n_heads, -1, len(rows), n)  # [head, chain, source, pos]
            sent[:, part] = torch.einsum("hcsj,hcj->hcs", read, self.w[:, part])
        return sent


def hop(recording: Recording, layer: int, chains: Chains) -> Hop:
    """`chains`, each of which starts above `layer`, extended by every head of it.

    Held fixed: patterns and norm scales, as recorded.
    """
    weights, n = recording.weights, chains.w.shape[-1]
    w = chains.w if recording.post_scale is None else chains.w / recording.post_scale[layer, :n]
    moved = w @ recording.pattern[layer, :, :n, :n]  # [head, chain, src]
    moved /= recording.ln_scale[layer, :n]
    n_heads, d_head, d_model = weights.W_O[layer].shape
    flat = weights.W_O[layer].reshape(n_heads * d_head, d_model)
    q = (chains.v @ flat.mT).view(-1, n_heads, d_head).transpose(0, 1)
    return Hop(recording, layer, moved, q)
