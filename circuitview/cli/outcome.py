"""Exit codes, and output that arrives whole whatever the terminal can show."""

import codecs
import json
import os
import sys
from typing import Any

import typer

from circuitview.core.names import CircuitviewError

UNBALANCED = 1
BAD_INPUT = 2
DEFECT = 70  # a defect of this program; the number is BSD's EX_SOFTWARE
STOPPED = 130
NO_READER = 141  # what shells report for a program that SIGPIPE ended

# What a terminal without Unicode gets for signs that carry no token; tokens become \uXXXX.
_PLAIN = str.maketrans({"−": "-", "─": "-", "·": "-", "’": "'"})
_PLAINER = "circuitview-plainer"


class StoppedError(CircuitviewError):
    """The user stopped the command, which has something to say about it."""


def make_streams_safe() -> None:
    """Let stdout and stderr replace what their encoding lacks, rather than fail."""
    codecs.register_error(_PLAINER, _plainer)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_PLAINER)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end].translate(_PLAIN)
    return lost.encode("ascii", errors="backslashreplace").decode("ascii"), error.end


def emit(text: str) -> None:
    """Write `text` to stdout; where nobody reads on, leave without a word.

    Raises:
        CircuitviewError: where stdout can't be written to.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        raise typer.Exit(NO_READER) from None
    except OSError as error:
        _discard_stdout()
        reason = error.strerror or str(error)
        raise CircuitviewError(f"can't write the output: {reason}") from None


def emit_json(value: Any) -> None:
    """Write `value` as JSON, numbers in full precision, ASCII only where stdout is not UTF-8."""
    encoding = codecs.lookup(sys.stdout.encoding or "ascii").name
    text = json.dumps(value, indent=1, ensure_ascii=encoding != "utf-8", allow_nan=False)
    emit(text + "\n")


def complain(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    line = " ".join(message.splitlines())
    # Without stderr there is nobody to tell.
    try:
        sys.stderr.write(f"circuitview: {line}\n")
        sys.stderr.flush()
    except OSError:
        pass


def _discard_stdout() -> None:
    """Send what is still buffered nowhere, or Python complains when it closes stdout."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
