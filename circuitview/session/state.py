"""What was asked and what was computed, as frozen values.

A view is given a Snapshot and draws it; it never computes and never remembers. What the user does
becomes a new State; what the worker finds becomes new Results. Fields of State in VISUAL change
only how results are drawn, so they apply at once; all others ask the worker.
"""

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal

from circuitview.core.bundled import DEFAULT_MODEL, DEFAULT_PROMPT
from circuitview.core.device import DeviceName
from circuitview.core.names import AttentionMode, DtypeName, Head, OVSense
from circuitview.core.path import Path

if TYPE_CHECKING:  # torch must not load before the window has painted
    import numpy as np
    import numpy.typing as npt

    from circuitview.core.config import ModelConfig
    from circuitview.core.expansion import Expansion
    from circuitview.core.ov import OVBreakdown

ThemeName = Literal["light", "dark"]
Shown = Literal["a", "b", "difference"]

VISUAL = frozenset({"floor", "selection", "theme"})


@dataclass(frozen=True, slots=True)
class Selection:
    """What is picked out everywhere: one path, or all through a head, and a source position."""

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

    def within(self, results: "Results") -> "Selection":
        """What of it exists in `results`: a shorter prompt or a smaller model may lack parts."""
        expansion = results.expansion
        if expansion is None or self == Selection():
            return self
        config = expansion.recording.weights.config
        head, source = self.head, self.source
        if head is not None and not (head.layer < config.n_layers and head.head < config.n_heads):
            head = None
        if source is not None and source >= len(expansion.recording.prompt):
            source = None
        return Selection(self.path if self.path in expansion.place else None, head, source)


@dataclass(frozen=True, slots=True)
class State:
    """What is asked.

    Attributes:
        model: a bundled name, a folder, a file, or a name in the Hugging Face cache.
        given: for a bare weights file, what it does not say of its config, as (field, answer).
        tokenizer: for a file without one, a tokenizer.json, or "numbers".
        even_if_large: whether to open it though it does not fit into what memory is free.
        device: where the model computes.
        through_mlps: whether paths run on through MLPs; else an MLP's output is a source.
        prepend_bos: None does as the model was trained.
        prompt: the prompt, A where there is a second one.
        other: the second prompt, B; None where there is none.
        shown: which of the two, or B − A; without effect where there is no B.
        dest: position, the same in both prompts; None is the last of each. Where one prompt lacks
            it, that one's last.
        target, versus: token texts or labels; None is the top prediction (of A, for B and B − A
            too), and no difference.
        floor: paths below this |contribution| (logits) are drawn as one remainder.
        opened: the chain of heads that the panels show; None is the strongest head.
    """

    model: str = DEFAULT_MODEL
    prompt: str = DEFAULT_PROMPT
    other: str | None = None
    shown: Shown = "a"
    prepend_bos: bool | None = None
    dest: int | None = None
    target: str | None = None
    versus: str | None = None
    dtype: DtypeName = "float32"
    given: tuple[tuple[str, str], ...] = ()
    tokenizer: str | None = None
    even_if_large: bool = False
    device: DeviceName = "cpu"
    through_mlps: bool = False
    floor: float = 0.0
    selection: Selection = field(default_factory=Selection)
    opened: tuple[Head, ...] | None = None
    heatmap_mode: AttentionMode = "pattern"
    ov_sense: OVSense = "everything"
    theme: ThemeName = "light"

    def with_prompt(self, prompt: str) -> "State":
        """Another prompt: its last position, nothing selected. A target that was named stays.

        It is what is shown then, unless the difference is.
        """
        shown: Shown = "difference" if self.showing == "difference" else "a"
        return replace(self, prompt=prompt, shown=shown, dest=None, selection=Selection())

    def with_other(self, other: str | None) -> "State":
        """Another second prompt, shown in the same way; None takes it away and shows the first."""
        if other is None:
            return replace(self, other=None, shown="a")
        shown: Shown = "difference" if self.showing == "difference" else "b"
        return replace(self, other=other, shown=shown, dest=None, selection=Selection())

    @property
    def showing(self) -> Shown:
        """What is shown: "a" where there is no second prompt."""
        return "a" if self.other is None else self.shown

    @property
    def prompt_shown(self) -> str:
        """The prompt whose results are shown; of a difference, A."""
        return self.prompt if self.other is None or self.shown != "b" else self.other

    @property
    def title(self) -> str:
        """What is shown, by its prompt, or by both: "B − A: … − …"."""
        if self.other is None:
            return self.prompt
        if self.shown == "difference":
            return f"B − A: {self.other} − {self.prompt}"
        return f"{self.shown.upper()}: {self.prompt_shown}"

    def with_model(
        self,
        model: str,
        prompt: str | None = None,
        given: tuple[tuple[str, str], ...] = (),
        tokenizer: str | None = None,
    ) -> "State":
        """Another model, as it was trained, on the same prompt unless one is given.

        Named targets are dropped: another vocabulary need not have them.
        """
        fresh = self.with_prompt(self.prompt if prompt is None else prompt)
        return replace(
            fresh,
            model=model,
            given=given,
            tokenizer=tokenizer,
            even_if_large=False,
            prepend_bos=None,
            target=None,
            versus=None,
            opened=None,
        )

    def opens_the_same(self, other: "State") -> bool:
        """Whether both have the same open model."""
        fields = ("model", "device", "given", "tokenizer")
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    def asks_the_same(self, other: "State") -> bool:
        """Whether both have the same results: only visual fields may differ."""
        return self.drawn_as(other) == other

    def drawn_as(self, other: "State") -> "State":
        """The same question with the visual fields of `other`."""
        return replace(self, **{name: getattr(other, name) for name in VISUAL})


