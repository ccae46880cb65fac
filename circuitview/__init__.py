"""circuitview: every end-to-end path of a transformer, sized by its exact share of a logit.

Three lines of Python:

    import circuitview
    expansion = circuitview.analyse("attn-only-2l", "I like green tea, so I drink green")
    print(expansion.terms[0].path, expansion.terms[0].contribution, expansion.error)

The package has five floors; each may import those below it and no other:

    cli      the commands, one file each
    gui      the only Qt: window, document, worker thread, panels, painting
    figures  numbers -> Figure, a display list, and its SVG; no Qt, no torch at import
    session  what was asked (State), what was computed (Results), what depends on what
    core     a checkpoint and a prompt -> numbers that add up; no screen

This file imports nothing heavy: the window paints before torch is loaded.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from circuitview.core.analysis import analyse
    from circuitview.core.checkpoint import open_model
    from circuitview.core.names import CircuitviewError

__version__ = "0.1.0"
__all__ = ["CircuitviewError", "__version__", "analyse", "open_model"]

_HOMES = {
    "analyse": "circuitview.core.analysis",
    "open_model": "circuitview.core.checkpoint",
    "CircuitviewError": "circuitview.core.names",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'circuitview' has no attribute {name!r}")
