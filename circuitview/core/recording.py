"""What one run of a model left behind: all that the exact sums need, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.names import POSITION, TOKEN, Source
from circuitview.core.prompt import Prompt
from circuitview.core.value_side import ValueSide

if TYPE_CHECKING:
    from circuitview.core.edits import Edits


@dataclass(frozen=True, eq=False, kw_only=True)
class Recording:
    """One prompt's run, in the precision of its weights.

    Attributes:
        pattern: after softmax; dest = where you stand, src = where you look; rows sum to 1.
        z: each head's mixed values, value bias included; z W_O is what it writes.
        stream: resid_pre of each layer, then the final stream, centred where the model's folded
            weights centre.
        ln_scale, final_scale: what the norms divide by; 1 where a model has none.
        logits: at every position; before the soft cap where the model has one.
        embedding: what the token embedding writes, multipliers included.
        positions: what the position embedding writes; None where it writes nothing.
        mlp_out: what each MLP adds to the stream, the norm behind it and multipliers included;
            None in attention-only models.
        mlp_scale: what the norm before each MLP divides by; None in attention-only models.
        post_scale, mlp_post_scale: what norms behind attention and behind the MLP divide by; None
            where a model has none.
        rerun: the same prompt again, with edits.
    """

    prompt: Prompt
    weights: ValueSide
    tokens: Int[Tensor, " pos"]
    pattern: Float[Tensor, "layer head dest src"]
    z: Float[Tensor, "layer head pos d_head"]
    stream: Float[Tensor, "layer_plus_1 pos d_model"]
    ln_scale: Float[Tensor, "layer pos"]
    final_scale: Float[Tensor, " pos"]
    logits: Float[Tensor, "pos d_vocab"]
    embedding: Float[Tensor, "pos d_model"]
    positions: Float[Tensor, "pos d_model"] | None = None
    mlp_out: Float[Tensor, "layer pos d_model"] | None = None
    mlp_scale: Float[Tensor, "layer pos"] | None = None
    post_scale: Float[Tensor, "layer pos"] | None = None
    mlp_post_scale: Float[Tensor, "layer pos"] | None = None
    rerun: "Callable[[Edits], Any] | None" = None

    @property
    def dtype(self) -> str:
        """The precision of the run, "float32" or "float64"."""
        return str(self.stream.dtype).removeprefix("torch.")

    def source(self, source: Source) -> Float[Tensor, "pos d_model"]:
        """What `source` writes to the stream at each position."""
        n, layer = len(self.tokens), source.layer
        if source == TOKEN:
            return self.embedding
        if source == POSITION and self.positions is not None:
            return self.positions
        if source.kind == "bias":
            bias = self.weights.bias[layer].expand(n, -1)  # [pos, d_model]
            if self.post_scale is not None:
                bias = bias / self.post_scale[layer].unsqueeze(-1)
            post = self.weights.b_post
            return bias if post is None else bias + post[layer]
        if source.kind == "mlp" and self.mlp_out is not None:
            return self.mlp_out[layer]
        if source.kind == "mlp bias" and self.weights.mlps:
            return self.mlp_bias(layer)
        raise ValueError(f"this model has no source {source}")

    def into_mlp(self, layer: int) -> Float[Tensor, "pos d_model"]:
        """The stream that the MLP of `layer` reads: behind attention, or, where both run in
        parallel, before it."""
        if self.weights.config.parallel_attn_mlp or self.mlp_out is None:
            return self.stream[layer]
        return self.stream[layer + 1] - self.mlp_out[layer]

    def into_mlp_scale(self, layer: int) -> Float[Tensor, " pos"]:
        """What the norm before the MLP of `layer` divides by."""
        if self.mlp_scale is None:
            raise ValueError("this model has no MLPs")
        return self.mlp_scale[layer]

    def mlp_ratio(self, layer: int) -> Float[Tensor, "pos d_mlp"]:
        """What each neuron of `layer`'s MLP multiplied its input by; made anew from the stream, so
        that runs need not keep it. Cost: n d_model d_mlp."""
        mlp = self.weights.mlps[layer]
        return mlp.ratio(self.into_mlp(layer), self.into_mlp_scale(layer))

    def mlp_bias(self, layer: int) -> Float[Tensor, "pos d_model"]:
        """What the MLP of `layer` adds to the stream whatever it reads, its ratios held."""
        mlp = self.weights.mlps[layer]
        written = (self.mlp_ratio(layer) * mlp.b_in) @ mlp.W_out + mlp.b_out  # [pos, d_model]
        if self.mlp_post_scale is not None:
            written = written / self.mlp_post_scale[layer].unsqueeze(-1)
        if mlp.out_gain is not None:
            written = written * mlp.out_gain
        return written if mlp.b_post is None else written + mlp.b_post

    def moved(self, layer: int) -> Float[Tensor, "head dest src"]:
        """How much of what the heads of a layer make of the stream at src arrives at dest: the
        pattern, over the scale of a norm behind attention where there is one."""
        pattern = self.pattern[layer]
        return pattern if self.post_scale is None else pattern / self.post_scale[layer][:, None]

    def probabilities(self, dest: int) -> Float[Tensor, " d_vocab"]:
        """The model's own probabilities at `dest`, its soft cap applied; float64."""
        logits = self.logits[dest].double()  # [d_vocab]
        cap = self.weights.config.output_logits_soft_cap
        if cap is not None and cap > 0:
            logits = cap * torch.tanh(logits / cap)
        return logits.softmax(-1)
