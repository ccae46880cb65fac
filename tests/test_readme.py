"""What README.md shows is what the program does."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from circuitview.cli.app import run
from circuitview.core.answers import KEYS

CHECKOUT = Path(__file__).resolve().parents[1]
TEXT = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def block(marker):
    """The fenced block behind `<!-- marker -->`."""
    found = re.search(rf"<!-- {marker} -->\n```\w+\n(.*?)```", TEXT, re.DOTALL)
    assert found, f"README.md has no block marked {marker}"
    return found[1]


def test_command_line_output_is_real(capsys):
    command, *shown = block("output").splitlines()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "circuitview"
    assert run(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    # The last line is the rounding error, which differs between machines.
    assert shown[:-1] == printed[:-1]
    assert printed[-1].startswith("error")


def test_loss_by_order_is_what_the_command_prints(capsys, monkeypatch):
    command, *shown = block("output: orders").splitlines()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "circuitview"
    monkeypatch.chdir(CHECKOUT)
    assert run(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    number = re.compile(r"[+−]?\d+\.\d+")
    assert [number.sub("", line) for line in shown] == [number.sub("", line) for line in printed]
    read = [
        [float(text.replace("−", "-")) for line in lines for text in number.findall(line)]
        for lines in (shown, printed)
    ]
    # Four digits are shown, and float32 differs between machines in the sixth.
    assert read[0] == pytest.approx(read[1], abs=2e-4)
    losses = [float(line.split()[2]) for line in shown[-3:]]
    assert losses == sorted(losses, reverse=True)


def test_three_lines_of_python_run():
    code = block("python")
    assert len([line for line in code.splitlines() if line]) == 3
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    path, contribution, error = done.stdout.rsplit(" ", 2)
    assert path == "token > 0.0"
    assert float(contribution) == pytest.approx(6.7588 - 3.7, abs=5e-5)
    assert abs(float(error)) < 1e-4


@pytest.mark.parametrize("marker", ["command: open", "command: test"])
def test_commands_are_one_line_of_steps(marker):
    (command,) = block(marker).splitlines()
    steps = command.split(" && ")
    assert steps[0] == "python3 -m venv .venv"
    assert "-c packaging/constraints.txt" in steps[1]
    assert len(steps) == 3


def test_every_key_of_config_is_named():
    (row,) = [line for line in TEXT.splitlines() if "`--config key=value`" in line]
    assert row.endswith(f"{', '.join(f'`{key}`' for key in KEYS)} |")
