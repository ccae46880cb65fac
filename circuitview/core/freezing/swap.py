"""One token replaced by another: frozen, foretold by the token's paths, and free.

With patterns, norm scales and MLP outputs held, replacing token s at a position by s' changes a
logit by

    Σ over token paths of w_path[position] x (W_E[s'] − W_E[s]) · v_path

with the position part w and the direction part v of each path grown backwards from the target, as
in expansion.py. The frozen run is a whole forward pass on the new embeddings and shares no step
with that, so the two check each other. The free run shows what patterns, norms and MLPs make of the
new token. Source: Elhage et al. 2021, whose OV circuits are the one-head case.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.frozen import impose, run_frozen
from circuitview.core.listed import grow_chains
from circuitview.core.model import Model
from circuitview.core.names import TOKEN, CircuitviewError, DtypeName, Head, ImbalanceError
from circuitview.core.orders import OrderSums, order_steps
from circuitview.core.path import Path, chain_table, count_chains
from circuitview.core.progress import Progress
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.target import Target

# Relative to the largest of |changes| and |logits|: what rounding may leave between two ways.
_TOLERANCE = {"float32": 1e-4, "float64": 1e-11}
# Chains are worked out whole up to so many numbers in their vectors (float32: 32 MB), and of them
# so many are listed.
_MOST_NUMBERS, _LISTED = 8_000_000, 2_000
_MOVERS = 6


@dataclass(frozen=True, slots=True)
class SwappedPath:
    """What one token path carries from the position to the target.

    Attributes:
        weight: how much of the position's token arrives at dest: of one head the attention weight,
            of several the product of patterns with the scales in the middle, without a head 1 or 0.
        before, after: what the old and the new token would add at weight 1, the scales at the
            path's two ends counted in [logits].
    """

    path: Path
    weight: float
    before: float
    after: float

    @property
    def change(self) -> float:
        """What the swap does: weight x (after − before) [logits]."""
        return self.weight * (self.after - self.before)


@dataclass(frozen=True, slots=True)
class Mover:
    """One token's logit at dest: clean, and its change frozen and free [logits]."""

    token: int
    label: str
    clean: float
    frozen: float
    free: float


@dataclass(frozen=True, eq=False, slots=True)
class Swap:
    """What another token at `position` does to the target.

    Attributes:
        prompt, dtype: of the clean run.
        target: whose logit, or difference of two.
        position: where the token was replaced.
        old, new: labels of the token that stood there and of the one put in its place.
        clean: the target's logit in the clean run [logits].
        frozen, free: its change with everything held, and with everything recomputed [logits].
        paths: token paths, the largest |change| first.
        n_paths: how many there are.
        remainder: the exact sum of those not listed, from the order sums where there are very many
            [logits].
        scale: what the error is measured against: the largest of |changes|, |logit A|, |logit B|.
        raised, lowered: the tokens whose frozen logits rise and fall most.
        own: the logits of the old and the new token themselves, of target and versus.
    """

    prompt: Prompt
    dtype: str
    target: Target
    position: int
    old: str
    new: str
    clean: float
    frozen: float
    free: float
    paths: tuple[SwappedPath, ...]
    n_paths: int
    remainder: float
    scale: float
    raised: tuple[Mover, ...]
    lowered: tuple[Mover, ...]
    own: tuple[Mover, ...]

    @property
    def predicted(self) -> float:
        """The change that the paths foretell [logits]."""
        return math.fsum(row.change for row in self.paths) + self.remainder

    @property
    def error(self) -> float:
        """The frozen change minus the foretold one [logits]."""
        return self.frozen - self.predicted

    @property
    def tolerance(self) -> float:
        """The largest error that rounding explains [logits]."""
        return _TOLERANCE[self.dtype] * self.scale

    def require_agreement(self) -> None:
        """Pass only a swap whose frozen run is what its paths foretell.

        Raises:
            ImbalanceError: with the numbers, where it is not.
        """
        if not abs(self.error) <= self.tolerance:  # False where anything is NaN
            raise ImbalanceError(
                f"the swap does not add up: frozen {self.frozen:.6g}, paths {self.predicted:.6g}, "
                f"error {self.error:.1e} passes the tolerance of {self.tolerance:.1e}; nothing is "
                "shown. Try float64"
            )


def swap(
    model: Model, recording: Recording, target: Target, position: int, new_token: str
) -> Generator[Progress, None, Swap]:
    """What `new_token` at `position` does to the target: frozen, foretold by paths, and free.

    Yields after each part. Held fixed, in the frozen run and in the paths: patterns, norm scales
    and MLP outputs of the clean run. Cost: a free run, a frozen one, and the order sums.

    Args:
        model: what was run.
        recording: a clean run of it.
        target: at a dest at or behind `position`.
        position: counted from 0.
        new_token: the text of one token, a leading space included; its label also serves.

    Raises:
        CircuitviewError: where the position can't be swapped, or the text is not one other token.
        ImbalanceError: where the frozen run is not what the paths foretell.
    """
    prompt = _swapped(model, recording, target, position, new_token)
    total = model.config.n_layers + 3
    free = model.run(prompt, cast("DtypeName", recording.dtype))
    yield Progress(1, total)
    frozen = run_frozen(impose(recording, on=free))
    yield Progress(2, total)
    with torch.inference_mode():
        old, new = recording.embedding[position], free.embedding[position]  # [d_model]
        rows, worked_out = _path_rows(recording, target, position, old, new)
    config = model.config
    n_paths = count_chains(config.n_layers, config.n_heads)
    kept = sorted(rows, key=lambda row: -abs(row.change))
    remainder = math.fsum(row.change for row in kept[_LISTED:])
    if worked_out < config.n_layers:
        remainder += yield from _beyond(recording, target, position, new - old, worked_out)
    before, after, freely = (
        target.of(run.logits[target.dest].double()) for run in (recording, frozen, free)
    )
    ends = [target.token] if target.versus is None else [target.token, target.versus]
    sizes = [float(recording.logits[target.dest, token].abs()) for token in ends]
    movers = _Movers(model, recording, frozen, free, target.dest)
    swapped = (recording.prompt.token_ids[position], prompt.token_ids[position])
    found = Swap(
        prompt=recording.prompt,
        dtype=recording.dtype,
        target=target,
        position=position,
        old=recording.prompt.labels[position],
        new=prompt.labels[position],
        clean=before,
        frozen=after - before,
        free=freely - before,
        paths=tuple(kept[:_LISTED]),
        n_paths=n_paths,
        remainder=remainder,
        scale=max([*sizes, *(abs(row.change) for row in kept[:1])]),
        raised=movers.most(True),
        lowered=movers.most(False),
        own=tuple(movers.of(token) for token in dict.fromkeys([*ends, *swapped])),
    )
    found.require_agreement()
    return found


