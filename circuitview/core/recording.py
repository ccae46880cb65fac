"""What one run of a model left behind: all that the exact sums need, and nothing else."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.names import POSITION, TOKEN, Source
from circuitview.core.prompt import Prompt
from circuitview.core.weights import Weights


@dataclass(frozen=True, eq=False)
class Recording:
    """One prompt's run, in the precision of its weights.

    Attributes:
        scores: before softmax; 0 in the future (src > dest), where the pattern is 0.
        pattern: after softmax; dest = where you stand, src = where you look; rows sum to 1.
        z: each head's mixed values, value bias included; z W_O is what it writes.
        stream: resid_pre of each layer, then the final stream, centred where the model centres.
        ln_scale, final_scale: what the norms divide by; 1 where a model has none.
        logits: at every position.
    """

    prompt: Prompt
    weights: Weights
    tokens: Int[Tensor, " pos"]
    scores: Float[Tensor, "layer head dest src"]
    pattern: Float[Tensor, "layer head dest src"]
    z: Float[Tensor, "layer head pos d_head"]
    stream: Float[Tensor, "layer_plus_1 pos d_model"]
    ln_scale: Float[Tensor, "layer pos"]
    final_scale: Float[Tensor, " pos"]
    logits: Float[Tensor, "pos d_vocab"]

    def source(self, source: Source) -> Float[Tensor, "pos d_model"]:
        """What `source` writes to the stream at each position."""
        n = len(self.tokens)
        if source == TOKEN:
            return self.weights.W_E[self.tokens]  # [pos, d_model]
        if source == POSITION and self.weights.W_pos is not None:
            return self.weights.W_pos[:n]  # [pos, d_model]
        if source.kind == "bias":
            return self.weights.bias[source.layer].expand(n, -1)  # [pos, d_model]
        raise ValueError(f"this model has no source {source}")
