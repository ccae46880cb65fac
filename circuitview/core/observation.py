"""What a plain run of a model did, layer by layer, as the model's own code reports it.

check.py holds it against the recording and the value side: only where they agree are paths exact.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerOutputs:
    """One layer.

    Attributes:
        resid_pre, resid_mid, resid_post: the stream before attention, between attention and MLP
            (None in parallel blocks and where there is no MLP), and behind the layer.
        attn_out, mlp_out: what is added to the stream, norms behind them and multipliers included;
            mlp_out is None where the layer has no MLP.
        z: what each head mixed.
        pattern: after softmax.
    """

    resid_pre: Float[Tensor, "pos d_model"]
    resid_post: Float[Tensor, "pos d_model"]
    attn_out: Float[Tensor, "pos d_model"]
    z: Float[Tensor, "head pos d_head"]
    pattern: Float[Tensor, "head dest src"]
    resid_mid: Float[Tensor, "pos d_model"] | None = None
    mlp_out: Float[Tensor, "pos d_model"] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Observation:
    """All layers, and the logits at every position before a soft cap."""

    layers: tuple[LayerOutputs, ...]
    logits: Float[Tensor, "pos d_vocab"]
