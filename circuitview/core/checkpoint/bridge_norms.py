"""Norms of Hugging Face models, known by what they do rather than by their names.

A norm divides by a scale; all else in it (centring, gain, bias) is linear. Which kind one is, and
whether its gain is stored as w or as 1 + w, is found by trying: it must give what the module gives.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import CircuitviewError

# Relative: two float32 norms of one vector. A wrong kind is off by far more.
_SAME = 1e-4


@dataclass(frozen=True, eq=False)
class Norm:
    """What one norm does: ((x - mean?) / scale) x gain + shift.

    Attributes:
        centres: whether it subtracts the mean.
        eps: what stands under the root beside the mean square.
        gain, shift: [d_model], or None where it has none.
    """

    centres: bool
    eps: float
    gain: Float[Tensor, " d_model"] | None
    shift: Float[Tensor, " d_model"] | None

    def scale(self, x: Float[Tensor, "pos d_model"]) -> Float[Tensor, " pos"]:
        """What it divides `x` by at each position; in float64."""
        x = x.double()
        if self.centres:
            x = x - x.mean(-1, keepdim=True)
        return (x.square().mean(-1) + self.eps).sqrt()  # [pos]

    def __call__(self, x: Float[Tensor, "pos d_model"]) -> Float[Tensor, "pos d_model"]:
        """The normed `x`, in float64."""
        scale = self.scale(x).unsqueeze(-1)
        x = x.double()
        if self.centres:
            x = x - x.mean(-1, keepdim=True)
        x = x / scale
        x = x if self.gain is None else x * self.gain
        return x if self.shift is None else x + self.shift


def read_norm(component: Any, d_model: int, default_eps: float, where: str) -> Norm | None:
    """The norm that a bridge component stands for; None where it passes everything on.

    Args:
        component: the bridge's, or None.
        d_model: the stream's width.
        default_eps: for modules that do not say theirs.
        where: the norm's place, for the message.

    Raises:
        CircuitviewError: where it is neither a layer norm nor an RMS norm.
    """
    module = None if component is None else component.original_component
    if module is None or isinstance(module, torch.nn.Identity):
        return None
    eps = float(getattr(module, "eps", getattr(module, "variance_epsilon", default_eps)))
    weight, shift = (_vector(module, name) for name in ("weight", "bias"))
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(2, d_model, generator=generator) + 1
    probe[1] *= 1e-3  # so small that eps counts
    probe = probe.to("cpu" if weight is None else weight.device)
    with torch.inference_mode():
        expected = module(probe).double()
    for centres in (False, True):
        for offset in (0.0, 1.0) if weight is not None else (0.0,):
            gain = None if weight is None else weight.double() + offset
            norm = Norm(centres, eps, gain, None if shift is None else shift.double())
            if _close(norm(probe), expected):
                return norm
    raise CircuitviewError(
        f"{where} is a {type(module).__name__}, neither a layer norm nor an RMS norm, so the model "
        "can't be split into exact paths; choose another model"
    )


def _vector(module: Any, name: str) -> Tensor | None:
    value = getattr(module, name, None)
    return value.detach() if isinstance(value, Tensor) else None


def _close(ours: Tensor, theirs: Tensor) -> bool:
    largest = theirs.abs().amax(-1, keepdim=True)  # [2, 1], each probe by itself
    return bool(((ours - theirs).abs() <= _SAME * largest).all())
