"""The names of things: heads, sources, choices, and what can go wrong.

A head is written "1.4" (layer.head), as everywhere in the field. Values here are small, frozen and
hashable, so that they can be the identity of what is drawn and selected. Nothing heavy is imported.
"""

import re
from dataclasses import dataclass
from typing import Literal

_HEAD = re.compile(r"\s*(?:L(\d{1,9})H(\d{1,9})|(\d{1,9})\.(\d{1,9}))\s*", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


class CircuitviewError(Exception):
    """Something the user can mend: the message is one line that names the thing and the remedy."""


class ImbalanceError(CircuitviewError):
    """The paths don't add up to the model's logit, so that nothing may be drawn."""


class IncomparableError(CircuitviewError):
    """Two prompts can't be subtracted, so that no difference may be drawn; each can be alone."""


@dataclass(frozen=True, order=True, slots=True)
class Head:
    """One attention head; prints as "1.4"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """The head that `text` names: "1.4" or "L1H4".

        Raises:
            CircuitviewError: where `text` is neither.
        """
        match = _HEAD.fullmatch(text)
        if match is None:
            raise CircuitviewError(f"{text!r} is not a head: write layer.head, like 1.4")
        layer, head = (int(group) for group in match.groups() if group is not None)
        return cls(layer, head)


def is_number(text: str) -> bool:
    """Whether `text` is the number of a layer or an order, of as many digits as a head's has."""
    return _NUMBER.fullmatch(text) is not None


@dataclass(frozen=True, order=True, slots=True)
class Mlp:
    """The MLP of one layer, where a path runs through it; prints as "mlp 3"."""

    layer: int

    def __str__(self) -> str:
        return f"mlp {self.layer}"


Step = Head | Mlp
AttentionMode = Literal["pattern", "scores", "value-weighted"]
OVSense = Literal["token", "everything"]
DtypeName = Literal["float32", "float64"]
SourceKind = Literal["token", "position", "bias", "mlp", "mlp bias"]


@dataclass(frozen=True, order=True, slots=True)
class Source:
    """What writes to the residual stream without reading it: where a path starts.

    `layer` is -1 for the token and position embeddings, which stand before layer 0; for the others
    it is the layer that writes: its attention's biases ("bias"), its MLP's recorded output ("mlp")
    or, where paths are carried on through MLPs, only what the MLP's biases make ("mlp bias"). A
    path may run only through what stands behind its source: heads of later layers, and, where paths
    run on through MLPs, their layers' MLPs, for "bias" that of its own layer too.
    """

    kind: SourceKind
    layer: int = -1

    def __str__(self) -> str:
        return self.kind if self.layer < 0 else f"{self.kind} {self.layer}"

    @classmethod
    def parse(cls, text: str) -> "Source":
        """The source that `text` names: "token", "position", "bias 0", "mlp 3", "mlp bias 3".

        Raises:
            CircuitviewError: where `text` is none of these.
        """
        match text.split():
            case ["token"]:
                return TOKEN
            case ["position"]:
                return POSITION
            case ["bias", layer] if is_number(layer):
                return cls("bias", int(layer))
            case ["mlp", layer] if is_number(layer):
                return cls("mlp", int(layer))
            case ["mlp", "bias", layer] if is_number(layer):
                return cls("mlp bias", int(layer))
        raise CircuitviewError(
            f"{text!r} is not a source: write token, position, bias 0, mlp 0 or mlp bias 0"
        )


TOKEN = Source("token")
POSITION = Source("position")
