"""What `paths` and `export` ask of the core, from the same options."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitview.cli.opening import Opening
from circuitview.cli.outcome import complain
from circuitview.core.names import DtypeName

if TYPE_CHECKING:  # torch is loaded when the question is put
    from circuitview.core.expansion import Expansion
    from circuitview.core.model import Model


@dataclass(frozen=True, slots=True)
class Question:
    """The options that name a model, a prompt and a target.

    `listed` is how many paths to list where there are very many; None as many as usual. With a
    second prompt, `prompt_b`, the answer is its expansion minus that of `prompt`.
    """

    opening: Opening
    prompt: str
    target: str | None
    versus: str | None
    dest: int
    bos: bool | None
    dtype: DtypeName
    through_mlps: bool
    listed: int | None = None
    prompt_b: str | None = None

    def answer(self) -> "tuple[Model, Expansion]":
        """The open model and the paths to the target.

        Raises:
            CircuitviewError: where the model, a prompt or the target is at fault.
            ImbalanceError: where the paths don't add up to the model's logit.
        """
        from circuitview.core.analysis import analyse
        from circuitview.core.difference import difference, require_same_length
        from circuitview.core.expansion import FEW, LISTED

        model = self.opening.open(self.dtype)

        def of(prompt: str, target: str | None) -> "Expansion":
            return analyse(
                model,
                prompt,
                target=target,
                versus=self.versus,
                dest=self.dest,
                dtype=self.dtype,
                prepend_bos=self.bos,
                through_mlps=self.through_mlps,
                listed=LISTED if self.listed is None else self.listed,
            )

        expansion = of(self.prompt, self.target)
        if self.listed is not None and len(expansion.paths) > self.listed:
            complain(
                f"--list {self.listed:,} changes nothing: where there are no more than {FEW:,} "
                "paths all are listed; --top shows fewer"
            )
        if self.prompt_b is None:
            return model, expansion
        # Lengths first: the second expansion may take long.
        require_same_length(expansion.recording.prompt, model.prompt(self.prompt_b, self.bos))
        made = difference(expansion, of(self.prompt_b, expansion.target.label))
        made.require_balance()
        return model, made
