"""The stages from State to Results, and the table that says what depends on what.

torch is imported inside the stages, so that importing this module costs nothing. A stage is given
exactly the fields and earlier values that it names, so the table can't be wrong about what it
depends on. Those of a second prompt, B, are those of the first with B's values in place of A's.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from circuitview.core.names import CircuitviewError, Head
from circuitview.core.progress import Progress
from circuitview.session.state import VISUAL, ModelFacts, Prediction, Shown, State

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from circuitview.core.device import DeviceName
    from circuitview.core.expansion import Expansion
    from circuitview.core.model import Model
    from circuitview.core.names import AttentionMode, DtypeName, OVSense
    from circuitview.core.ov import OVBreakdown
    from circuitview.core.prompt import Prompt
    from circuitview.core.recording import Recording
    from circuitview.core.target import Target

_N_PREDICTIONS = 10

Made = TypeVar("Made")
Steps = Generator[Progress, None, Made]


def _make_room(model: str, dtype: "DtypeName", even_if_large: bool) -> None:
    from circuitview.core.memory import memory_need

    if not even_if_large:
        memory_need(model, dtype).require_free()


def _open(
    model: str,
    device: "DeviceName",
    given: tuple[tuple[str, str], ...],
    tokenizer: str | None,
) -> "Steps[Model]":
    from circuitview.core.memory import memory_need

    need = memory_need(model)
    size = f", {need.text} in memory" if need.text else ""
    yield Progress(0, 1, f"opening {need.name}{size}")
    from circuitview.core.checkpoint import open_model

    return open_model(model, device, dict(given), tokenizer, checked=False)


def _check(dtype: "DtypeName", model: "Model") -> "Steps[Model]":
    yield Progress(0, 1, f"checking {model.name}")
    from circuitview.core.check import require_exact

    return require_exact(model, dtype)


def _facts(key: str, model: "Model") -> ModelFacts:
    from circuitview.core.device import DEVICES, why_not

    reasons = ((device, why_not(device)) for device in DEVICES)
    return ModelFacts(
        name=model.name,
        key=key,
        config=model.config,
        labels=model.tokenizer.labels,
        bos_by_default=model.tokenizer.bos_by_default,
        device=model.device,
        stored=model.stored,
        no_float64=_why_no_float64(model),
        no_mlp_paths=_why_no_mlp_paths(model),
        no_device=tuple((device, reason) for device, reason in reasons if reason is not None),
    )


def _why_no_float64(model: "Model") -> str | None:
    try:
        model.require("float64")
    except CircuitviewError as error:
        return str(error)
    return None


def _why_no_mlp_paths(model: "Model") -> str | None:
    if model.config.attn_only:
        return f"{model.name} has no MLPs"
    if model.carries_mlps:
        return None
    return f"{model.name}: its MLPs are mixtures of experts, or hold more than a nonlinearity"


def _tokenise(prompt: str, prepend_bos: bool | None, model: "Model") -> "Prompt":
    # "No BOS" is accepted where a model has none, so that one State serves several models.
    return model.prompt(prompt, prepend_bos)


def _record(dtype: "DtypeName", model: "Model", prompt: "Prompt") -> "Recording":
    return model.run(prompt, dtype)


def _tokenise_other(other: str, prepend_bos: bool | None, model: "Model") -> "Prompt":
    try:
        return model.prompt(other, prepend_bos)
    except CircuitviewError as error:
        raise CircuitviewError(f"second prompt: {error}") from error


def _match(prompt: "Prompt", other: "Prompt") -> None:
    from circuitview.core.difference import require_same_length

    require_same_length(prompt, other)


def _aim(
    target: str | None,
    versus: str | None,
    dest: int | None,
    other: str | None,
    model: "Model",
    run: "Recording",
) -> "Target":
    from circuitview.core.target import resolve_target

    place = -1 if dest is None else dest
    if other is not None:  # the longer of two prompts has dests that the shorter one lacks
        place = min(place, len(run.prompt) - 1)
    return resolve_target(run, model.tokenizer, target, versus, place)


def _aim_other(dest: int | None, target: "Target", run: "Recording") -> "Target":
    last = len(run.prompt) - 1
    return replace(target, dest=last if dest is None else min(dest, last))


def _expand(through_mlps: bool, run: "Recording", target: "Target") -> "Steps[Expansion]":
    from circuitview.core.expansion import expansion_steps

    expansion = yield from expansion_steps(run, target, through_mlps)
    expansion.require_balance()
    # Views will ask for these; in a deep model each is a walk over thousands of paths, and the main
    # thread must not be the one that takes it.
    _ = expansion.groups, expansion.nets, expansion.place
    return expansion


def _predict(model: "Model", run: "Recording", target: "Target") -> tuple[Prediction, ...]:
    logits, chances = run.logits[target.dest], run.probabilities(target.dest)  # [d_vocab]
    best = chances.topk(min(_N_PREDICTIONS, len(chances)))
    return tuple(
        Prediction(token, model.tokenizer.label(token), chance, float(logits[token]))
        for token, chance in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


def _choose_chain(
    opened: tuple[Head, ...] | None, run: "Recording", target: "Target"
) -> tuple[Head, ...]:
    from circuitview.core.ov import chosen_chain

    return chosen_chain(run, target, opened)


def _break_down(
    sense: "OVSense", run: "Recording", target: "Target", chain: tuple[Head, ...]
) -> "OVBreakdown":
    from circuitview.core.ov import ov_breakdown

    return ov_breakdown(run, target, chain, sense)


def _map_attention(
    mode: "AttentionMode", model: "Model", run: "Recording", chain: tuple[Head, ...]
) -> "npt.NDArray[np.float64] | None":
    from circuitview.core.attention import attention_values

    if mode == "scores" and len(chain) > 1:
        return None
    return attention_values(run, chain, mode, model.scores)  # [dest, src]


def _subtract(a: "Expansion", b: "Expansion") -> "Expansion":
    from circuitview.core.difference import difference

    made = difference(a, b)
    made.require_balance()
    _ = made.groups, made.nets, made.place
    return made


def _choose_changed(opened: tuple[Head, ...] | None, between: "Expansion") -> tuple[Head, ...]:
    from circuitview.core.difference import chain_of

    return chain_of(between, opened)


def _map_difference(
    mode: "AttentionMode", model: "Model", between: "Expansion", chain: tuple[Head, ...]
) -> "npt.NDArray[np.float64] | None":
    from circuitview.core.difference import attention_of

    if mode == "scores" and len(chain) > 1:
        return None
    return attention_of(between, chain, mode, model.scores)  # [dest, src]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step from state to results.

    What takes long is a generator that yields Progress; its partial results are words that say
    what is done.

    Attributes:
        fields: the State fields that it depends on, in the order of its arguments.
        after: the earlier stages that it depends on; their values follow as arguments.
        make: what computes it, in the worker.
        comparable: values are small and have an equality: an equal value leaves later stages fresh.
        doing: what to show while it runs; "" for what takes no time.
        shown: it is needed where one of these is shown; else it rests, and what it made stays.
        of_other: it is needed only where there is a second prompt.
    """

    name: str
    fields: tuple[str, ...]
    after: tuple[str, ...]
    make: Callable[..., Any]
    comparable: bool = False
    doing: str = "computing"
    shown: tuple[Shown, ...] = ("a", "b", "difference")
    of_other: bool = False

    def needed(self, state: State) -> bool:
        """Whether the results of `state` need it."""
        return state.showing in self.shown and not (self.of_other and state.other is None)


