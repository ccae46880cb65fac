"""The lists of a model of gpt2's shape and its forward pass, timed in turn; prints JSON.

    deep_run.py FOLDER N_TOKENS

A process of its own, so that its memory is its own and calls are not checked.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.largest import enumerate_contributions
from circuitview.core.orders import order_sums
from circuitview.core.path import count_chains
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.benchmarks.memory import peak, reset_peak, resident


def main(folder: Path, n_tokens: int) -> None:
    model = open_model(folder)
    config = model.config
    drawn = torch.randint(1, config.d_vocab, (n_tokens,), generator=torch.manual_seed(0))
    prompt = Prompt(model.name, tuple(drawn.tolist()), tuple(map(str, range(n_tokens))))
    opened = resident()
    reset_peak()
    recording = model.run(prompt)
    target = Target(n_tokens - 1, 17, "17")
    taken: dict[str, list[float]] = {}

    def timed(name: str, call, rounds: int) -> None:
        for _ in range(rounds):
            start = time.perf_counter()
            call()
            taken.setdefault(name, []).append(time.perf_counter() - start)

    def listed(most: int) -> None:
        chains = 1
        with torch.inference_mode():
            for step, worth, _, _ in enumerate_contributions(recording, target, most):
                chains += 0 if step is None else worth.shape[0] * worth.shape[1]
        assert chains == count_chains(config.n_layers, config.n_heads, most)

    def attention() -> None:
        with torch.inference_mode():
            for block, x in blocks:
                block(x[:, :n_tokens])

    listed(2), expand(recording, target)
    if n_tokens <= 64:
        timed("three heads", lambda: listed(3), 3)
    memory = peak() - opened
    blocks = attentions(folder)
    order_sums(recording, target), attention()
    rounds = 9 if n_tokens <= 64 else 3
    for _ in range(rounds):
        timed("forward", lambda: plain_forward(model, prompt), 1)
        timed("two heads", lambda: listed(2), 1)
        timed("orders", lambda: order_sums(recording, target), 1)
        timed("attention", attention, 1)
    found: dict[str, float] = {name: statistics.median(t) for name, t in taken.items()}
    found["n_layers"] = config.n_layers
    found["memory above the model"] = memory
    sys.stdout.write(json.dumps(found) + "\n")


def plain_forward(model, prompt: Prompt) -> None:
    """One forward pass by transformers, nothing recorded."""
    with torch.inference_mode():
        model.bridge.original_model(torch.tensor([prompt.token_ids]), use_cache=False)


def attentions(folder: Path) -> list[tuple[nn.Module, torch.Tensor]]:
    """The attention of every layer as transformers computes it, and something for each to read."""
    from transformers import AutoConfig
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    config = AutoConfig.from_pretrained(folder, attn_implementation="eager")
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, config.n_positions, config.n_embd, generator=generator)
    blocks = [GPT2Attention(config, layer_idx=layer).eval() for layer in range(config.n_layer)]
    return [(block, x) for block in blocks]


main(Path(sys.argv[1]), int(sys.argv[2]))
