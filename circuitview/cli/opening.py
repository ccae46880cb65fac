"""What every command that opens a model asks for it, and opening it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitview.core.device import DeviceName
from circuitview.core.memory import TooLargeError, memory_need
from circuitview.core.names import CircuitviewError

if TYPE_CHECKING:  # torch is loaded when the model is opened
    from circuitview.core.model import Model


@dataclass(frozen=True, slots=True)
class Opening:
    """The options that say which model, and how to open it."""

    model: str
    device: DeviceName = "cpu"
    given: tuple[tuple[str, str], ...] = ()
    tokenizer: str | None = None
    even_if_large: bool = False

    def open(self) -> "Model":
        """The open model, its identities not checked yet.

        Raises:
            CircuitviewError: where it can't be opened, or would not fit into what memory is free.
        """
        if not self.even_if_large:
            try:
                memory_need(self.model).require_free()
            except TooLargeError as error:
                raise TooLargeError(f"{error}, or add --even-if-large") from None
        from circuitview.core.checkpoint import open_model

        return open_model(self.model, self.device, dict(self.given), self.tokenizer)

    @staticmethod
    def checked(model: "Model") -> "Model":
        """`model`, where it does what the sums take for granted.

        Raises:
            CircuitviewError: where it does something that is not summed.
        """
        from circuitview.core.check import check_model

        check_model(model).require_passed()
        return model


def parse_config(pairs: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """The answers that `--config KEY=VALUE …` gives.

    Raises:
        CircuitviewError: where one has no "=", or a key comes twice.
    """
    answers: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise CircuitviewError(f"--config {pair!r} is not KEY=VALUE, like act_fn=gelu")
        if key in answers:
            raise CircuitviewError(f"--config gives {key} twice; give it once")
        answers[key] = value.strip()
    return tuple(answers.items())
