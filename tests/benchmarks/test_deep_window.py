"""The window on a deep model, its diagram full of bands: nothing may hold it up."""

import statistics

import pytest

from tests.benchmarks.own_process import N_TOKENS, NARROW, measured_window
from tests.tiny_models import build_bundle

RUNS = 3
N_BANDS = 2000
BUDGET = 0.050  # seconds: what is slower than this is felt


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[dict]:
    model = build_bundle(tmp_path_factory.mktemp("deep") / "12x12", NARROW)
    found = [
        measured_window("deep_window_run.py", model, tmp_path_factory.mktemp("config"))
        for _ in range(RUNS)
    ]
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
