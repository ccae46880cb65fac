"""A measurement in a process of its own, and the deep model that windows are measured on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.tiny_models import Tiny

HERE = Path(__file__).parent
N_TOKENS = 60
# 12 x 12 heads of attention alone, and as narrow as they can be: only the drawing is of interest.
NARROW = Tiny(n_layers=12, n_heads=12, d_model=48, d_head=4, n_ctx=64, d_vocab=80)


def measured(script: str, *arguments: object, **environment: str) -> Any:
    """What `script`, of this folder, prints as JSON in its last line."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *map(str, arguments)],
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parents[1]),
            "HF_HUB_OFFLINE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def measured_window(script: str, model: Path, folder: Path) -> Any:
    """The same of a window on `model`, a bundle of NARROW; its settings are kept in `folder`."""
    words = (f"w{1 + 7 * place % (NARROW.d_vocab - 1)}" for place in range(N_TOKENS - 1))
    where = {"QT_QPA_PLATFORM": "offscreen", "CIRCUITVIEW_CONFIG_DIR": str(folder)}
    return measured(script, model, " ".join(words), **where)
