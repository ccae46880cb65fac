"""Ablations and plain forward passes, timed in turn; prints JSON.

    lab_run.py heads                 every head of a 12 x 12 model that reads 64 tokens
    lab_run.py bridge FOLDER         every head of a model of another program, 64 tokens
    lab_run.py windows COUNT         every head of attn-only-2l over windows of 256 tokens
    lab_run.py memory MODEL RUNS …   resident bytes after so many runs

A process of its own: the test run checks shapes at every call, users don't. One thread, and the
time that it ran: two would wait for each other where a core is busy with something else.
"""

import itertools
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from circuitview.core.ablation.cases import case_of, text_cases
from circuitview.core.ablation.kinds import kind_named
from circuitview.core.ablation.lab import ablate
from circuitview.core.ablation.sites import each_head
from circuitview.core.checkpoint import open_model
from circuitview.core.prompt import Prompt
from circuitview.core.runner import scale_of
from circuitview.core.target import Target
from circuitview.resources import resource
from tests.benchmarks.memory import resident
from tests.tiny_models import Tiny, tiny_model

N_TOKENS = 64
BIG = Tiny(
    n_layers=12,
    n_heads=12,
    d_model=768,
    d_head=64,
    n_ctx=N_TOKENS,
    d_vocab=50_257,
    normalization_type="LNPre",
)


def timed(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def in_turn(steps, forward) -> dict[str, float]:
    """The time that an ablation took, a forward pass after every fourth of its steps, and the mean
    time of these."""
    spent, passes, n_runs = 0.0, [], 0
    forward()
    for place in itertools.count():
        start = time.process_time()
        try:
            progress = next(steps)
        except StopIteration:
            spent += time.process_time() - start
            break
        spent += time.process_time() - start
        n_runs = progress.total
        if place % 4 == 0:
            passes.append(timed(forward))
    return {"spent": spent, "forward": statistics.fmean(passes), "runs": n_runs}


class PlainForward:
    """A forward pass with nothing recorded and as few calls as torch allows."""

    def __init__(self, weights) -> None:
        self.weights = weights
        layers = range(weights.config.n_layers)
        W = [getattr(weights, f"W_{kind}") for kind in "QKV"]
        b = [getattr(weights, f"b_{kind}") for kind in "QKV"]
        self.W = [torch.cat([flat(one[layer]) for one in W], 1) for layer in layers]
        self.b = [torch.cat([one[layer].flatten() for one in b]) for layer in layers]

    def __call__(self, tokens) -> torch.Tensor:
        w, c, n = self.weights, self.weights.config, len(tokens)
        with torch.inference_mode():
            x = w.W_E[tokens] + w.W_pos[:n]
            for layer in range(c.n_layers):
                normed = x / scale_of(c, x).unsqueeze(-1)
                qkv = torch.addmm(self.b[layer], normed, self.W[layer])
                q, k, v = qkv.view(n, 3, c.n_heads, c.d_head).permute(1, 2, 0, 3).unsqueeze(1)
                z = scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / c.score_scale)
                W_O = w.W_O[layer].flatten(0, 1)
                x = x + torch.addmm(w.b_O[layer], z[0].transpose(0, 1).flatten(1), W_O)
            return torch.addmm(w.b_U, x / scale_of(c, x).unsqueeze(-1), w.W_U)


def flat(matrices) -> torch.Tensor:
    """[head, d_model, d_head] as [d_model, head x d_head]."""
    return matrices.transpose(0, 1).flatten(1).contiguous()


def random_prompt(model, n: int) -> Prompt:
    drawn = torch.randint(1, model.config.d_vocab, (n,), generator=torch.manual_seed(0)).tolist()
    return Prompt(model.name, tuple(drawn), tuple(map(str, drawn)))


def plain_forward(model, prompt: Prompt):
    """Checked once, then ready to be timed."""
    forward, tokens = PlainForward(model.weights()), torch.tensor(prompt.token_ids)
    own = model.run(prompt).logits
    assert (forward(tokens) - own).abs().max() <= 1e-4 * own.abs().max()
    return lambda: forward(tokens)


def zeroing(model, cases, metric="logit", frozen=False):
    zero = kind_named("zero")()
    return ablate(model, cases, each_head(model.config), zero, metric=metric, frozen=frozen)


def heads() -> dict[str, dict[str, float]]:
    model = tiny_model(BIG, np.float32)
    prompt = random_prompt(model, N_TOKENS)
    case, forward = case_of(prompt, Target(N_TOKENS - 1, 17, "17")), plain_forward(model, prompt)
    free = in_turn(zeroing(model, [case]), forward)
    return {"free": free, "frozen": in_turn(zeroing(model, [case], frozen=True), forward)}


def bridge(folder: str) -> dict[str, dict[str, float]]:
    model = open_model(Path(folder))
    prompt = random_prompt(model, N_TOKENS)
    case, tokens = case_of(prompt, Target(N_TOKENS - 1, 17, "17")), torch.tensor([prompt.token_ids])

    def forward() -> None:
        with torch.inference_mode():
            model.bridge.original_model(tokens, use_cache=False)

    free = in_turn(zeroing(model, [case]), forward)
    return {"free": free, "frozen": in_turn(zeroing(model, [case], frozen=True), forward)}


def windows(count: str) -> dict[str, dict[str, float]]:
    model = open_model("attn-only-2l")
    text = resource("texts", "jekyll_and_hyde.txt").read_text(encoding="utf-8")
    cases = text_cases(model, text, 256, int(count))
    assert len(cases) == int(count)
    forward = plain_forward(model, cases[0].prompt)
    free = in_turn(zeroing(model, cases, "loss"), forward)
    return {"free": free, "frozen": in_turn(zeroing(model, cases, "loss", True), forward)}


def memory(name: str, *counts: str) -> dict[str, float]:
    """One run is one ablation of every head, in turn frozen and free, of every kind."""
    model = open_model(Path(name) if "/" in name else name)
    prompts = [random_prompt(model, 12) for _ in range(2)]
    cases = [case_of(prompt, Target(11, 5, "5")) for prompt in prompts]
    kinds = [kind_named(kind)() for kind in ("zero", "mean", "resample", "pattern")]
    sites, found = each_head(model.config)[:4], {}
    for done in range(max(map(int, counts)) + 1):
        if str(done) in counts:
            found[str(done)] = resident()
        kind, frozen = kinds[done % 4], done % 8 > 3
        steps = ablate(model, cases, sites, kind, metric="kl", frozen=frozen)
        for _ in range(1000 if done % 3 else 2):  # every third is stopped
            if next(steps, None) is None:
                break
        steps.close()
    return found


def main(what: str, *arguments: str) -> None:
    torch.set_num_threads(1)
    call = {"heads": heads, "bridge": bridge, "windows": windows, "memory": memory}[what]
    sys.stdout.write(json.dumps(call(*arguments)) + "\n")


main(*sys.argv[1:])
