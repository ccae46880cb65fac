"""What importing must not load, in a fresh process: the linter can't see discovery."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import circuitview

ROOT = Path(circuitview.__file__).parent.parent


def modules_of(package: str) -> list[str]:
    folder = Path(circuitview.__file__).parent.joinpath(*package.split(".")[1:])
    found = pkgutil.walk_packages([str(folder)], prefix=f"{package}.")
    return [package, *(module.name for module in found)]


def loaded_after(modules: list[str], suspects: list[str]) -> list[str]:
    """Which of `suspects` are loaded once all `modules` are imported."""
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print([name for name in {suspects!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return ast.literal_eval(result.stdout)


@pytest.mark.parametrize("package", ["circuitview", "circuitview.session", "circuitview.figures"])
def test_light_packages_load_neither_torch_nor_qt_nor_transformer_lens(package):
    modules = [package] if package == "circuitview" else modules_of(package)
    heavy = ["torch", "PySide6", "pyqtgraph", "transformer_lens", "transformers"]
    assert loaded_after(modules, heavy) == []


@pytest.mark.parametrize("package", ["session", "figures"])
def test_every_light_module_is_light_on_its_own(package):
    modules = modules_of(f"circuitview.{package}")
    assert len(modules) > 1
    assert loaded_after(modules[::-1], ["torch", "PySide6", "transformer_lens"]) == []


def test_core_loads_neither_qt_nor_transformer_lens():
    modules = modules_of("circuitview.core")
    assert {"circuitview.core.expansion", "circuitview.core.training.run"} <= set(modules)
    heavy = ["PySide6", "pyqtgraph", "transformer_lens", "transformers"]
    assert loaded_after(modules, heavy) == []


def test_names_of_the_package_are_found_lazily():
    code = (
        "import sys, circuitview\n"
        "assert 'torch' not in sys.modules\n"
        "circuitview.analyse, circuitview.open_model, circuitview.CircuitviewError\n"
        "assert 'torch' in sys.modules\n"
        "try: circuitview.nonsense\n"
        "except AttributeError as error: assert 'nonsense' in str(error)\n"
        "else: raise SystemExit('found nonsense')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
