"""What can be put in the place of what is taken away. One file a kind.

A kind is a frozen dataclass; its fields, each with a unit and a help text, become the form in the
window and the options on the command line. A file of this package with a KIND is found by itself.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from circuitview.core.ablation.kinds.kind import Kind
from circuitview.core.names import CircuitviewError


@cache
def kinds() -> Mapping[str, type[Kind]]:
    """The kinds by name, in the order in which they are offered."""
    found: list[type[Kind]] = []
    for module in iter_modules(__path__):
        kind = getattr(import_module(f"{__name__}.{module.name}"), "KIND", None)
        if kind is not None:
            found.append(kind)
    return {kind.NAME: kind for kind in sorted(found, key=lambda kind: kind.PLACE)}


def kind_named(name: str) -> type[Kind]:
    """The kind of this name.

    Raises:
        CircuitviewError: where there is none.
    """
    if name not in kinds():
        raise CircuitviewError(f"there is no kind {name!r}; choose one of {', '.join(kinds())}")
    return kinds()[name]
