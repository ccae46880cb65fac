"""Runs of the lab while the window shows what comes: it may not hold up the window."""

import statistics

import pytest

from tests.benchmarks.own_process import NARROW, measured_window
from tests.tiny_models import build_bundle

RUNS = 3
BUDGET = 0.050  # seconds: what is slower than this is felt
N_ROWS = {"heads": 144, "orders": 13, "pairs": 144 * 145 // 2}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[dict]:
    model = build_bundle(tmp_path_factory.mktemp("lab") / "12x12", NARROW)
    found = [
        measured_window("lab_window_run.py", model, tmp_path_factory.mktemp("config"))
        for _ in range(RUNS)
    ]
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
