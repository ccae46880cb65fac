"""What is explained: the logit of a token, or of one minus another, at a dest position; or the mean
logit of every next token of a text."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.names import CircuitviewError
from circuitview.core.recording import Recording
from circuitview.core.tokenizer import Tokenizer
from circuitview.core.value_side import ValueSide


@dataclass(frozen=True, slots=True)
class Target:
    """A dest position and a direction in the stream.

    Attributes:
        dest: position, counted from 0.
        token: the token A whose logit is explained.
        versus: the token B that is subtracted, or None.
        label, versus_label: what to show for them.
    """

    dest: int
    token: int
    label: str
    versus: int | None = None
    versus_label: str | None = None

    def __str__(self) -> str:
        return self.label if self.versus is None else f"{self.label} − {self.versus_label}"

    @property
    def first(self) -> int:
        """The first dest at which something is read: the only one."""
        return self.dest

    @property
    def last(self) -> int:
        """The last one: the same."""
        return self.dest

    def gradient(self, recording: Recording) -> Float[Tensor, "pos d_model"]:
        """What the logit reads of the final stream at each position up to `last`, the final scale
        held."""
        found = recording.stream.new_zeros(self.dest + 1, recording.weights.config.d_model)
        found[self.dest] = self.direction(recording.weights) / recording.final_scale[self.dest]
        return found

    def direction(self, weights: ValueSide) -> Float[Tensor, " d_model"]:
        """u: what the logit reads of the stream, or the difference of two; see
        ValueSide.direction."""
        u = weights.direction(self.token)  # [d_model]
        return u if self.versus is None else u - weights.direction(self.versus)

    def constant(self, weights: ValueSide) -> float:
        """What is added whatever is in the stream, or the difference of two [logits]."""
        constant = weights.constant(self.token)
        return constant if self.versus is None else constant - weights.constant(self.versus)

    def of(self, values: Float[Tensor, " d_vocab"]) -> float:
        """The token's entry of `values`, or the difference of the two entries, in float64.

        Of the logits at dest it is the model's own logit [logits].
        """
        value = float(values[self.token])
        return value if self.versus is None else value - float(values[self.versus])


@dataclass(frozen=True, eq=False, slots=True)
class NextTokens:
    """One token at each of several dests: the mean of their logits.

    Attributes:
        dests: positions, rising.
        tokens: the token whose logit is read at each.
    """

    dests: Int[Tensor, " dest"]
    tokens: Int[Tensor, " dest"]

    @property
    def first(self) -> int:
        """The first dest at which something is read."""
        return int(self.dests[0])

    @property
    def last(self) -> int:
        """The last one."""
        return int(self.dests[-1])

    def gradient(self, recording: Recording) -> Float[Tensor, "pos d_model"]:
        """What the mean reads of the final stream at each position up to `last`, the final scales
        held.

        What is held being fixed, a mean of logits is as linear in the stream as one logit is, and
        the sums of all paths to it cost no more.
        """
        weights = recording.weights
        directions = weights.directions(self.tokens) / len(self.tokens)  # [dest, d_model]
        found = recording.stream.new_zeros(self.last + 1, weights.config.d_model)
        scale = recording.final_scale[self.dests].unsqueeze(-1)
        found[self.dests] = (directions / scale).to(found.dtype)  # [dest, d_model]
        return found


Explained = Target | NextTokens


def resolve_target(
    recording: Recording,
    tokenizer: Tokenizer,
    target: str | None = None,
    versus: str | None = None,
    dest: int = -1,
) -> Target:
    """The target that the words name.

    Args:
        recording: the run it is about.
        tokenizer: the model's.
        target: a token's text; None takes the top prediction at `dest`.
        versus: the text of the token to subtract; None subtracts none.
        dest: a position; negative counts from the end.

    Raises:
        CircuitviewError: where dest is out of range, a text is not one token, or both are the same.
    """
    place = resolve_dest(dest, len(recording.prompt))
    top = int(recording.logits[place].argmax())
    token = top if target is None else tokenizer.token_id(target)
    if versus is None:
        return Target(place, token, tokenizer.label(token))
    other = tokenizer.token_id(versus, "versus")
    if other == token:
        raise CircuitviewError(
            f"target and versus are both {tokenizer.label(token)!r}: their difference is nothing; "
            "choose two tokens"
        )
    return Target(place, token, tokenizer.label(token), other, tokenizer.label(other))


def resolve_dest(dest: int, n: int) -> int:
    """The position that `dest` names among `n`, negative counting from the end.

    Raises:
        CircuitviewError: where there is no such position.
    """
    if not -n <= dest < n:
        raise CircuitviewError(
            f"dest {dest} is out of range: the prompt has positions 0 to {n - 1}"
        )
    return dest % n
