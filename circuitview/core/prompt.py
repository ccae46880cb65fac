"""What was asked of a model: its name and the tokens it read."""

from dataclasses import dataclass

from circuitview.core.config import ModelConfig
from circuitview.core.names import CircuitviewError


@dataclass(frozen=True, slots=True)
class Prompt:
    """A tokenised prompt.

    Attributes:
        model: the model's name.
        token_ids: [pos], BOS included where it was put in front.
        labels: [pos], what to show for each token; no two different tokens share a label.
    """

    model: str
    token_ids: tuple[int, ...]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.token_ids)

    def require_readable(self, config: ModelConfig) -> None:
        """Pass only a prompt of which the model can read every token.

        Raises:
            CircuitviewError: where it is empty or longer than the model's context, or a token lies
                outside its vocabulary.
        """
        if not 1 <= len(self) <= config.n_ctx:
            raise CircuitviewError(
                f"the prompt has {len(self)} tokens, the model reads 1 to {config.n_ctx}; "
                "shorten it"
            )
        if not all(0 <= token < config.d_vocab for token in self.token_ids):
            raise CircuitviewError(f"a token id lies outside the vocabulary of {config.d_vocab}")
