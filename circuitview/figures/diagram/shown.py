"""Which paths a diagram draws one by one, and which it sums: counted here and nowhere else."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.config import ModelConfig
from circuitview.core.names import CircuitviewError
from circuitview.core.path import Path

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

# More bands than this are a haze that nobody reads; the smallest ones join the remainder.
MOST_BANDS = 600
# In a grid small bands are fine lines behind the strong ones: all that an expansion lists fit.
MOST_IN_GRID = 2000
# Up to so many layers and heads each layer is a column of stacks; more are a grid.
_MOST_COLUMNS = 4
_MOST_STACKED = 16


def is_deep(config: ModelConfig) -> bool:
    """Whether a model's diagram is a grid of layers and heads."""
    return config.n_layers > _MOST_COLUMNS or config.n_heads > _MOST_STACKED


def require_layer(model: str, config: ModelConfig, layer: int) -> None:
    """Pass only a layer that the diagram of `model` can show alone.

    Raises:
        CircuitviewError: where the model has no such layer, or shows all of its few at once.
    """
    if not is_deep(config):
        raise CircuitviewError(
            f"layer {layer} can't be shown alone: the diagram of {model} shows all "
            f"{config.n_layers} layers; leave the layer out"
        )
    if not 0 <= layer < config.n_layers:
        raise CircuitviewError(
            f"{model} has no layer {layer}; name one from 0 to {config.n_layers - 1}"
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a diagram draws band by band, and what it draws as the remainder.

    Attributes:
        places: of the paths with a band of their own, in Expansion.paths.
        hidden: how many paths have none.
        rest: their exact sum (logits).
        remainder: whether that has a band: not where all of them are zero but for rounding.
    """

    places: tuple[int, ...]
    hidden: int
    rest: float
    remainder: bool


def shown_paths(expansion: "Expansion", floor: float, layer: int | None = None) -> Shown:
    """The paths of at least `floor` (logits), the largest of very many; the others are summed.

    With `layer` only those that start or step there; the others are summed.
    """
    sizes = np.abs(expansion.contributions)
    nothing = expansion.tolerance / 1000
    wanted = (sizes >= floor) & (sizes > nothing)
    most = MOST_BANDS
    if layer is not None:
        wanted &= np.array([touches(path, layer) for path in expansion.paths], np.bool_)
    elif is_deep(expansion.recording.weights.config):
        most = MOST_IN_GRID
    keep = np.flatnonzero(wanted)
    if len(keep) > most:
        keep = np.sort(keep[np.argsort(-sizes[keep], kind="stable")[:most]])
    left = np.ones(len(sizes), np.bool_)
    left[keep] = False
    return Shown(
        places=tuple(keep.tolist()),
        hidden=int(left.sum()) + expansion.n_unlisted,
        rest=float(expansion.contributions[left].sum()) + expansion.remainder,
        remainder=bool((sizes[left] > nothing).any()) or expansion.n_unlisted > 0,
    )


def touches(path: Path, layer: int) -> bool:
    """Whether `path` starts in a layer or steps through it."""
    return path.source.layer == layer or any(step.layer == layer for step in path.steps)
