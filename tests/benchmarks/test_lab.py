"""Ablations against plain forward passes of the same model, in turn in one run."""

import pytest

from tests.benchmarks.own_process import measured
from tests.hf_families import save_family, save_tokenizer

MB = 1e6
RUNS = ("free", "frozen")
WINDOWS = 100


@pytest.mark.slow
@pytest.mark.benchmark_ratio
def test_every_head_of_a_deep_model_costs_less_than_as_many_forward_passes(verdict):
    found = measured("lab_run.py", "heads")
    for how in RUNS:
        taken = found[how]
        assert taken["runs"] == 1 + 144
        what = f"12x12 heads, no MLPs, 64 tokens: each head zeroed, {how} / 144 forward passes"
        verdict(what, taken["spent"], 144 * taken["forward"], 0.65)


@pytest.mark.slow
@pytest.mark.benchmark_ratio
def test_every_head_behind_transformer_lens_costs_one_forward_pass(verdict, tmp_path):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    found = measured("lab_run.py", "bridge", tmp_path)
    for how in RUNS:
        taken = found[how]
        assert taken["runs"] == 1 + 144
        what = f"gpt2 shape, 64 tokens: each head zeroed, {how} / 144 forward passes"
        verdict(what, taken["spent"], 144 * taken["forward"], 1.1)


@pytest.mark.slow
@pytest.mark.benchmark_ratio
def test_every_head_over_a_text_costs_what_prefix_reuse_leaves(verdict):
    """8 heads from the start, 8 from the middle: 12 forward passes a window."""
    found = measured("lab_run.py", "windows", WINDOWS)
    for how in RUNS:
        taken = found[how]
        assert taken["runs"] == WINDOWS * (1 + 16)
        what = f"attn-only-2l, 100 windows of 256 tokens: each head zeroed, {how} / 1,200 passes"
        verdict(what, taken["spent"], 12 * WINDOWS * taken["forward"], 1.3)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["attn-only-2l", "llama"])
def test_memory_after_many_runs_is_that_after_some(verdict, model, tmp_path):
    name = model if model != "llama" else save_family("llama", tmp_path)
    found = measured("lab_run.py", "memory", name, 100, 1000)
    what = f"resident memory after 1,000 ablations of {model} / after 100"
    verdict(what, found["1000"] / MB, found["100"] / MB, 1.05, unit="MB")