_A: tuple[Shown, ...] = ("a",)
_B: tuple[Shown, ...] = ("b",)
_DIFFERENCE: tuple[Shown, ...] = ("difference",)
_OF_B = " of B"


def _same_for_b(stage: Stage, shown: tuple[Shown, ...]) -> Stage:
    """The same stage of the second prompt."""
    after = tuple(name if name == "checkpoint" else name + _OF_B for name in stage.after)
    return replace(stage, name=stage.name + _OF_B, after=after, shown=shown, of_other=True)


# Three, in this order, so that another precision is checked without opening the model again.
# What comes later takes the checkpoint, and is not reached before its check has passed.
_MODEL = (
    Stage("room", ("model", "dtype", "even_if_large"), (), _make_room, doing=""),
    Stage("checkpoint", ("model", "device", "given", "tokenizer"), (), _open),
    Stage("check", ("dtype",), ("checkpoint",), _check),
    Stage("facts", ("model",), ("checkpoint",), _facts, doing="opening the model"),
)
_TOKENS = Stage("tokens", ("prompt", "prepend_bos"), ("checkpoint",), _tokenise, comparable=True)
_RUN = Stage("recording", ("dtype",), ("checkpoint", "tokens"), _record, doing="running the model")
_AIM = Stage(
    "goal",
    ("target", "versus", "dest", "other"),
    ("checkpoint", "recording"),
    _aim,
    comparable=True,
)
_PATHS = Stage(
    "expansion",
    ("through_mlps",),
    ("recording", "goal"),
    _expand,
    doing="summing paths",
    shown=_A + _DIFFERENCE,
)
_PREDICTIONS = Stage("predictions", (), ("checkpoint", "recording", "goal"), _predict, shown=_A)
_CHAIN = Stage(
    "chain", ("opened",), ("recording", "goal"), _choose_chain, comparable=True, shown=_A
)
_OV = Stage("ov", ("ov_sense",), ("recording", "goal", "chain"), _break_down, shown=_A)
_MAP = Stage(
    "heatmap",
    ("heatmap_mode",),
    ("checkpoint", "recording", "chain"),
    _map_attention,
    shown=_A,
)
_BETWEEN = (
    Stage("difference", (), ("expansion", "expansion of B"), _subtract, shown=_DIFFERENCE),
    Stage(
        "chain of difference",
        ("opened",),
        ("difference",),
        _choose_changed,
        comparable=True,
        shown=_DIFFERENCE,
    ),
    Stage(
        "heatmap of difference",
        ("heatmap_mode",),
        ("checkpoint", "difference", "chain of difference"),
        _map_difference,
        shown=_DIFFERENCE,
    ),
)
STAGES = (
    *_MODEL,
    _TOKENS,
    # A second prompt is read early: what is wrong with it is told before anything is summed.
    Stage(
        "tokens of B",
        ("other", "prepend_bos"),
        ("checkpoint",),
        _tokenise_other,
        comparable=True,
        of_other=True,
    ),
    _RUN,
    _same_for_b(_RUN, _RUN.shown),
    _AIM,
    Stage("lengths", (), ("tokens", "tokens of B"), _match, doing="", shown=_DIFFERENCE),
    Stage(
        "goal of B",
        ("dest",),
        ("goal", "recording of B"),
        _aim_other,
        comparable=True,
        shown=_B + _DIFFERENCE,
        of_other=True,
    ),
    _PATHS,
    _same_for_b(_PATHS, _B + _DIFFERENCE),
    _PREDICTIONS,
    _same_for_b(_PREDICTIONS, _B + _DIFFERENCE),
    _CHAIN,
    _same_for_b(_CHAIN, _B),
    _OV,
    _same_for_b(_OV, _B),
    _MAP,
    _same_for_b(_MAP, _B),
    *_BETWEEN,
)
# Which stage's value a field of Results is, by what is shown.
RESULTS: dict[Shown, dict[str, str]] = {
    "a": {name: name for name in ("expansion", "predictions", "chain", "ov", "heatmap")},
    "b": {name: name + _OF_B for name in ("expansion", "predictions", "chain", "ov", "heatmap")},
    "difference": {
        "expansion": "difference",
        "predictions": "predictions of B",
        "chain": "chain of difference",
        "heatmap": "heatmap of difference",
    },
}
# A field that no stage names would be forgotten silently; `shown` says which stages there are.
assert {name for stage in STAGES for name in stage.fields} == {
    field.name for field in fields(State) if field.name not in VISUAL | {"shown"}
}
