"""Pattern: its own output, looking where the frozen pattern says."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from circuitview.core.ablation.donors import FromRun
from circuitview.core.ablation.kinds.kind import (
    EditsOf,
    Kind,
    Prepared,
    Setup,
    other_prompt,
    parameter,
)
from circuitview.core.ablation.sites import Site
from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording


@dataclass(frozen=True, kw_only=True)
class Pattern(Kind):
    """A head keeps its own values, its pattern is frozen.

    Attributes:
        prompt: the prompt whose patterns are taken; "" takes the clean run's own, and then nothing
            may change: a control of the measurement.
    """

    NAME: ClassVar[str] = "pattern"
    TITLE: ClassVar[str] = "own output, frozen pattern"
    HELP: ClassVar[str] = (
        "Its own values, moved by a frozen pattern: that of another prompt, or its own, which is a "
        "control and must change nothing."
    )
    PLACE: ClassVar[int] = 3

    prompt: str = parameter("", "prompt", "whose patterns are taken; without one, its own")

    def prepare(self, setup: Setup) -> Prepared:
        yield from ()
        for site in setup.sites:
            if not site.heads or site.mlps or site.paths or site.orders:
                raise CircuitviewError(
                    f"{site}: only heads have a pattern; put zero, a mean or a resampled value in "
                    "its place"
                )
        other = other_prompt(setup, self.prompt) if self.prompt else None
        return _Patterns(other)


@dataclass(frozen=True, eq=False)
class _Patterns:
    other: Recording | None

    def in_case(
        self,
        place: int,  # noqa: ARG002
        clean: FromRun,
    ) -> Generator[Progress, None, EditsOf]:
        yield from ()
        pattern = (self.other or clean.recording).pattern

        def edits_of(site: Site) -> Generator[Progress, None, Edits]:
            yield from ()
            return Edits(patterns={head: pattern[head.layer, head.head] for head in site.heads})

        return edits_of


KIND = Pattern
