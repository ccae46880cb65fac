"""The program as a shell runs it: a process of its own, with its streams and its surroundings."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import circuitview
from tests.cli.calling import PROMPT, process

FULL = Path("/dev/full")
NOTHING_HEAVY = """
import sys
from pathlib import Path
from circuitview.cli.app import run
code = run({arguments!r})
heavy = [name for name in ("torch", "PySide6", "transformer_lens", "transformers", "pyqtgraph")
         if name in sys.modules]
sys.exit(f"{{code}} {{heavy}}" if code or heavy else 0)
"""
NO_NETWORK = """
import socket, sys
def refuse(*arguments, **keywords):
    sys.exit("a connection was tried")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from circuitview.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def test_version_is_the_package_version():
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"circuitview {circuitview.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["paths", "--help"], ["train", "--help"], ["export", "--help"], ["models"]],
    ids=" ".join,
)
def test_help_and_models_load_nothing_heavy(arguments):
    done = python(NOTHING_HEAVY.format(arguments=arguments))
    assert done.returncode == 0, done.stderr


def test_help_names_every_command():
    done = process("--help")
    for command in ("paths", "export", "ablate", "repeat", "models", "train", "open"):
        assert f"\n  {command} " in done.stdout


def test_paths_and_export_open_no_connection(bundle, tmp_path):
    asked = [bundle, "--prompt", PROMPT]
    for command in (["paths", *asked], ["export", *asked, "--figure", "ov", "--out"]):
        more = [tmp_path / "x.svg"] if command[0] == "export" else []
        done = python(NO_NETWORK, *command, *more)
        assert done.returncode == 0, done.stderr


def test_paths_writes_json_that_reads_back():
    done = process("paths", "cat-on-the-mat", "--prompt", "the cat sat", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["tokens"] == ["the", "cat", "sat"]


def test_error_in_a_process_is_one_line_and_exit_code_2():
    done = process("paths", "no-such-model", "--prompt", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "'no-such-model'" in done.stderr


@pytest.mark.parametrize("form", ["table", "json"])
def test_output_survives_a_terminal_without_unicode(bundle, form):
    options = ["--prompt", "␣ é 🍵 tea", "--by-source", "--format", form]
    plain = process("paths", bundle, *options, PYTHONIOENCODING="ascii")
    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout.isascii()
    if form == "json":
        rich = process("paths", bundle, *options, PYTHONIOENCODING="utf-8")
        assert not rich.stdout.isascii()
        assert json.loads(rich.stdout) == json.loads(plain.stdout)


def test_error_survives_a_terminal_without_unicode(bundle):
    done = process("paths", bundle, "--prompt", "a", "--target", "é🍵", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "\\xe9\\U0001f375" in done.stderr


STOPPED_AT_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "circuitview.cli.app":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from circuitview.__main__ import main
main()
"""
STOPPED_TWICE = """
import atexit, os, signal
from circuitview.cli import app
from circuitview.__main__ import main
app.run = lambda: 130
atexit.register(os.kill, os.getpid(), signal.SIGINT)
main()
"""


@pytest.mark.parametrize(
    ("code", "told"), [(STOPPED_AT_IMPORT, "circuitview: stopped\n"), (STOPPED_TWICE, "")]
)
def test_ctrl_c_at_either_end_has_the_usual_exit_code(code, told):
    """Before the commands are there, and while Python takes itself apart."""
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", told)


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE there")
def test_reader_that_leaves_early_ends_the_program_quietly(bundle):
    command = [sys.executable, "-m", "circuitview", "paths", bundle, "--prompt", PROMPT]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, timeout=300, check=False
        )
    assert done.stderr == b""
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_full_disk_is_one_line_and_exit_code_2(bundle):
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "circuitview", "paths", bundle, "--prompt", PROMPT],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("circuitview: can't write the output")
    assert done.stderr.count("\n") == 1
