"""What `paths` and `export` ask of the core, from the same options."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitview.core.names import DtypeName

if TYPE_CHECKING:  # torch is loaded when the question is put
    from circuitview.core.expansion import Expansion
    from circuitview.core.model import Model


@dataclass(frozen=True, slots=True)
class Question:
    """The options that name a model, a prompt and a target."""

    model: str
    prompt: str
    target: str | None
    versus: str | None
    dest: int
    no_bos: bool
    dtype: DtypeName

    def answer(self) -> "tuple[Model, Expansion]":
        """The open model and all paths to the target.

        Raises:
            CircuitviewError: where the model, the prompt or the target is at fault.
            ImbalanceError: where the paths don't add up to the model's logit.
        """
        from circuitview.core.analysis import analyse
        from circuitview.core.checkpoint import open_model

        model = open_model(self.model)
        expansion = analyse(
            model,
            self.prompt,
            target=self.target,
            versus=self.versus,
            dest=self.dest,
            dtype=self.dtype,
            prepend_bos=False if self.no_bos else None,
        )
        return model, expansion
