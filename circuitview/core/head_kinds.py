"""What each head looks at on a repeated random sequence: BOS, r, r.

Random tokens carry no meaning, so what is left is mechanism: a previous-token head looks one back,
a duplicate-token head at the earlier copy of its own token, an induction head at the token after
that copy. Source: Olsson et al. 2022, In-context Learning and Induction Heads.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import Head
from circuitview.core.prompt import Prompt
from circuitview.core.runner import run
from circuitview.core.weights import Weights

_LONGEST = 60  # tokens of r


@dataclass(frozen=True, eq=False)
class HeadKinds:
    """Mean attention weight of each head in three places, 0 to 1.

    Attributes:
        previous_token: on the token one back, over all positions but the first.
        duplicate_token: on the earlier copy of the token one stands on, over the second r.
        induction: on the token after that copy, over the second r.
    """

    previous_token: Float[Tensor, "layer head"]
    duplicate_token: Float[Tensor, "layer head"]
    induction: Float[Tensor, "layer head"]


def head_kinds(weights: Weights, seed: int = 0) -> HeadKinds:
    """The scores of every head, on one sequence as long as the context allows (r of 60 at most).

    Held fixed: nothing, this is a plain run. The sequence starts with BOS where the model has one.
    """
    config = weights.config
    start = () if config.bos_token_id is None else (config.bos_token_id,)
    length = min(_LONGEST, (config.n_ctx - len(start)) // 2)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, config.d_vocab, (length,), generator=generator).tolist()
    ids = (*start, *drawn, *drawn)
    recording = run(weights, Prompt("", ids, tuple(map(str, ids))))
    pattern = recording.pattern  # [layer, head, dest, src]
    second = len(ids) - length  # the first position of the second r

    def mean_back(back: int, first_dest: int) -> Float[Tensor, "layer head"]:
        dest = torch.arange(first_dest, len(ids))
        return pattern[:, :, dest, dest - back].mean(-1)  # [layer, head]

    return HeadKinds(
        previous_token=mean_back(1, 1),
        duplicate_token=mean_back(length, second),
        induction=mean_back(length - 1, second),
    )


def heads_above(scores: Float[Tensor, "layer head"], least: float) -> list[tuple[Head, float]]:
    """The heads whose score is at least `least`, the highest first."""
    found = [
        (Head(layer, head), float(scores[layer, head]))
        for layer, head in (scores >= least).nonzero().tolist()
    ]
    return sorted(found, key=lambda pair: -pair[1])
