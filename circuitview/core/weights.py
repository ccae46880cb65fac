"""A model's weights with every linear part of its norms folded in.

A layer norm centres, divides, multiplies by a gain and adds a bias. Centring goes into all that
writes to the stream, gain and bias into what reads it; what is left is the division, which the
runner records. Folding is done in float64, whatever the file holds, and rounded once at the end.

Row vectors, weights applied on the right: W_OV = W_V W_O, W_QK = W_Q W_K^T (the paper of Elhage et
al. 2021 multiplies on the left). Products stay factored: W_OV is never built.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.config import ModelConfig
from circuitview.core.names import POSITION, TOKEN, Source


@dataclass(frozen=True, eq=False)
class Weights:
    """Folded weights of an attention-only model.

    Attributes:
        pos_Q, pos_K: what positions add to queries and keys in a shortformer model; they meet
            neither centring nor gain and are not divided by the scale. None elsewhere.
        W_pos: positions that are written to the stream; None in shortformer and position-free
            models.
    """

    config: ModelConfig
    W_E: Float[Tensor, "d_vocab d_model"]
    W_pos: Float[Tensor, "n_ctx d_model"] | None
    W_Q: Float[Tensor, "layer head d_model d_head"]
    W_K: Float[Tensor, "layer head d_model d_head"]
    W_V: Float[Tensor, "layer head d_model d_head"]
    W_O: Float[Tensor, "layer head d_head d_model"]
    b_Q: Float[Tensor, "layer head d_head"]
    b_K: Float[Tensor, "layer head d_head"]
    b_V: Float[Tensor, "layer head d_head"]
    b_O: Float[Tensor, "layer d_model"]
    W_U: Float[Tensor, "d_model d_vocab"]
    b_U: Float[Tensor, " d_vocab"]
    pos_Q: Float[Tensor, "layer head n_ctx d_head"] | None
    pos_K: Float[Tensor, "layer head n_ctx d_head"] | None

    @property
    def dtype(self) -> torch.dtype:
        return self.W_E.dtype

    def to(self, dtype: torch.dtype) -> "Weights":
        """The same weights in another precision."""
        if dtype == self.dtype:
            return self
        arrays: dict[str, Any] = {
            field.name: value.to(dtype)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **arrays)

    def head_bias(self) -> Float[Tensor, "layer head d_model"]:
        """What each head writes whatever it looks at: b_V W_O (pattern rows sum to 1)."""
        return torch.einsum("lhe,lhed->lhd", self.b_V, self.W_O)  # [layer, head, d_model]

    @cached_property
    def bias(self) -> Float[Tensor, "layer d_model"]:
        """The constant that each layer writes: b_O and all its heads' value biases."""
        return self.b_O + self.head_bias().sum(1)  # [layer, d_model]

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What writes to the stream without reading it: token, position, the layers' biases.

        A layer whose constant is exactly zero has no bias source.
        """
        found = [TOKEN]
        if self.W_pos is not None:
            found.append(POSITION)
        bias = self.bias
        found += [Source("bias", layer) for layer in range(len(bias)) if bool(bias[layer].any())]
        return tuple(found)


def fold(config: ModelConfig, arrays: Mapping[str, Tensor]) -> Weights:
    """The folded weights in float64.

    Args:
        config: sizes and kinds.
        arrays: under the bundle's names, of the right shapes (see checkpoint/bundle.py); biases and
            the arrays of a norm may be missing, which means zero biases and gains of one.
    """
    layers, H, D = range(config.n_layers), config.n_heads, config.d_model
    zero = torch.zeros((), dtype=torch.float64)

    def get(name: str, *shape: int, default: float = 0.0) -> Tensor:
        array = arrays.get(name)
        return (zero + default).expand(shape) if array is None else array.double()

    def per_layer(name: str, *shape: int, default: float = 0.0) -> Tensor:
        return torch.stack([get(f"blocks.{lay}.{name}", *shape, default=default) for lay in layers])

    dh, V = config.d_head, config.d_vocab
    gain = per_layer("ln1.w", D, default=1.0)  # [layer, d_model]
    shift = per_layer("ln1.b", D)  # [layer, d_model]
    read: dict[str, Tensor] = {}
    raw: dict[str, Tensor] = {}
    for kind in "QKV":
        raw[kind] = per_layer(f"attn.W_{kind}", H, D, dh)  # [layer, head, d_model, d_head]
        bias = per_layer(f"attn.b_{kind}", H, dh)  # [layer, head, d_head]
        read[f"W_{kind}"] = gain[:, None, :, None] * raw[kind]
        read[f"b_{kind}"] = bias + torch.einsum("ld,lhde->lhe", shift, raw[kind])
    W_U = get("unembed.W_U", D, V)
    written = {
        "W_E": get("embed.W_E", V, D),
        "W_O": per_layer("attn.W_O", H, dh, D),
        "b_O": per_layer("attn.b_O", D),
    }
    W_pos = pos_Q = pos_K = None
    if config.positional_embedding_type == "standard":
        written["W_pos"] = get("pos_embed.W_pos", config.n_ctx, D)
    elif config.positional_embedding_type == "shortformer":
        positions = get("pos_embed.W_pos", config.n_ctx, D)
        pos_Q = torch.einsum("cd,lhde->lhce", positions, raw["Q"])  # [layer, head, n_ctx, d_head]
        pos_K = torch.einsum("cd,lhde->lhce", positions, raw["K"])  # [layer, head, n_ctx, d_head]
    if config.norm == "LN":
        written = {name: array - array.mean(-1, keepdim=True) for name, array in written.items()}
    W_pos = written.pop("W_pos", None)
    return Weights(
        config=config,
        W_pos=W_pos,
        W_U=get("ln_final.w", D, default=1.0)[:, None] * W_U,  # [d_model, d_vocab]
        b_U=get("unembed.b_U", V) + get("ln_final.b", D) @ W_U,  # [d_vocab]
        pos_Q=pos_Q,
        pos_K=pos_K,
        **read,
        **written,
    )
