"""A model's weights with every linear part of its norms folded in.

A layer norm centres, divides, multiplies by a gain and adds a bias. Centring goes into all that
writes to the stream, gain and bias into what reads it; what is left is the division, which the
runner records. Folding is done in float64, whatever the file holds, and rounded once at the end;
a few rows at a time, so that a model is never in memory twice.

Row vectors, weights applied on the right: W_OV = W_V W_O, W_QK = W_Q W_K^T (the paper of Elhage et
al. 2021 multiplies on the left). Products stay factored: W_OV is never built.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.activations import activation
from circuitview.core.config import ELEMENTWISE, ModelConfig
from circuitview.core.mlp import MLP
from circuitview.core.value_side import ValueSide


@runtime_checkable
class Arrays(Protocol):
    """Stored arrays by name: a dict, or a file that is read as it is asked."""

    def __getitem__(self, name: str, /) -> Tensor: ...

    def get(self, name: str, /) -> Tensor | None: ...


# How many numbers are widened to float64 at a time.
_AT_ONCE = 2**19


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights(ValueSide):
    """Folded weights of a model that runner.py runs: the value side, and what makes the patterns.

    Attributes:
        pos_Q, pos_K: what positions add to queries and keys in a shortformer model; they meet
            neither centring nor gain and are not divided by the scale. None elsewhere.
        W_pos: positions that are written to the stream; None in shortformer, rotary and
            position-free models.
        blocks: one MLP a layer, as the runner runs them; empty in attention-only models. `mlps` are
            the same where each neuron is by itself, and empty where they mix (SoLU).
    """

    b_U: Float[Tensor, " d_vocab"]
    W_E: Float[Tensor, "d_vocab d_model"]
    W_pos: Float[Tensor, "n_ctx d_model"] | None
    W_Q: Float[Tensor, "layer head d_model d_head"]
    W_K: Float[Tensor, "layer kv_head d_model d_head"]
    b_Q: Float[Tensor, "layer head d_head"]
    b_K: Float[Tensor, "layer kv_head d_head"]
    pos_Q: Float[Tensor, "layer head n_ctx d_head"] | None = None
    pos_K: Float[Tensor, "layer kv_head n_ctx d_head"] | None = None
    blocks: tuple[MLP, ...] = ()

    def to(self, dtype: torch.dtype) -> "Weights":
        """The same weights in another precision."""
        if dtype == self.dtype:
            return self
        blocks = tuple(_cast(mlp, dtype) for mlp in self.blocks)
        arrays = _arrays(self, dtype)
        return replace(self, **arrays, blocks=blocks, mlps=blocks if self.mlps else ())


def _arrays(holder: Any, dtype: torch.dtype) -> dict[str, Any]:
    found = {field.name: getattr(holder, field.name) for field in fields(holder)}
    return {name: value.to(dtype) for name, value in found.items() if isinstance(value, Tensor)}


def _cast(mlp: MLP, dtype: torch.dtype) -> MLP:
    return replace(mlp, **_arrays(mlp, dtype))


def fold(config: ModelConfig, arrays: Arrays, dtype: torch.dtype = torch.float64) -> Weights:
    """The folded weights in `dtype`, rounded once from float64.

    Memory: one model in `dtype`, beside what `arrays` holds.

    Args:
        config: sizes and kinds.
        arrays: under transformer_lens' names, of the right shapes (see checkpoint/layout.py);
            biases and the arrays of a norm may be missing, which means zero biases and gains of
            one. Each is asked for once or twice.
        dtype: float32 or float64.
    """
    with torch.no_grad():
        folding = _Folding(config, arrays, dtype)
        W_U, b_U = folding.unembedding()
        W_E, W_pos = folding.embeddings()
        attention = folding.attention()
        blocks = () if config.attn_only else folding.mlps()
        by_neuron = config.act_fn in ELEMENTWISE
        return Weights(
            config=config,
            W_E=W_E,
            W_pos=W_pos,
            W_U=W_U,
            b_U=b_U,
            blocks=blocks,
            mlps=blocks if by_neuron else (),
            **attention,
        )


@dataclass(frozen=True, eq=False)
class _Folding:
    """One model on its way from stored arrays to folded ones."""

    config: ModelConfig
    arrays: Arrays
    dtype: torch.dtype

    @property
    def centred(self) -> bool:
        """Whether all that writes to the stream is centred."""
        return self.config.norm == "LN"

    def vector(self, name: str, *shape: int, default: float = 0.0) -> Tensor:
        """A small array in float64."""
        array = self.arrays.get(name)
        if array is None:
            return torch.full(shape, default, dtype=torch.float64)
        # A copy: what is added to it must not reach the caller's array.
        return array.to(torch.float64, copy=True)

    def empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=self.dtype)

    def norm(self, name: str) -> tuple[Tensor, Tensor]:
        """A norm's gain and bias [d_model]."""
        D = self.config.d_model
        return self.vector(f"{name}.w", D, default=1.0), self.vector(f"{name}.b", D)

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        c = self.config
        W_E = self.empty(c.d_vocab, c.d_model)
        _fold_rows(self.arrays["embed.W_E"], W_E, centred=self.centred)
        if not c.has_positions:
            return W_E, None
        W_pos = self.empty(c.n_ctx, c.d_model)
        _fold_rows(self.arrays["pos_embed.W_pos"], W_pos, centred=self.centred)
        return W_E, W_pos

    def unembedding(self) -> tuple[Tensor, Tensor]:
        c = self.config
        gain, shift = self.norm("ln_final")
        W_U = self.empty(c.d_model, c.d_vocab)
        shifted = _fold_rows(self.arrays["unembed.W_U"], W_U, gain, shift)
        b_U = self.vector("unembed.b_U", c.d_vocab) + shifted  # [d_vocab]
        return W_U, b_U.to(self.dtype)

    def attention(self) -> dict[str, Any]:
        """All layers' attention, and what positions add to queries and keys."""
        c = self.config
        L, D, dh = c.n_layers, c.d_model, c.d_head
        heads = {"Q": c.n_heads, "K": c.n_kv_heads, "V": c.n_kv_heads}
        found: dict[str, Any] = {"W_O": self.empty(L, c.n_heads, dh, D), "b_O": self.empty(L, D)}
        for kind, count in heads.items():
            found[f"W_{kind}"] = self.empty(L, count, D, dh)
            found[f"b_{kind}"] = self.empty(L, count, dh)
        positions = None
        if c.positional_embedding_type == "shortformer":
            positions = self.vector("pos_embed.W_pos", c.n_ctx, D)  # [n_ctx, d_model]
            for kind in "QK":
                found[f"pos_{kind}"] = self.empty(L, heads[kind], c.n_ctx, dh)
        for layer in range(L):
            name = f"blocks.{layer}.attn."
            gain, shift = self.norm(f"blocks.{layer}.ln1")
            for kind, count in heads.items():
                bias = self.vector(f"{name}b_{kind}", count, dh)  # [head, d_head]
                stored = self.arrays[f"{name}W_{kind}"]  # [head, d_model, d_head]
                for head in range(count):
                    into = found[f"W_{kind}"][layer, head]
                    bias[head] += _fold_rows(stored[head], into, gain, shift)
                    if positions is not None and kind in "QK":
                        # Positions meet the weight as it is stored: behind the norm.
                        moved = positions @ stored[head].double()  # [n_ctx, d_head]
                        found[f"pos_{kind}"][layer, head] = moved
                found[f"b_{kind}"][layer] = bias
            stored = self.arrays[f"{name}W_O"].flatten(0, 1)  # [head x d_head, d_model]
            _fold_rows(stored, found["W_O"][layer].flatten(0, 1), centred=self.centred)
            found["b_O"][layer] = _centre(self.vector(f"{name}b_O", D), self.centred)
        return found

    def mlps(self) -> tuple[MLP, ...]:
        return tuple(self.mlp(layer) for layer in range(self.config.n_layers))

    def mlp(self, layer: int) -> MLP:
        c = self.config
        D, neurons, name = c.d_model, c.n_neurons, f"blocks.{layer}.mlp."
        gain, shift = self.norm(f"blocks.{layer}.ln2")
        # A layer norm behind SoLU: its gain and bias stand before W_out.
        mid_gain = self.vector(f"{name}ln.w", neurons, default=1.0)
        mid_shift = self.vector(f"{name}ln.b", neurons)
        stored = self.vector(f"{name}b_in", neurons)
        W_in, W_out, W_gate, b_gate = self.empty(D, neurons), self.empty(neurons, D), None, None
        b_in = _fold_rows(self.arrays[f"{name}W_in"], W_in, gain, shift)  # [d_mlp]
        if c.gated_mlp:
            # In a gated MLP of transformer_lens, b_in is added behind the product.
            mid_shift = mid_shift + stored
            W_gate = self.empty(D, neurons)
            b_gate = self.vector(f"{name}b_gate", neurons)
            b_gate = b_gate + _fold_rows(self.arrays[f"{name}W_gate"], W_gate, gain, shift)
            b_gate = b_gate.to(self.dtype)
        else:
            b_in = b_in + stored
        shifted = _fold_rows(
            self.arrays[f"{name}W_out"], W_out, mid_gain, mid_shift, centred=self.centred
        )
        b_out = _centre(self.vector(f"{name}b_out", D), self.centred) + shifted  # [d_model]
        return MLP(
            W_in=W_in,
            W_out=W_out,
            b_in=b_in.to(self.dtype),
            b_out=b_out.to(self.dtype),
            act=activation(c.act_fn or "", c.eps),
            W_gate=W_gate,
            b_gate=b_gate,
        )


def _centre(array: Tensor, centred: bool) -> Tensor:
    return array - array.mean(-1, keepdim=True) if centred else array


def _fold_rows(
    stored: Float[Tensor, "row column"],
    into: Float[Tensor, "row column"],
    gain: Float[Tensor, " row"] | None = None,
    shift: Float[Tensor, " row"] | None = None,
    centred: bool = False,
) -> Float[Tensor, " column"]:
    """Write `stored` to `into`, its rows times `gain` and centred where asked for; return what
    `shift` makes of it, in float64."""
    shifted = torch.zeros(stored.shape[1], dtype=torch.float64)
    step = max(1, _AT_ONCE // stored.shape[1])
    for start in range(0, len(stored), step):
        rows = slice(start, start + step)
        wide = _centre(stored[rows].double(), centred)  # [some rows, column]
        if shift is not None and bool(shift[rows].any()):
            shifted += shift[rows] @ wide  # [column]
        into[rows] = wide if gain is None else gain[rows].unsqueeze(-1) * wide
    return shifted
