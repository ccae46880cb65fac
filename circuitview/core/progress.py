"""How long work reports: core generators yield Progress and return their result.

The command line, a notebook and the worker thread loop over the same generator; closing it cancels.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` units are finished; `partial` is what is known so far, or None."""

    done: int
    total: int
    partial: Any = None
