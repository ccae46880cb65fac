"""What was asked and what was computed, as frozen values.

A view is given a Snapshot and draws it; it never computes and never remembers. What the user does
becomes a new State; what the worker finds becomes new Results.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Literal

from circuitview.core.bundled import DEFAULT_MODEL, DEFAULT_PROMPT
from circuitview.core.names import Head
from circuitview.core.path import Path

if TYPE_CHECKING:  # torch must not load before the window has painted
    from circuitview.core.config import ModelConfig
    from circuitview.core.expansion import Expansion
    from circuitview.core.ov import OVBreakdown

HeatmapMode = Literal["pattern", "scores", "value-weighted"]
OVSense = Literal["token", "everything"]
ThemeName = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What is picked out everywhere: one path, or all paths through a head, and a source position."""

    path: Path | None = None
    head: Head | None = None
    source: int | None = None

    def covers(self, path: Path) -> bool:
        """Whether `path` is picked out."""
        if self.path is not None:
            return path == self.path
        return self.head is not None and self.head in path.heads

    @property
    def anything(self) -> bool:
        """Whether some paths are picked out, so that the others step back."""
        return self.path is not None or self.head is not None


@dataclass(frozen=True, slots=True)
class State:
    """What is asked.

    Attributes:
        model: a bundled name or a folder.
        prepend_bos: None does as the model was trained.
        dest: position; None is the last.
        target, versus: token texts or labels; None is the top prediction, and no difference.
        floor: paths below this |contribution| (logits) are drawn as one remainder.
        opened: the chain of heads that the panels show; None is the strongest head.
    """

    model: str = DEFAULT_MODEL
    prompt: str = DEFAULT_PROMPT
    prepend_bos: bool | None = None
    dest: int | None = None
    target: str | None = None
    versus: str | None = None
    dtype: Literal["float32", "float64"] = "float32"
    floor: float = 0.0
    selection: Selection = field(default_factory=Selection)
    opened: tuple[Head, ...] | None = None
    heatmap_mode: HeatmapMode = "pattern"
    ov_sense: OVSense = "everything"
    theme: ThemeName = "light"

    def with_prompt(self, prompt: str) -> "State":
        """Another prompt: its last position, its top prediction, nothing selected."""
        return replace(self, prompt=prompt, dest=None, target=None, versus=None, selection=Selection())

    def with_model(self, model: str, prompt: str | None = None) -> "State":
        """Another model, as it was trained, on the same prompt unless one is given."""
        text = self.prompt if prompt is None else prompt
        return replace(self.with_prompt(text), model=model, prepend_bos=None, opened=None)


@dataclass(frozen=True, slots=True)
class Prediction:
    """One token the model expects at dest."""

    token: int
    label: str
    probability: float
    logit: float


@dataclass(frozen=True, eq=False, slots=True)
class ModelFacts:
    """What the window shows of the open model.

    Attributes:
        name: its short name.
        key: the State.model that opened it.
        labels: [d_vocab], what to show for each token.
    """

    name: str
    key: str
    config: "ModelConfig"
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Results:
    """What was computed for a State; None where nothing is yet.

    Attributes:
        predictions: the top tokens at dest, most probable first.
        chain: the chain of heads that the panels show.
        ov: its breakdown by source token, in the state's sense.
        heatmap: [dest, src] float64, in the state's mode; None where the mode has none for it.
    """

    model: ModelFacts | None = None
    expansion: "Expansion | None" = None
    predictions: tuple[Prediction, ...] = ()
    chain: tuple[Head, ...] = ()
    ov: "OVBreakdown | None" = None
    heatmap: "object | None" = None


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """All that a view is given.

    Attributes:
        failure: why the state could not be computed, in one line; the results are then those of the
            last state that could. An imbalance is a failure with `refused` set: then nothing may be
            drawn.
    """

    state: State = field(default_factory=State)
    results: Results = field(default_factory=Results)
    failure: str | None = None
    refused: bool = False
