"""`circuitview` and `python -m circuitview`."""

import signal
import sys

_STOPPED = 130  # cli/outcome.py says it too, which may not be imported yet


def main() -> None:
    """Run the command line, or the window where no command is named; leave with its exit code."""
    try:
        from circuitview.cli.app import run

        code = run()
        # A second Ctrl-C, while Python takes itself apart, would end in another code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # before the commands were there, or while one was saying so
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr.write("circuitview: stopped\n")
        code = _STOPPED
    sys.exit(code)


if __name__ == "__main__":
    main()
