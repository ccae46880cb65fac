"""The command line that asks a question again, for a shell that quotes as POSIX shells do."""

import shlex
from collections.abc import Sequence

from circuitview.session.lab import Question, in_effect, located


def command_line(question: Question) -> str:
    """`circuitview ablate …` for `question`: run anywhere, it measures the same. What changes
    nothing is left out."""
    asked = located(question)
    words = ["circuitview", "ablate", asked.model, "--what", asked.what, "--with", asked.kind]
    if asked.what != "orders":
        words.append("--frozen" if asked.frozen else "--free")
    words += ["--metric", asked.metric]
    if asked.text:
        words += ["--text", asked.text]
        words += _given("--length", asked.length)
        words += ["--windows", str(asked.windows)]
    else:
        words += _each("--prompt", asked.prompts)
        words += _given("--target", asked.target)
        if asked.metric == "difference":
            words += _given("--versus", asked.versus)
        words += _given("--dest", asked.dest)
    words += _each("--only", asked.chosen)
    words += _each("--set", [f"{name}={value}" for name, value in in_effect(asked.parameters)])
    if asked.what == "paths" and not asked.chosen:
        words += ["--most", str(asked.most)]
    if asked.seed:
        words += ["--seed", str(asked.seed)]
    if asked.prepend_bos is not None:
        words.append("--bos" if asked.prepend_bos else "--no-bos")
    if asked.dtype != "float32":
        words += ["--dtype", asked.dtype]
    if asked.device != "cpu":
        words += ["--device", asked.device]
    words += _each("--config", [f"{name}={value}" for name, value in asked.given])
    words += _given("--tokenizer", asked.tokenizer)
    return shlex.join(words)


def _each(option: str, values: Sequence[str]) -> list[str]:
    words = []
    for value in values:
        # What begins with a dash would be taken for an option.
        words += [f"{option}={value}"] if value.startswith("-") else [option, value]
    return words


def _given(option: str, value: str | int | None) -> list[str]:
    return [] if value is None else _each(option, (str(value),))
