"""What differs between two prompts: every path's contribution on B minus the same on A.

Both expansions are exact, so their difference is: sums of paths, orders, remainder and logit are
all subtracted, and what must come out is logit B − logit A. Paths are matched by what they are
(Path), positions by where they stand, so both prompts need the same number of tokens.

Where the two list different paths (deep models), the union is listed: a path that one of them left
out is worked out for it, exactly, and taken out of its remainder. Moving such paths to the
remainder would be exact too, but would hide what differs most: paths that only one prompt uses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.attention import attention_values
from circuitview.core.expansion import STEPS_THROUGH_MLPS, Expansion
from circuitview.core.largest import ENUMERATED_HEADS, by_source
from circuitview.core.names import (
    AttentionMode,
    CircuitviewError,
    Head,
    IncomparableError,
    Mlp,
    Step,
)
from circuitview.core.orders import OrderSums
from circuitview.core.ov import chosen_chain, head_totals
from circuitview.core.path import Path, depth
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.target import Target


def difference(a: Expansion, b: Expansion) -> Expansion:
    """The expansion whose every number is `b`'s minus `a`'s (logits).

    Held fixed: in each prompt what its own expansion holds. The target's constant is the same on
    both sides and falls out. The scale of the error is the larger of the two: near-equal prompts
    leave small differences of large sums.

    Its recording is B's, with tokens that differ labelled "a → b"; its `between` is (a, b).

    Raises:
        IncomparableError: where the prompts have different numbers of tokens.
        CircuitviewError: where model, precision, kind of expansion or target are not the same.
    """
    _require_alike(a, b)
    paths = _union(a.paths, b.paths)
    with torch.inference_mode():
        side_a, side_b = _side(a, paths), _side(b, paths)
    sent = side_b.sent - side_a.sent  # [path, src]
    prompts = a.recording.prompt, b.recording.prompt
    return Expansion(
        recording=replace(b.recording, prompt=joint_prompt(*prompts), rerun=None),
        target=b.target,
        paths=paths,
        contributions=sent.sum(-1),
        by_source=sent,
        constant=b.constant - a.constant,
        smaller=side_b.smaller - side_a.smaller,
        n_smaller=side_b.n_smaller,
        beyond=side_b.beyond - side_a.beyond,
        n_beyond=b.n_paths - len(paths) - side_b.n_smaller,
        logit=b.logit - a.logit,
        probability=b.probability - a.probability,
        orders=_subtracted(a.orders, b.orders),
        scale=max(a.scale, b.scale),
        through_mlps=a.through_mlps,
        between=(a, b),
    )


def require_same_length(a: Prompt, b: Prompt) -> None:
    """Pass only prompts whose tokens can be matched by position.

    Raises:
        IncomparableError: with both lengths.
    """
    if len(a) != len(b):
        raise IncomparableError(
            f"A has {len(a)} tokens, B has {len(b)}: B − A is taken token by token; make them "
            "equally long, or look at one at a time"
        )


def joint_prompt(a: Prompt, b: Prompt) -> Prompt:
    """B's prompt, each token that differs from A's labelled "a → b"."""
    labels = (
        after if one == other else f"{before} → {after}"
        for one, other, before, after in zip(
            a.token_ids, b.token_ids, a.labels, b.labels, strict=True
        )
    )
    return replace(b, labels=tuple(labels))


def chain_of(expansion: Expansion, heads: tuple[Head, ...] | None) -> tuple[Head, ...]:
    """The chain asked for; where none is, the strongest head of one prompt, or, of a difference,
    the head whose total (see head_totals) differs most.

    Raises:
        CircuitviewError: where the model lacks one of the heads, or the layers don't rise.
    """
    if expansion.between is None or heads:
        return chosen_chain(expansion.recording, expansion.target, heads)
    a, b = (head_totals(one.recording, one.target) for one in expansion.between)
    totals = (b - a).abs()  # [layer, head]
    layer, head = divmod(int(totals.argmax()), totals.shape[1])
    return (Head(layer, head),)


def attention_of(
    expansion: Expansion,
    heads: tuple[Head, ...],
    mode: AttentionMode,
    scores: Callable[[Recording, Head], Tensor] | None = None,
) -> npt.NDArray[np.float64]:
    """What a heatmap of `heads` shows [dest, src] (see attention_values); of a difference, B's
    values minus A's.

    Raises:
        CircuitviewError: for the scores of several heads.
    """
    if expansion.between is None:
        return attention_values(expansion.recording, heads, mode, scores)
    a, b = (attention_values(one.recording, heads, mode, scores) for one in expansion.between)
    return b - a


def _require_alike(a: Expansion, b: Expansion) -> None:
    prompt_a, prompt_b = a.recording.prompt, b.recording.prompt
    weights_a, weights_b = a.recording.weights, b.recording.weights
    if prompt_a.model != prompt_b.model or weights_a.config != weights_b.config:
        raise CircuitviewError(
            f"A is of {prompt_a.model}, B of {prompt_b.model}: give two prompts to one model"
        )
    if a.dtype != b.dtype or a.through_mlps != b.through_mlps:
        raise CircuitviewError(
            f"A and B are not computed alike ({a.dtype} and {b.dtype}, paths through MLPs "
            f"{a.through_mlps} and {b.through_mlps}): choose the same for both"
        )
    require_same_length(prompt_a, prompt_b)
    if a.target != b.target:
        raise CircuitviewError(
            f"A explains {a.target} at dest {a.target.dest}, B {b.target} at dest {b.target.dest}: "
            "name one target and dest for both"
        )


def _union(first: tuple[Path, ...], second: tuple[Path, ...]) -> tuple[Path, ...]:
    if first == second:
        return first
    known = frozenset(first)
    return (*first, *(path for path in second if path not in known))


@dataclass(frozen=True, eq=False)
class _Side:
    """One prompt's part of the union.

    Attributes:
        sent: [path, src] of every path of the union (logits).
        smaller, n_smaller, beyond: what stays unlisted, as in Expansion.
    """

    sent: npt.NDArray[np.float64]
    smaller: float
    n_smaller: int
    beyond: float


def _side(expansion: Expansion, paths: tuple[Path, ...]) -> _Side:
    """What `paths` bring in `expansion`: as listed, or worked out and taken from its remainder."""
    place = expansion.place
    missing = tuple(path for path in paths if path not in place)
    if not missing:
        order = [place[path] for path in paths]
        sent = expansion.by_source if paths is expansion.paths else expansion.by_source[order]
        return _Side(sent, expansion.smaller, expansion.n_smaller, expansion.beyond)
    work_out = sent_through_mlps if expansion.through_mlps else by_source
    found = work_out(expansion.recording, expansion.target, missing)  # [missing, src]
    # Short ones were worked out but not listed, longer ones are known by their sum alone.
    longest = STEPS_THROUGH_MLPS if expansion.through_mlps else ENUMERATED_HEADS
    short = np.array([len(path.steps) <= longest for path in missing])
    everything = np.concatenate([expansion.by_source, found])
    rows = {path: len(place) + i for i, path in enumerate(missing)} | place
    return _Side(
        sent=everything[[rows[path] for path in paths]],
        smaller=expansion.smaller - float(found[short].sum()),
        n_smaller=expansion.n_smaller - int(short.sum()),
        beyond=expansion.beyond - float(found[~short].sum()),
    )


def sent_through_mlps(
    recording: Recording, target: Target, paths: Sequence[Path]
) -> npt.NDArray[np.float64]:
    """[path, src], what starts at each position (logits), for paths through heads and MLPs.

    Held fixed: patterns, norm scales and the ratios of the MLPs' neurons. Each path is gone back
    from the target, step by step, with a gradient at every position; paths that end alike share
    those steps. Cost: n d_model d_mlp multiplications for an MLP, n d_model d_head for a head.
    """
    n = target.dest + 1
    start = target.gradient(recording)  # [pos, d_model]
    made = np.zeros((len(paths), len(recording.tokens)))
    # Sorted, paths with the same last steps are neighbours: `gone` holds the way back so far.
    gone: list[tuple[Step, Tensor]] = []
    backwards = [path.steps[::-1] for path in paths]
    for i in sorted(range(len(paths)), key=lambda i: [_rank(step) for step in backwards[i]]):
        steps = backwards[i]
        shared = 0
        while shared < min(len(gone), len(steps)) and gone[shared][0] == steps[shared]:
            shared += 1
        del gone[shared:]
        for step in steps[shared:]:
            gone.append((step, _before(recording, step, gone[-1][1] if gone else start)))
        gradient = gone[-1][1] if gone else start  # [pos, d_model]
        written = recording.source(paths[i].source)[:n]  # [pos, d_model]
        made[i, :n] = (gradient.double() * written.double()).sum(-1).numpy()
    return made


def _rank(step: Step) -> tuple[int, int]:
    return depth(step), step.head if isinstance(step, Head) else 0


def _before(
    recording: Recording, step: Step, gradient: Float[Tensor, "pos d_model"]
) -> Float[Tensor, "pos d_model"]:
    """The gradient before a step, from the one behind it."""
    weights, layer, n = recording.weights, step.layer, len(gradient)
    post = recording.mlp_post_scale if isinstance(step, Mlp) else recording.post_scale
    if post is not None:
        gradient = gradient / post[layer, :n].unsqueeze(-1)
    if isinstance(step, Mlp):
        mlp, ratio = weights.mlps[layer], recording.mlp_ratio(layer)[:n]  # [pos, d_mlp]
        moved = mlp.out_of(mlp.into(gradient) * ratio)  # [pos, d_model]
        return moved / recording.into_mlp_scale(layer)[:n].unsqueeze(-1)
    values = gradient @ weights.W_O_of(step).mT  # [dest, d_head]
    mixed = recording.pattern[layer, step.head, :n, :n].mT @ values  # [src, d_head]
    return mixed @ weights.W_V_of(step).mT / recording.ln_scale[layer, :n].unsqueeze(-1)


def _subtracted(a: OrderSums, b: OrderSums) -> OrderSums:
    return OrderSums(
        sources=b.sources,
        sums=b.sums - a.sums,
        heads=b.heads - a.heads,
        through=b.through - a.through,
        mlps=b.mlps - a.mlps,
        capped=b.capped,
    )
