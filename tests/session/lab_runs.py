"""Runs of the ablation lab on small models."""

from functools import cache

from circuitview.core.checkpoint import open_model
from circuitview.session.lab import Question, Run, run_question

MODEL = "induction-by-hand"


@cache
def opened(name: str):
    return open_model(name)


def found(question: Question) -> Run:
    steps = run_question(opened(question.model), question)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def prompts(name: str, count: int = 2, length: int = 6) -> tuple[str, ...]:
    """Prompts of words that the model has, three of them and again."""
    tokenizer, V = opened(name).tokenizer, opened(name).config.d_vocab
    words = [tokenizer.text(token) for token in range(V)]
    words = [word for word in words if word and word.strip() and "|" not in word]
    rows = [
        [words[(7 * row + 3 * (place % 3)) % len(words)] for place in range(length)]
        for row in range(count)
    ]
    return tuple(" ".join(row) for row in rows)


# One of each kind of rows, to be saved.
QUESTIONS = {
    "heads": Question(model=MODEL, prompts=prompts(MODEL)),
    "one prompt": Question(model=MODEL, prompts=prompts(MODEL, 1)),
    "paths": Question(model=MODEL, what="paths", most=4, frozen=True, prompts=prompts(MODEL)),
    "orders": Question(model=MODEL, what="orders", metric="loss", prompts=prompts(MODEL, 3)),
    "resampled": Question(
        model=MODEL,
        kind="resample",
        parameters=(("prompt", prompts(MODEL, 3)[2]),),
        prompts=prompts(MODEL, 1),
        seed=2**63 - 1,
    ),
}
