"""The exact sum against one forward pass of the same model by transformer_lens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("core_run.py")
CHECKOUT = Path(__file__).resolve().parents[2]


def run() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(RUN)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_all_terms_cost_at_most_half_a_forward_pass(benchmark, verdict):
    found = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info.update(found)
    what = "all 173 terms by source, 64 tokens / transformer_lens run_with_cache"
    verdict(what, found["terms"], found["forward"], 0.5)
