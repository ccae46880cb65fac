"""Importing what stands below the window loads nothing heavy."""

import subprocess
import sys


def test_session_imports_neither_torch_nor_qt():
    code = (
        "import importlib, pkgutil, sys, circuitview.session as floor\n"
        "for module in pkgutil.iter_modules(floor.__path__):\n"
        "    importlib.import_module(f'{floor.__name__}.{module.name}')\n"
        "heavy = ('torch', 'PySide6', 'transformer_lens', 'transformers', 'tokenizers')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "[]"
