"""The exact sum and transformer_lens' forward pass, timed in turn; prints JSON.

A process of its own: the test run checks shapes at every call, users don't.
"""

import json
import statistics
import sys
import time

import torch

from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.native_model import native_bridge

MODEL, N_TOKENS, ROUNDS = "attn-only-2l", 64, 41


def main() -> None:
    # Both are too short for two threads to pay, which wait a hundred times as long for each other
    # where a core is busy with something else.
    torch.set_num_threads(1)
    model = open_model(MODEL)
    drawn = torch.randint(1, model.config.d_vocab, (N_TOKENS - 1,), generator=torch.manual_seed(0))
    ids = (0, *drawn.tolist())
    recording = model.run(Prompt(MODEL, ids, tuple(map(str, ids))))
    target = Target(N_TOKENS - 1, 17, "17")
    bridge, batch = native_bridge(model.folder), torch.tensor([ids])

    def forward() -> None:
        with torch.inference_mode():
            bridge.run_with_cache(batch)

    def terms() -> None:
        found = expand(recording, target)
        assert found.by_source.shape == (172, N_TOKENS)

    taken: dict[str, list[float]] = {"terms": [], "forward": []}
    terms(), forward()
    for _ in range(ROUNDS):
        for name, call in (("terms", terms), ("forward", forward)):
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    sys.stdout.write(json.dumps({name: statistics.median(t) for name, t in taken.items()}) + "\n")


main()
