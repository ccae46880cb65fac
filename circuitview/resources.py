"""Where the files that come with the program are: fonts, the icon, models, texts.

In a checkout they lie in `resources/` beside the package; a wheel carries the same folder inside
the package, as `circuitview/resources/`. Nobody else needs to know which of the two this is.
"""

from pathlib import Path

from circuitview.core.names import CircuitviewError

_PACKAGE = Path(__file__).resolve().parent
_ROOTS = (_PACKAGE / "resources", _PACKAGE.parent / "resources")


def resource(*parts: str) -> Path:
    """The file or folder that `parts` name under resources/: "fonts", "OFL.txt" for the licence.

    Raises:
        CircuitviewError: where the installation lacks it.
    """
    for root in _ROOTS:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    name = "/".join(("resources", *parts))
    raise CircuitviewError(f"{name} is missing from this installation; install circuitview again")
