"""Edits made in the run of another program's model, as hooks where its own code hands a value on.

Hooks of one point are called in the order in which they are given, each with what the one before
handed on: a tape that comes after these records what was changed.
"""

from functools import partial
from typing import Any

from torch import Tensor

from circuitview.core.checkpoint.bridge_norms import Norm
from circuitview.core.checkpoint.bridge_tape import Hook
from circuitview.core.checkpoint.bridge_weights import BlockNorms
from circuitview.core.edits import Edits
from circuitview.core.names import Head
from circuitview.core.value_side import ValueSide


class EditHooks:
    """The hooks of one run."""

    def __init__(
        self,
        weights: ValueSide,
        norms: tuple[BlockNorms, ...],
        last_norm: Norm | None,
        edits: Edits,
        clean_embedding: Tensor | None = None,
    ) -> None:
        """Args: clean_embedding: [pos, d_model], what `edits.embedding` stands in place of."""
        self.weights, self.norms, self.last_norm, self.edits = weights, norms, last_norm, edits
        self.clean_embedding = clean_embedding
        self._values: dict[Head, Tensor] = {}

    def hooks(self) -> list[tuple[str, Hook]]:
        """The points at which something is changed, and what is done there."""
        edits, found = self.edits, list[tuple[str, Hook]]()
        if edits.embedding is not None:
            assert self.clean_embedding is not None
            change = edits.embedding - self.clean_embedding  # [pos, d_model]
            found.append(("blocks.0.hook_in", partial(_add, change)))
        for layer in range(self.weights.config.n_layers):
            block, heads = f"blocks.{layer}.", edits.heads_of(layer)
            if any(head in edits.patterns for head in heads):
                found.append((block + "hook_in", partial(self._read_values, layer)))
            if heads:
                found.append((block + "attn.o.hook_in", partial(self._put, heads)))
            if layer in edits.mlp_out:
                found.append((block + "hook_mlp_out", partial(_replace, edits.mlp_out[layer])))
        if edits.added is not None:
            last = f"blocks.{self.weights.config.n_layers - 1}.hook_out"
            point = last if self.last_norm is None else "ln_final.hook_in"
            found.append((point, partial(_add, edits.added)))
        return found

    def _read_values(self, layer: int, tensor: Tensor, **_: Any) -> None:
        """Keep the values of the layer's heads whose pattern is replaced, as this run has them."""
        stream = tensor.reshape(tensor.shape[-2:]).float().cpu()  # [pos, d_model]
        norm = self.norms[layer].attn
        if norm is not None:
            stream = stream / norm.scale(stream).to(stream.dtype).unsqueeze(-1)
        for head in self.edits.heads_of(layer):
            if head in self.edits.patterns:
                bias = self.weights.b_V[layer, head.head // self.weights.group]
                self._values[head] = stream @ self.weights.W_V_of(head) + bias  # [pos, d_head]

    def _put(self, heads: tuple[Head, ...], tensor: Tensor, **_: Any) -> Tensor:
        """What the heads of a layer mix, with what the edits put in place of some of it."""
        config = self.weights.config
        changed = tensor.clone()
        z = changed.view(-1, config.n_heads, config.d_head)  # [pos, head, d_head]
        for head in heads:
            if head in self.edits.z:
                z[:, head.head] = self.edits.z[head].to(z)
            elif head in self.edits.zeroed:
                z[:, head.head] = 0.0
            else:
                pattern = self.edits.patterns[head]
                z[:, head.head] = (pattern @ self._values[head]).to(z)  # [dest, d_head]
        return changed


def _add(change: Tensor, tensor: Tensor, **_: Any) -> Tensor:
    return tensor + change.view(tensor.shape).to(tensor)


def _replace(written: Tensor, tensor: Tensor, **_: Any) -> Tensor:
    return written.reshape(tensor.shape).to(tensor)


def logits_at(dests: Tensor, kept: list[Tensor]) -> tuple[str, Hook]:
    """A hook that keeps the logits at `dests`, before a soft cap, and nothing else."""

    def keep(tensor: Tensor, **_: Any) -> None:
        kept.append(tensor.reshape(-1, tensor.shape[-1])[dests.to(tensor.device)].float().cpu())

    return "unembed.hook_out", keep
