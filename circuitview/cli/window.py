"""`circuitview` and `circuitview open`: the window."""

import os
import sys
from pathlib import Path as FilePath
from typing import Annotated

import typer

from circuitview.core.bundled import bundled_names
from circuitview.core.names import CircuitviewError

# Platforms of Qt that draw without a display server.
_WITHOUT_DISPLAY = ("offscreen", "minimal", "minimalegl", "vnc", "linuxfb", "eglfs")


def open_window(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="A bundled model's name, or a folder.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="What the model reads.")
    ] = None,
) -> None:
    """Open the window, on MODEL where one is named.

    Without MODEL it opens on what was open last.
    """
    require_display()
    require_model(model)
    require_prompt(prompt)
    from circuitview.gui.app import main

    raise typer.Exit(main(model, prompt))


def require_model(model: str | None) -> None:
    """Pass only a model that can be looked for; what is wrong inside it the window tells itself.

    Raises:
        CircuitviewError: where `model` is no bundled name and no folder.
    """
    names = bundled_names()
    if model is None or model in names:
        return
    try:
        found = FilePath(model).expanduser().is_dir()
    except (OSError, RuntimeError):  # too long for a name, an unknown ~user
        found = False
    if not found:
        raise CircuitviewError(
            f"no bundled model and no folder {model!r}; bundled: {', '.join(names)}"
        )


def require_prompt(prompt: str | None) -> None:
    """Pass only a prompt with something in it: the last one must not step in unasked.

    Raises:
        CircuitviewError: where it is empty.
    """
    if prompt == "":
        raise CircuitviewError("the prompt is empty; type some text, or leave --prompt away")


def require_display() -> None:
    """Pass only where a window can appear; Qt itself would abort.

    Raises:
        CircuitviewError: where there is no display.
    """
    platform = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if has_display() or platform in _WITHOUT_DISPLAY:
        return
    raise CircuitviewError(
        "there is no display to open the window on; `circuitview export` draws without one"
    )


def has_display() -> bool:
    """Whether this session has a screen; only Linux and its kin run without."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
