"""The exact sum against one forward pass of the same model by transformer_lens."""

import pytest

from tests.benchmarks.own_process import measured


@pytest.mark.slow
def test_all_terms_cost_at_most_half_a_forward_pass(benchmark, verdict):
    found = benchmark.pedantic(measured, ("core_run.py",), rounds=1)
    benchmark.extra_info.update(found)
    what = "all 173 terms by source, 64 tokens / transformer_lens run_with_cache"
    verdict(what, found["terms"], found["forward"], 0.5)
