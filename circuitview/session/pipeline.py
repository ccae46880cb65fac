"""From State to Results: only what is stale is made again, by the table in stages.py.

Runs in the worker. What a stage was made from is its key: the fields that it names, and which
values of earlier stages. A stage that is not needed rests with what it made, so that looking from
one prompt to the other and back makes nothing again.
"""

from collections.abc import Generator
from dataclasses import dataclass
from inspect import isgenerator, isgeneratorfunction
from typing import TYPE_CHECKING, Any

from circuitview.core.progress import Progress
from circuitview.session.stages import RESULTS, STAGES, Stage, Steps
from circuitview.session.state import ModelFacts, Results, State

if TYPE_CHECKING:
    from circuitview.core.model import Model


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
        self._forget_other(state)
        for place, stage in enumerate(STAGES):
            if not stage.needed(state):
                continue
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
        tokens = ("tokens",) if state.other is None else ("tokens", "tokens of B")
        return Results(
            model=self._made["facts"].value,
            lengths=tuple(len(self._made[name].value) for name in tokens),
            **{field: self._made[name].value for field, name in RESULTS[state.showing].items()},
        )

    def _forget_other(self, state: State) -> None:
        """Without a second prompt nothing of it is kept: a run of a large model takes room."""
        if state.other is None:
            for stage in STAGES:
                if stage.of_other or stage.shown == ("difference",):
                    self._made.pop(stage.name, None)

    def stale(self, state: State) -> tuple[str, ...]:
        """The stages that `state` would have made again, at most."""
        names: list[str] = []
        for stage in STAGES:
            if not stage.needed(state):
                continue
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
        """Whether the model has read the prompt of `state`, and the second one where there is."""
        runs = ["recording"] if state.other is None else ["recording", "recording of B"]
        return all(self._value(name, state) is not None for name in runs)

    def _value(self, name: str, state: State) -> Any:
        made = None if name in self.stale(state) else self._made.get(name)
        return None if made is None else made.value

    def _key(self, stage: Stage, state: State) -> tuple[object, ...]:
        made = (self._made[name].serial if name in self._made else -1 for name in stage.after)
        return (*(getattr(state, name) for name in stage.fields), *made)
