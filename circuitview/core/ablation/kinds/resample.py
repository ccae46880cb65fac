"""Resample: what it wrote on something else that the model might have read."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from circuitview.core.ablation.cases import Case, text_cases
from circuitview.core.ablation.donors import FromRun
from circuitview.core.ablation.kinds.kind import (
    FromDonors,
    Kind,
    Prepared,
    Setup,
    other_prompt,
    parameter,
    shuffled,
)
from circuitview.core.files import read_text
from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording

_WINDOWS = 64  # of a text, from which a prompt's other row is drawn


@dataclass(frozen=True, kw_only=True)
class Resample(Kind):
    """What it produced on another prompt, position by position.

    Attributes:
        prompt: the other prompt; "" shuffles.
        text: the text whose rows are shuffled for prompts; "" shuffles what is run.
    """

    NAME: ClassVar[str] = "resample"
    TITLE: ClassVar[str] = "resampled"
    HELP: ClassVar[str] = (
        "What it wrote at the same position of another prompt, or of another row of a text, drawn "
        "with the seed. A single prompt needs one of the two named: there is nothing else to draw "
        "from."
    )
    PLACE: ClassVar[int] = 2

    prompt: str = parameter("", "prompt", "the other prompt, of as many tokens")
    text: str = parameter("", "text file", "a text whose rows are drawn from")

    def prepare(self, setup: Setup) -> Prepared:
        if self.prompt:
            other = FromRun(other_prompt(setup, self.prompt))
            return FromDonors(setup.sites, lambda _place, _recording: other)
        rows = yield from self._rows(setup)

        def run_of(place: int, _recording: Recording) -> FromRun:
            return FromRun(setup.model.run(rows[place], setup.dtype))

        return FromDonors(setup.sites, run_of)

    def _rows(self, setup: Setup) -> Generator[Progress, None, list[Prompt]]:
        """The row that stands in for each case."""
        if self.text:
            text, random = read_text(self.text), np.random.default_rng(setup.seed)
            rows_of = dict[int, tuple[Case, ...]]()  # by length: a text is cut up once for each
            found = []
            for case in setup.cases:
                length, bos = len(case.prompt), setup.prepend_bos
                if length not in rows_of:
                    rows_of[length] = text_cases(setup.model, text, length, _WINDOWS, bos)
                    yield Progress(0, 1)
                windows = rows_of[length]
                found.append(windows[int(random.integers(len(windows)))].prompt)
            return found
        order = shuffled(len(setup.cases), setup.seed)
        prompts = [setup.cases[other].prompt for other in order]
        for case, prompt in zip(setup.cases, prompts, strict=True):
            if len(case.prompt) != len(prompt):
                raise CircuitviewError(
                    f"prompts of {len(case.prompt)} and {len(prompt)} tokens can't stand in for "
                    "each other; make them equally long, or name a text to draw rows from"
                )
        return prompts


KIND = Resample
