"""What every kind of ablation has in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from circuitview.core.ablation.cases import Case
from circuitview.core.ablation.donors import Donor, FromRun, edits_steps
from circuitview.core.ablation.sites import Site
from circuitview.core.edits import Edits
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.progress import Progress
from circuitview.core.recording import Recording

EditsOf = Callable[[Site], Generator[Progress, None, Edits]]


@runtime_checkable
class Replacing(Protocol):
    """A kind made ready for some cases: what replaces what, case by case."""

    def in_case(self, place: int, clean: FromRun) -> Generator[Progress, None, EditsOf]:
        """What gives the edits of a site in the case at `place`, whose clean run `clean` has.

        Yields between its parts, none of which takes longer than a forward pass.
        """


Prepared = Generator[Progress, None, Replacing]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a kind is prepared for."""

    model: Model
    cases: Sequence[Case]
    sites: Sequence[Site]
    dtype: DtypeName
    seed: int
    prepend_bos: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """One way to fill the place of what is taken away.

    Attributes:
        NAME: on the command line and in saved runs. TITLE: in the window. HELP: a sentence on it.
        PLACE: its place in the list.
    """

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    HELP: ClassVar[str]
    PLACE: ClassVar[int]

    @abstractmethod
    def prepare(self, setup: Setup) -> Prepared:
        """Make ready for the cases, reporting what takes long.

        Raises:
            CircuitviewError: where a site or a case can't be replaced in this way.
        """


def parameter(
    default: Any, unit: str, help_text: str, low: int | None = None, high: int | None = None
) -> Any:
    """A field of a kind.

    Args:
        unit: what it is counted in: "tokens", "windows", "prompt", "text file".
        low, high: its range, for a number.
    """
    metadata = {"unit": unit, "help": help_text, "low": low, "high": high}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, eq=False)
class FromDonors:
    """Replaces `sites` by what a donor has; `donor_of(place, recording)` makes that of a case."""

    sites: Sequence[Site]
    donor_of: Callable[[int, Recording], Donor]

    def in_case(self, place: int, clean: FromRun) -> Generator[Progress, None, EditsOf]:
        donor = self.donor_of(place, clean.recording)
        yield Progress(0, 1)
        if any(site.orders for site in self.sites):
            yield from donor.order_steps()
        return lambda site: edits_steps(site, clean, donor)


def other_prompt(setup: Setup, text: str) -> Recording:
    """The run of another prompt, as long as every case.

    Raises:
        CircuitviewError: naming both lengths where they differ.
    """
    prompt = setup.model.prompt(text, setup.prepend_bos)
    for case in setup.cases:
        if len(case.prompt) != len(prompt):
            raise CircuitviewError(
                f"the other prompt has {len(prompt)} tokens, the one that is run "
                f"{len(case.prompt)}; make them equally long"
            )
    return setup.model.run(prompt, setup.dtype)


def shuffled(count: int, seed: int) -> list[int]:
    """A seeded order of `count` things in which none stays in its place.

    Raises:
        CircuitviewError: where there is only one.
    """
    if count < 2:
        raise CircuitviewError(
            "there is nothing to resample from: one row can't be shuffled; give resample another "
            "prompt or a text (on the command line --set prompt=TEXT or --set text=FILE)"
        )
    # Sattolo's algorithm: one cycle through all, so that nothing is left where it was.
    order, random = list(range(count)), np.random.default_rng(seed)
    for place in range(count - 1, 0, -1):
        other = int(random.integers(place))
        order[place], order[other] = order[other], order[place]
    return order
