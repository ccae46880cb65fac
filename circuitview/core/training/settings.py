"""What a training run is asked for."""

from typing import Literal

import msgspec


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, schedule and seed; two runs with equal settings on equal text give equal weights.

    Attributes:
        tokens: how many tokens are trained on in all.
        batch_tokens: tokens a step.
        repeat_stage: share of `tokens` spent first on short rows of random tokens, repeated.
        repeat_first, repeat_last: share of repeated rows in the text stage, at its start and end.
        started_head: whether head 0.0 starts out looking one position back.
        rate_attention, rate_rest: peak learning rates (AdamW); both fall along a cosine to 5
            percent.
        precision: what matrix products are computed in; weights and sums stay float32.
    """

    n_layers: int = 2
    n_heads: int = 8
    d_model: int = 256
    d_head: int = 32
    n_ctx: int = 256
    d_vocab: int = 4096
    eps: float = 1e-5
    tokens: int = 40_000_000
    batch_tokens: int = 2048
    repeat_stage: float = 0.05
    repeat_first: float = 0.5
    repeat_last: float = 0.15
    started_head: bool = True
    rate_attention: float = 7e-4
    rate_rest: float = 1.5e-3
    weight_decay: float = 0.01
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: int = 0
