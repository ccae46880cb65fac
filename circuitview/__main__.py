"""`circuitview` and `python -m circuitview`."""

import sys


def main() -> None:
    """Run the command line, or the window where no command is named; leave with its exit code."""
    from circuitview.cli.app import run

    sys.exit(run())


if __name__ == "__main__":
    main()
