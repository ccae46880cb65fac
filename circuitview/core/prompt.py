"""What was asked of a model: its name and the tokens it read."""

from dataclasses import dataclass


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
