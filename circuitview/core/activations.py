"""What stands between the two matrices of an MLP, by transformer_lens' names."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

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


_ELEMENTWISE: dict[str, Activation] = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(functional.gelu, approximate="tanh"),
    "gelu_fast": gelu_fast,
    "silu": functional.silu,
}


def activation(name: str, eps: float) -> tuple[Activation, bool]:
    """The nonlinearity of that name, and whether it acts on each neuron by itself.

    Args:
        name: one of config.ACTIVATIONS.
        eps: of the model's norms; "solu_ln" has one inside.
    """
    if name in _ELEMENTWISE:
        return _ELEMENTWISE[name], True
    if name == "solu":
        return solu, False
    assert name == "solu_ln"
    return partial(solu_ln, eps=eps), False
