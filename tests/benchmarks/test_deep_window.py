"""The window on a deep model, its diagram full of bands: nothing may hold it up."""

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
N_TOKENS, N_BANDS = 60, 2000
BUDGET = 0.050  # seconds: what is slower than this is felt
# 12 x 12 heads of attention alone, and as narrow as they can be: only the drawing is of interest.
TINY = Tiny(n_layers=12, n_heads=12, d_model=48, d_head=4, n_ctx=64, d_vocab=80)


def run(model: Path, folder: Path) -> dict:
    words = (f"w{1 + 7 * place % (TINY.d_vocab - 1)}" for place in range(N_TOKENS - 1))
    done = subprocess.run(
        [sys.executable, str(HERE / "deep_window_run.py"), str(model), " ".join(words)],
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
    model = build_bundle(tmp_path_factory.mktemp("deep") / "12x12", TINY)
    found = [run(model, tmp_path_factory.mktemp("config")) for _ in range(RUNS)]
    for figures in found:
        assert figures["tokens"] == N_TOKENS
        assert figures["bands"] >= N_BANDS
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "what"),
    [
        ("dest", "a change of dest"),
        ("target", "another target"),
        ("prompt", "another prompt"),
        ("head", "selecting the strongest head"),
        ("theme", "another theme"),
    ],
)
def test_nothing_stalls_in_a_deep_model(runs, verdict, act, what):
    longest = statistics.median(max(figures["stalls"][act]) for figures in runs)
    verdict(f"longest stall, 12x12 heads, 60 tokens, 2,000 bands: {what}", longest, None, BUDGET)
