"""What stands between the two matrices of an MLP, by transformer_lens' names."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from circuitview.core.config import ELEMENTWISE

Activation = Callable[[Tensor], Tensor]


def gelu_fast(x: Tensor) -> Tensor:
    """The tanh form of GELU with sqrt(2/pi) cut to ten digits, as the models of that name have
    it."""
    return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def solu(x: Tensor) -> Tensor:
    """Each x times its softmax over the neurons.

    Source: Elhage et al. 2022, Softmax Linear Units.
    """
    return x * x.softmax(-1)


def solu_ln(x: Tensor, eps: float) -> Tensor:
    """SoLU and the layer norm behind it, whose gain and bias are folded into W_out and b_out."""
    found = solu(x)
    found = found - found.mean(-1, keepdim=True)
    return found / (found.square().mean(-1, keepdim=True) + eps).sqrt()


_tanh_gelu = partial(functional.gelu, approximate="tanh")
_FUNCTIONS: dict[str, Activation] = dict(
    zip(
        ELEMENTWISE,  # whose order this is
        (torch.relu, functional.gelu, _tanh_gelu, gelu_fast, _tanh_gelu, functional.silu),
        strict=True,
    )
)


def activation(name: str, eps: float) -> Activation:
    """The nonlinearity of that name.

    Args:
        name: one of config.ACTIVATIONS.
        eps: of the model's norms; "solu_ln" has one inside.
    """
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name == "solu":
        return solu
    assert name == "solu_ln"
    return partial(solu_ln, eps=eps)
