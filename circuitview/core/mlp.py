"""One layer's MLP, and what becomes of it when its nonlinearity is held.

By default an MLP's recorded output is a source of paths. To carry paths on through it, each
neuron's nonlinearity is held at its recorded ratio: act(x)/x for a plain MLP (its limit where x is
0), the activated gate for a gated one. What is left is linear in the stream, so that the sum stays
exact: the path expansion of Elhage et al. 2021 with one thing more held.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class MLP:
    """The weights of one MLP. Matrices are those of the model, unfolded, so that none is copied.

    Attributes:
        W_in, W_out, b_out: to the neurons and back.
        b_in: [d_mlp], the norm's own bias counted in.
        W_gate, b_gate: of a gated MLP, whose neurons are act(gate) x in; else None.
        act: the nonlinearity, elementwise.
        gain: what its norm multiplies by, or None. `centred`: whether that norm centres.
        out_gain: what a norm behind it, and residual multipliers, multiply its output by, or None.
        b_post: what a norm behind it adds, or None.
    """

    W_in: Float[Tensor, "d_model d_mlp"]
    W_out: Float[Tensor, "d_mlp d_model"]
    b_in: Float[Tensor, " d_mlp"]
    b_out: Float[Tensor, " d_model"]
    act: Callable[[Tensor], Tensor]
    W_gate: Float[Tensor, "d_model d_mlp"] | None = None
    b_gate: Float[Tensor, " d_mlp"] | None = None
    gain: Float[Tensor, " d_model"] | None = None
    centred: bool = False
    out_gain: Float[Tensor, " d_model"] | None = None
    b_post: Float[Tensor, " d_model"] | None = None

    @property
    def biased(self) -> bool:
        """Whether it writes anything but what it makes of the stream; a gate's own bias only turns
        the ratio."""
        biases = (self.b_in, self.b_out, self.b_post)
        return any(bias is not None and bool(bias.any()) for bias in biases)

    def normed(
        self, stream: Float[Tensor, "*batch pos d_model"], scale: Float[Tensor, "*#batch pos"]
    ) -> Float[Tensor, "*batch pos d_model"]:
        """What reaches W_in of `stream`, the norm's bias apart; `scale` is what its norm divided
        by."""
        read = stream / scale.unsqueeze(-1)
        if self.centred:
            read = read - read.mean(-1, keepdim=True)
        return read if self.gain is None else read * self.gain

    def ratio(
        self, stream: Float[Tensor, "pos d_model"], scale: Float[Tensor, " pos"]
    ) -> Float[Tensor, "pos d_mlp"]:
        """What each neuron multiplied its input by, at each position: act(x)/x or act(gate)."""
        read = self.normed(stream, scale)  # [pos, d_model]
        if self.W_gate is not None:
            gate = read @ self.W_gate  # [pos, d_mlp]
            return self.act(gate if self.b_gate is None else gate + self.b_gate)
        x = read @ self.W_in + self.b_in  # [pos, d_mlp]
        return torch.where(x == 0, _slope_at_zero(self.act, x), self.act(x) / x)

    def into(self, gradient: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_mlp"]:
        """The gradient at the neurons, from the one at the stream behind the MLP.

        A norm behind it divides as well: callers hold its recorded scale.
        """
        if self.out_gain is not None:
            gradient = gradient * self.out_gain
        return gradient @ self.W_out.mT

    def out_of(self, gradient: Float[Tensor, "*batch d_mlp"]) -> Float[Tensor, "*batch d_model"]:
        """The gradient at the stream before the division by the norm, from the one at W_in."""
        read = gradient @ self.W_in.mT  # [.., d_model]
        if self.gain is not None:
            read = read * self.gain
        return read - read.mean(-1, keepdim=True) if self.centred else read


def _slope_at_zero(act: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """The limit of act(x)/x at 0, from a step so small that its curve does not count."""
    step = torch.full((), 1e-4, dtype=torch.float64)
    slope = (act(step) - act(-step)) / (2 * step)
    return slope.to(like.dtype)