def _swapped(
    model: Model, recording: Recording, target: Target, position: int, new_token: str
) -> Prompt:
    """The prompt with the new token in it."""
    prompt = recording.prompt
    if not 0 <= position < len(prompt):
        raise CircuitviewError(
            f"position {position} is out of range: the prompt has positions 0 to {len(prompt) - 1}"
        )
    if position > target.dest:
        raise CircuitviewError(
            f"position {position} stands after dest {target.dest}, which never looks at it: choose "
            f"0 to {target.dest}"
        )
    token = model.tokenizer.token_id(new_token, "new token")
    if token == prompt.token_ids[position]:
        raise CircuitviewError(
            f"{prompt.labels[position]!r} stands at position {position} already; choose another "
            "token"
        )
    ids, labels = list(prompt.token_ids), list(prompt.labels)
    ids[position], labels[position] = token, model.tokenizer.label(token)
    return Prompt(prompt.model, tuple(ids), tuple(labels))


def _path_rows(
    recording: Recording,
    target: Target,
    position: int,
    old: Float[Tensor, " d_model"],
    new: Float[Tensor, " d_model"],
) -> tuple[list[SwappedPath], int]:
    """The token paths of up to so many heads as can be worked out whole, and how many those are."""
    config = recording.weights.config
    L, H = config.n_layers, config.n_heads
    most = max(
        (
            m
            for m in range(1, L + 1)
            if count_chains(L, H, m) * max(config.d_model, target.dest) <= _MOST_NUMBERS
        ),
        default=0,
    )
    w, v = grow_chains(recording, target, most)
    chains = chain_table(L, H, most).chains
    # w has the scales in it; those at the two ends belong to what is read and written.
    scales = torch.tensor(
        [_end_scale(recording, target, position, chain) for chain in chains], dtype=torch.float64
    )  # [chain]
    weight = w[:, position].double() * scales  # [chain]
    before, after = (v.double() @ token.double() / scales for token in (old, new))  # [chain]
    values = zip(weight.tolist(), before.tolist(), after.tolist(), strict=True)
    rows = [
        SwappedPath(Path(TOKEN, chain), *numbers)
        for chain, numbers in zip(chains, values, strict=True)
    ]
    return rows, most


def _end_scale(
    recording: Recording, target: Target, position: int, heads: tuple[Head, ...]
) -> float:
    """What a chain's two ends are divided by: the norm that it reads through, and what stands
    between its last head and the logit."""
    scale = float(recording.final_scale[target.dest])
    if heads:
        scale *= float(recording.ln_scale[heads[0].layer, position])
        if recording.post_scale is not None:
            scale *= float(recording.post_scale[heads[-1].layer, target.dest])
    return scale


def _beyond(
    recording: Recording,
    target: Target,
    position: int,
    step: Float[Tensor, " d_model"],
    worked_out: int,
) -> Generator[Progress, None, float]:
    """The exact sum of the changes of all longer paths [logits]."""
    L = recording.weights.config.n_layers
    with torch.inference_mode():
        embedding = torch.zeros_like(recording.embedding)
        embedding[position] = step
        changed = replace(recording, embedding=embedding)
    steps = order_steps(changed, target)
    while True:
        try:
            progress = next(steps)
        except StopIteration as end:
            sums: OrderSums = end.value
            break
        yield Progress(2 + progress.done, L + 3)
    return math.fsum(sums.of(TOKEN, order) for order in range(worked_out + 1, L + 1))


class _Movers:
    """The logits of all tokens at dest, in three runs."""

    def __init__(
        self, model: Model, clean: Recording, frozen: Recording, free: Recording, dest: int
    ) -> None:
        self.label = model.tokenizer.label
        self.clean = clean.logits[dest].double()  # [d_vocab]
        self.frozen = frozen.logits[dest].double() - self.clean  # [d_vocab]
        self.free = free.logits[dest].double() - self.clean  # [d_vocab]

    def of(self, token: int) -> Mover:
        values = (float(logits[token]) for logits in (self.clean, self.frozen, self.free))
        return Mover(token, self.label(token), *values)

    def most(self, raised: bool) -> tuple[Mover, ...]:
        """The tokens that move most one way, frozen; none that moves the other way."""
        found = self.frozen.topk(min(_MOVERS, len(self.frozen)), largest=raised)
        sign = 1 if raised else -1
        pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
        return tuple(self.of(token) for token, change in pairs if sign * change > 0)
