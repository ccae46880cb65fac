"""What every command that opens a model asks for it, and opening it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitview.cli.outcome import complain
from circuitview.core.device import DeviceName
from circuitview.core.memory import TooLargeError, memory_need
from circuitview.core.names import CircuitviewError, DtypeName

if TYPE_CHECKING:  # torch is loaded when the model is opened
    from circuitview.core.model import Model

# Bytes of float32; unpacking more takes longer than about two seconds, which is worth a line.
_SLOW = 60_000_000


@dataclass(frozen=True, slots=True)
class Opening:
    """The options that say which model, and how to open it."""

    model: str
    device: DeviceName = "cpu"
    given: tuple[tuple[str, str], ...] = ()
    tokenizer: str | None = None
    even_if_large: bool = False

    def open(self, dtype: DtypeName, checked: bool = True) -> "Model":
        """The open model, which does in `dtype` what the sums take for granted.

        Args:
            dtype: the precision that is asked for.
            checked: False leaves the check to who calls.

        Raises:
            CircuitviewError: where it can't be opened or run in `dtype`, would not fit into what
                memory is free, or does something that is not summed.
        """
        need = memory_need(self.model, dtype)
        if not self.even_if_large:
            try:
                need.require_free()
            except TooLargeError as error:
                raise TooLargeError(f"{error}, or add --even-if-large") from None
        if need.packed and need.size is not None and need.size >= _SLOW:
            complain(f"unpacking {need.name} to float32, {need.text} …")
        from circuitview.core.checkpoint import open_model

        model = open_model(
            self.model, self.device, dict(self.given), self.tokenizer, checked=False
        )  # its check comes once it is known that it can run in `dtype`
        model.require(dtype)
        if elsewhere := model.elsewhere(self.device):
            complain(elsewhere)
        if not checked:
            return model
        from circuitview.core.check import require_exact

        return require_exact(model, dtype)


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
