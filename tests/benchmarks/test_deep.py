"""A model of gpt2's shape with random weights: its lists against one forward pass."""

from pathlib import Path

import pytest

from tests.benchmarks.own_process import measured

MB = 1e6


@pytest.fixture(scope="module")
def gpt2_shape(tmp_path_factory) -> Path:
    """12 layers x 12 heads, d_model 768, MLPs of 3,072, vocabulary 50,257."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from tests.hf_families import save_tokenizer

    folder = tmp_path_factory.mktemp("gpt2-shape")
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.mark.slow
def test_lists_of_the_gpt2_shape_cost_a_few_forward_passes(gpt2_shape, verdict):
    found = measured("deep_run.py", gpt2_shape, 64)
    forward = found["forward"]
    what = "gpt2 shape, 64 tokens: {} / a forward pass"
    verdict(what.format("9,649 chains, every source"), found["two heads"], forward, 0.6)
    verdict(what.format("389,809 chains, every source"), found["three heads"], forward, 10)
    passes = found["attention"]
    orders = "gpt2 shape, 64 tokens: sums by order / all attention of a forward pass"
    verdict(orders, found["orders"], passes, 1.2 * (found["n_layers"] + 1))
    verdict(
        "gpt2 shape, 64 tokens: peak memory above the model",
        found["memory above the model"] / MB,
        None,
        300,
        unit="MB",
    )


@pytest.mark.slow
def test_the_list_at_512_tokens_costs_at_most_two_forward_passes(gpt2_shape, verdict):
    found = measured("deep_run.py", gpt2_shape, 512)
    what = "gpt2 shape, 512 tokens: 9,649 chains, every source / a forward pass"
    verdict(what, found["two heads"], found["forward"], 2)


@pytest.mark.slow
def test_opening_needs_at_most_twice_the_size_of_the_model(gpt2_shape, verdict):
    size = sum(file.stat().st_size for file in gpt2_shape.glob("*.safetensors"))
    found = measured("opening_run.py", gpt2_shape)
    what = "gpt2 shape: peak memory of opening above the imports / its float32 size"
    verdict(what, found["memory"] / MB, size / MB, 2, unit="MB")
