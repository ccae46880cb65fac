"""The command `circuitview`: its commands, and what each failure looks like to a shell."""

import os
import re
from collections.abc import Sequence
from typing import Annotated

import typer

from circuitview import __version__
from circuitview.cli import ablate, check, export, models, paths, repeat, train, window
from circuitview.cli.outcome import (
    BAD_INPUT,
    DEFECT,
    STOPPED,
    UNBALANCED,
    StoppedError,
    complain,
    emit,
    make_streams_safe,
)
from circuitview.core.names import CircuitviewError, ImbalanceError

# What typer's own checks say, and what a person is told.
_PLAINLY = (
    (r"Value error, ", ""),
    (r"Input should be greater than or equal to (\S+)", r"choose \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"choose \1 or less"),
    (r"Input should be greater than (\S+)", r"choose more than \1"),
    (r"Input should be less than (\S+)", r"choose less than \1"),
    (r"Input should be a valid integer(, .*)?$", "give a whole number"),
    (r"Input should be a (valid|finite) number(, .*)?$", "give a number"),
    (r"Input should be a valid boolean(, .*)?$", "give yes or no"),
)

app = typer.Typer(
    name="circuitview",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("paths")(paths.paths)
app.command("export")(export.export)
app.command("ablate")(ablate.ablate)
app.command("repeat")(repeat.repeat)
app.command("check")(check.check)
app.command("models")(models.models)
app.command("train")(train.train)
app.command("open")(window.open_window)


@app.callback(invoke_without_command=True)
def circuitview(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Every end-to-end path of a transformer, sized by its exact share of a logit.

    Without a command the window opens.
    """
    if version:
        emit(f"circuitview {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        window.open_window()


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a call with `arguments`, those of the process where there are none.

    Never raises: every failure becomes one line on stderr. With CIRCUITVIEW_TRACEBACK=1 in the
    environment a defect of the program itself shows where it happened.
    """
    make_streams_safe()
    command = typer.main.get_command(app)
    try:
        result = command.main(
            args=None if arguments is None else list(arguments),
            prog_name="circuitview",
            standalone_mode=False,
        )
    except ImbalanceError as error:
        complain(str(error))
        return UNBALANCED
    except StoppedError as error:
        complain(str(error))
        return STOPPED
    except CircuitviewError as error:
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        complain("stopped")
        return STOPPED
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  a shell gets a line; faults of Rust code too
        return _unforeseen(error)
    if result == STOPPED:  # what typer makes of Ctrl-C
        complain("stopped")
    return result if isinstance(result, int) else 0


def _unforeseen(error: BaseException) -> int:
    # Usage errors are typer's or, in older versions, click's: known by what they can do.
    describe = getattr(error, "format_message", None)
    if describe is not None:
        context = getattr(error, "ctx", None)
        hint = "" if context is None else f" (see {context.command_path} --help)"
        complain(_plainly(describe().rstrip(".")) + hint)
        return BAD_INPUT
    if os.environ.get("CIRCUITVIEW_TRACEBACK"):
        raise error
    kind = type(error).__name__
    complain(
        f"a defect of this program, please report it: {kind}: {error} "
        "(CIRCUITVIEW_TRACEBACK=1 shows where)"
    )
    return DEFECT


def _plainly(message: str) -> str:
    for found, said in _PLAINLY:
        message = re.sub(found, said, message)
    return message
