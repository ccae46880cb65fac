"""Runs of the lab while the window shows what comes: it may not hold up the window."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_models import Tiny, build_bundle

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
RUNS = 3
N_TOKENS = 60
BUDGET = 0.050  # seconds: what is slower than this is felt
# 12 x 12 heads of attention alone, and as narrow as they can be: 10,440 rows of pairs.
TINY = Tiny(n_layers=12, n_heads=12, d_model=48, d_head=4, n_ctx=64, d_vocab=80)
N_ROWS = {"heads": 144, "orders": 13, "pairs": 144 * 145 // 2}


def run(model: Path, folder: Path) -> dict:
    words = (f"w{1 + 7 * place % (TINY.d_vocab - 1)}" for place in range(N_TOKENS - 1))
    done = subprocess.run(
        [sys.executable, str(HERE / "lab_window_run.py"), str(model), " ".join(words)],
        env={
            **os.environ,
            "QT_QPA_PLATFORM": "offscreen",
            "CIRCUITVIEW_CONFIG_DIR": str(folder),
            "PYTHONPATH": str(CHECKOUT),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[dict]:
    model = build_bundle(tmp_path_factory.mktemp("lab") / "12x12", TINY)
    found = [run(model, tmp_path_factory.mktemp("config")) for _ in range(RUNS)]
    for figures in found:
        for what, rows in N_ROWS.items():
            assert figures["rows"][what] == rows
        assert figures["matrices"] >= 2  # the matrix was seen while pairs came
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "what"),
    [
        ("heads", "zero-ablating each head"),
        ("paths", "the largest paths"),
        ("paths coloured", "the same, the diagram coloured by effect"),
        ("orders", "paths by order"),
        ("pairs", "10,440 pairs of heads"),
        ("pairs large", "the same, the panel filling the window"),
    ],
)
def test_no_run_of_the_lab_stalls_the_window(runs, verdict, act, what):
    longest = statistics.median(figures["stalls"][act] for figures in runs)
    verdict(f"longest stall during a run of the lab, 12x12 heads: {what}", longest, None, BUDGET)
