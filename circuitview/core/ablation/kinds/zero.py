"""Zero: as if it wrote nothing, its value bias included."""

from dataclasses import dataclass
from typing import ClassVar

from circuitview.core.ablation.donors import Nothing
from circuitview.core.ablation.kinds.kind import FromDonors, Kind, Prepared, Setup


@dataclass(frozen=True, kw_only=True)
class Zero(Kind):
    """Nothing in its place."""

    NAME: ClassVar[str] = "zero"
    TITLE: ClassVar[str] = "zero"
    HELP: ClassVar[str] = "Nothing in its place: the output is set to zero, value bias included."
    PLACE: ClassVar[int] = 0

    def prepare(self, setup: Setup) -> Prepared:
        yield from ()
        return FromDonors(setup.sites, lambda _place, recording: Nothing(recording))


KIND = Zero