assert {field_.name for field_ in fields(State)} >= VISUAL


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
        bos_by_default: whether a prompt starts with BOS where nobody says whether it should.
        device: where it computes.
        stored: the precision that its file holds.
        no_float64, no_mlp_paths: why it can't run in float64, and why paths can't be carried on
            through its MLPs; None where they can.
        no_device: devices that can't be had here, and why.
    """

    name: str
    key: str
    config: "ModelConfig"
    labels: tuple[str, ...]
    bos_by_default: bool = True
    device: str = "cpu"
    stored: str = "float32"
    no_float64: str | None = None
    no_mlp_paths: str | None = None
    no_device: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Results:
    """What was computed for a State; None where nothing is yet, or nothing may be shown.

    Attributes:
        expansion: every path to the target; its recording holds tokens and labels.
        predictions: the top tokens at dest, most probable first.
        chain: the chain of heads that the panels show.
        ov: its breakdown by source token, in the state's sense.
        heatmap: [dest, src] float64, in the state's mode; None where the mode has none for it (the
            scores of a virtual head).
        lengths: how many tokens A has, and B where there is one.

    Where the state shows B − A, expansion and heatmap are differences; predictions are B's, and
    there is no `ov`: weight x value is a product, which no difference of two prompts is.
    """

    model: ModelFacts | None = None
    expansion: "Expansion | None" = None
    predictions: tuple[Prediction, ...] = ()
    chain: tuple[Head, ...] = ()
    ov: "OVBreakdown | None" = None
    heatmap: "npt.NDArray[np.float64] | None" = None
    lengths: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """All that a view is given: results, and the state that they belong to.

    Attributes:
        failure: why the last state asked for could not be computed, in one line; state and results
            are then those of the last one that could.
        details: the same at length, for a report.
        notice: what is not as it was asked although it could be computed, in one line.
        refused: the failure is an imbalance, or that the two prompts can't be subtracted. Then
            nothing may be drawn, and the results are empty.
    """

    state: State = field(default_factory=State)
    results: Results = field(default_factory=Results)
    failure: str | None = None
    details: str | None = None
    refused: bool = False
    notice: str | None = None

    @property
    def alone(self) -> State:
        """The state of the prompt that is shown, of A where the difference is, as if there were no
        other: for what is measured on one prompt."""
        state, expansion = self.state, self.results.expansion
        if state.other is None:
            return state
        target, dest = state.target, state.dest
        if expansion is not None:
            if target is None and state.showing == "b":  # explained by A's top prediction
                target = expansion.target.label
            dest = None if dest is None else expansion.target.dest
        prompt = state.prompt_shown
        return replace(state, prompt=prompt, other=None, shown="a", target=target, dest=dest)
