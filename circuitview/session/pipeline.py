"""From State to Results: one table says what depends on what; only what is stale is made again.

Runs in the worker; torch is imported inside the stages, so that importing this module costs
nothing. A stage is given exactly the fields and earlier values that it names, so the table can't be
wrong about what it depends on.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields
from inspect import isgenerator, isgeneratorfunction
from typing import TYPE_CHECKING, Any, TypeVar

from circuitview.core.names import CircuitviewError, Head
from circuitview.core.progress import Progress
from circuitview.session.state import VISUAL, ModelFacts, Prediction, Results, State

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


def _aim(
    target: str | None, versus: str | None, dest: int | None, model: "Model", run: "Recording"
) -> "Target":
    from circuitview.core.target import resolve_target

    return resolve_target(run, model.tokenizer, target, versus, -1 if dest is None else dest)


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
    """

    name: str
    fields: tuple[str, ...]
    after: tuple[str, ...]
    make: Callable[..., Any]
    comparable: bool = False
    doing: str = "computing"


STAGES = (
    # Three, in this order, so that another precision is checked without opening the model again.
    # What comes later takes the checkpoint, and is not reached before its check has passed.
    Stage("room", ("model", "dtype", "even_if_large"), (), _make_room, doing=""),
    Stage("checkpoint", ("model", "device", "given", "tokenizer"), (), _open),
    Stage("check", ("dtype",), ("checkpoint",), _check),
    Stage("facts", ("model",), ("checkpoint",), _facts, doing="opening the model"),
    Stage("tokens", ("prompt", "prepend_bos"), ("checkpoint",), _tokenise, comparable=True),
    Stage("recording", ("dtype",), ("checkpoint", "tokens"), _record, doing="running the model"),
    Stage("goal", ("target", "versus", "dest"), ("checkpoint", "recording"), _aim, comparable=True),
    Stage("expansion", ("through_mlps",), ("recording", "goal"), _expand, doing="summing paths"),
    Stage("predictions", (), ("checkpoint", "recording", "goal"), _predict),
    Stage("chain", ("opened",), ("recording", "goal"), _choose_chain, comparable=True),
    Stage("ov", ("ov_sense",), ("recording", "goal", "chain"), _break_down),
    Stage("heatmap", ("heatmap_mode",), ("checkpoint", "recording", "chain"), _map_attention),
)
# A field that no stage names would be forgotten silently.
assert {name for stage in STAGES for name in stage.fields} == {
    field.name for field in fields(State) if field.name not in VISUAL
}


def _told(steps: Generator[Any, Any, Any], place: int, doing: str) -> Steps[Any]:
    """The value of a stage that takes long; its progress told in words."""
    try:
        while True:
            inner = next(steps)
            words = inner.partial if isinstance(inner.partial, str) else _share(doing, inner)
            yield Progress(place, len(STAGES), words)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


def _share(doing: str, progress: Progress) -> str:
    return f"{doing}, {progress.done / progress.total:.0%}" if progress.total > 1 else doing


@dataclass(frozen=True, eq=False, slots=True)
class _Made:
    """A stage's last value, what it was made from, and a number that tells it from the others."""

    key: tuple[object, ...]
    serial: int
    value: Any


class Pipeline:
    """Remembers each stage's last value. Belongs to one thread.

    A failure leaves what was made before it: mending a prompt does not open the model again.
    """

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}
        self._serial = 0

    def advance(self, state: State) -> Results:
        """The results of `state`.

        Raises:
            CircuitviewError: where something that was asked can't be done; one line.
            ImbalanceError: where the paths don't add up.
        """
        steps = self.steps(state)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            results: Results = end.value
            return results

    def steps(self, state: State) -> Generator[Progress, None, Results]:
        """The same as a generator that stops before each stale stage, to be cancelled there."""
        for place, stage in enumerate(STAGES):
            key = self._key(stage, state)
            known = self._made.get(stage.name)
            if known is not None and known.key == key:
                continue
            says_itself = isgeneratorfunction(stage.make)
            if stage.doing and not says_itself:
                yield Progress(place, len(STAGES), stage.doing)
            given = [getattr(state, name) for name in stage.fields]
            earlier = [self._made[name].value for name in stage.after]
            value = stage.make(*given, *earlier)
            if isgenerator(value):
                value = yield from _told(value, place, stage.doing)
            if known is not None and stage.comparable and known.value == value:
                self._made[stage.name] = _Made(key, known.serial, known.value)
            else:
                self._serial += 1
                self._made[stage.name] = _Made(key, self._serial, value)
        return Results(
            model=self._made["facts"].value,
            expansion=self._made["expansion"].value,
            predictions=self._made["predictions"].value,
            chain=self._made["chain"].value,
            ov=self._made["ov"].value,
            heatmap=self._made["heatmap"].value,
        )

    def stale(self, state: State) -> tuple[str, ...]:
        """The stages that `state` would have made again, at most."""
        names: list[str] = []
        for stage in STAGES:
            known = self._made.get(stage.name)
            late = any(name in names for name in stage.after)
            if late or known is None or known.key != self._key(stage, state):
                names.append(stage.name)
        return tuple(names)

    def model_of(self, state: State) -> "Model | None":
        """The model of `state`, where it is open and has passed its check."""
        model: Model | None = self._value("check", state)
        return model

    def facts_of(self, state: State) -> ModelFacts | None:
        """What the window shows of the model of `state`, where it is open."""
        facts: ModelFacts | None = self._value("facts", state)
        return facts

    def recorded(self, state: State) -> bool:
        """Whether the model has read the prompt of `state`."""
        return self._value("recording", state) is not None

    def _value(self, name: str, state: State) -> Any:
        made = None if name in self.stale(state) else self._made.get(name)
        return None if made is None else made.value

    def _key(self, stage: Stage, state: State) -> tuple[object, ...]:
        made = (self._made[name].serial if name in self._made else -1 for name in stage.after)
        return (*(getattr(state, name) for name in stage.fields), *made)
