"""How long work reports: core generators yield Progress and return their result.

The command line, a notebook and the worker thread loop over the same generator; closing it cancels.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` units are finished; `partial` is what is known so far, or None."""

    done: int
    total: int
    partial: Any = None


def finished(steps: Generator[Progress, None, Result]) -> Result:
    """The result of `steps`, run to their end: for a notebook that shows no progress."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def told(
    steps: Generator[Progress, None, Result], progress: Progress
) -> Generator[Progress, None, Result]:
    """The result of `steps`, which can be stopped between any two of them: part of a larger work,
    of which `progress` is done meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        yield progress
