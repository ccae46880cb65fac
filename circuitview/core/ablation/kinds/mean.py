"""Mean: what it writes on the average of a text, the same at each position."""

from dataclasses import dataclass
from typing import ClassVar

from circuitview.core.ablation.cases import Case, text_cases
from circuitview.core.ablation.donors import MeanDonor, Means
from circuitview.core.ablation.kinds.kind import FromDonors, Kind, Prepared, Setup, parameter
from circuitview.core.files import read_text
from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress, told

_LENGTH = 64  # tokens of a window, where the model reads as many


@dataclass(frozen=True, kw_only=True)
class Mean(Kind):
    """Its mean over a text in its place.

    Attributes:
        text: a text file; "" takes the mean over what is run.
        length, windows: how much of it is read; the usual length is less where the model reads
            less.
    """

    NAME: ClassVar[str] = "mean"
    TITLE: ClassVar[str] = "mean over a text"
    HELP: ClassVar[str] = (
        "Its mean over all positions of a text: what it writes whatever the prompt says stays."
    )
    PLACE: ClassVar[int] = 1

    text: str = parameter("", "text file", "the text; without one, the mean is over what is run")
    length: int = parameter(_LENGTH, "tokens", "tokens of a window, BOS included", 2, 100_000)
    windows: int = parameter(16, "windows", "how many windows of the text are read", 1, 100_000)

    def prepare(self, setup: Setup) -> Prepared:
        model, cases = setup.model, list[Case](setup.cases)
        if self.text:
            length = self._length_for(model.config.n_ctx)
            text = read_text(self.text)
            cases = list(text_cases(model, text, length, self.windows, setup.prepend_bos))
        sums: Means | None = None
        for done, case in enumerate(cases):
            recording = model.run(case.prompt, setup.dtype)
            yield Progress(done, len(cases))
            steps = Means.steps(recording, setup.sites)
            found = yield from told(steps, Progress(done, len(cases)))
            sums = found if sums is None else sums.plus(found)
            yield Progress(done + 1, len(cases))
        assert sums is not None
        means = sums.over(len(cases))
        return FromDonors(setup.sites, lambda _place, recording: MeanDonor(recording, means))

    def _length_for(self, n_ctx: int) -> int:
        if self.length > n_ctx and self.length != _LENGTH:
            raise CircuitviewError(
                f"mean: windows of {self.length:,} tokens: the model reads up to {n_ctx:,}; choose "
                "as many or fewer"
            )
        return min(self.length, n_ctx)


KIND = Mean
