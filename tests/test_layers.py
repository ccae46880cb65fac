"""What loads what, in a fresh process: discovery can do what no linter sees."""

import subprocess
import sys

import pytest

LOAD = """
import importlib, pkgutil, sys
for name in {packages!r}:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(found.name)
loaded = [name for name in {forbidden!r} if name in sys.modules]
sys.exit(f"{{loaded}} came with it" if loaded else 0)
"""
QT = ["PySide6", "pyqtgraph"]
HUB = ["transformer_lens", "transformers"]


@pytest.mark.parametrize(
    ("packages", "forbidden"),
    [
        (["circuitview.core", "circuitview.session", "circuitview.figures"], [*QT, *HUB]),
        (["circuitview.figures"], ["torch"]),
        (["circuitview.gui"], [*HUB, "torch"]),
    ],
    ids=["no Qt and no transformer_lens below gui", "no torch in figures", "no torch in gui"],
)
def test_importing_everything_in_a_layer_loads_nothing_it_must_not(packages, forbidden):
    code = LOAD.format(packages=packages, forbidden=forbidden)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
