"""`circuitview` and `circuitview open`: the window."""

import os
import sys
from typing import Annotated

import typer

from circuitview.cli.opening import parse_config
from circuitview.cli.options import MODEL_HELP, ConfigOption, DeviceOption, TokenizerOption
from circuitview.core.names import CircuitviewError
from circuitview.core.places import find_place

# Platforms of Qt that draw without a display server.
_WITHOUT_DISPLAY = ("offscreen", "minimal", "minimalegl", "vnc", "linuxfb", "eglfs")


def open_window(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL_HELP)] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="What the model reads.")
    ] = None,
    device: DeviceOption = "cpu",
    config: ConfigOption = None,
    tokenizer: TokenizerOption = None,
) -> None:
    """Open the window, on MODEL where one is named.

    Without MODEL it opens on what was open last.
    """
    require_display()
    given = parse_config(config)
    if model is not None:
        find_place(model)  # what is wrong inside it the window tells itself
    elif given or tokenizer is not None:
        raise CircuitviewError("--config and --tokenizer belong to a model; name one")
    require_prompt(prompt)
    from circuitview.gui.app import main

    raise typer.Exit(main(model, prompt, device, given, tokenizer))


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
