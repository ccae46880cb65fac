"""The exact sum against one forward pass of the same model by transformer_lens."""

import pytest
import torch

from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.benchmarks.conftest import in_turn
from tests.native_model import native_bridge

MODEL = "attn-only-2l"
N_TOKENS = 64


@pytest.mark.slow
def test_all_terms_cost_at_most_half_a_forward_pass(benchmark, verdict):
    model = open_model(MODEL)
    tokens = torch.randint(1, model.config.d_vocab, (N_TOKENS,), generator=torch.manual_seed(0))
    ids = (0, *tokens.tolist()[1:])
    recording = model.run(Prompt(MODEL, ids, ids))
    target = Target(N_TOKENS - 1, 17, "17")
    bridge = native_bridge(model.folder)
    batch = torch.tensor([ids])

    def forward() -> object:
        with torch.inference_mode():
            return bridge.run_with_cache(batch)

    def terms() -> object:
        return expand(recording, target)

    assert len(expand(recording, target).paths) == 172
    assert expand(recording, target).by_source.shape == (172, N_TOKENS)
    measured, yardstick = in_turn(terms, forward, rounds=25)
    benchmark.extra_info["ratio"] = measured / yardstick
    benchmark.pedantic(terms, rounds=10)
    what = f"all 173 terms by source, {N_TOKENS} tokens / run_with_cache"
    verdict(what, measured, yardstick, 0.5)
