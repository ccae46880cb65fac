"""Two independent forward passes agree: the runner and transformer_lens' own native model."""

import itertools

import pytest
import torch
from safetensors.torch import load_file, save_file

from circuitview.core.bundled import bundled_names
from circuitview.core.checkpoint import open_model
from tests.native_model import native_bridge
from tests.tiny_models import Tiny, build_bundle, record

# Absolute [logits]: two float32 runs of logits of order ten, summed in different orders.
CLOSE = 1e-4
# The random models' unembedding is made smaller by this, so that their logits are of that order;
# without a norm the stream, and so its rounding, grows most.
SMALLER, SMALLER_WITHOUT_NORM = 4.0, 16.0

# What transformer_lens' native model takes: standard positions, these norms, scores divided by
# sqrt(d_head) whatever use_attn_scale says.
_TINY = [
    Tiny(
        n_layers=2,
        n_heads=3,
        d_model=16,
        d_head=4,
        normalization_type=norm,
        biases=biases,
        seed=seed,
    )
    for seed, (norm, biases) in enumerate(
        itertools.product([None, "LN", "LNPre", "RMS", "RMSPre"], [True, False])
    )
]


def small_bundle(folder, tiny):
    """A random bundle whose logits stay below ten."""
    build_bundle(folder, tiny)
    file = folder / "model.safetensors"
    factor = SMALLER if tiny.normalization_type else SMALLER_WITHOUT_NORM
    arrays = {
        name: array / factor if name.startswith("unembed.") else array
        for name, array in load_file(file).items()
    }
    save_file(arrays, file)
    return folder


def assert_agrees(folder, model, most=None):
    generator = torch.Generator().manual_seed(3)
    bridge = native_bridge(folder)
    for n in (1, 4, min(10, model.config.n_ctx)):
        tokens = torch.randint(0, model.config.d_vocab, (n,), generator=generator)
        with torch.no_grad():
            theirs = bridge(tokens.unsqueeze(0))[0]
        ours = record(model, tokens.tolist(), "float32").logits
        largest = float(theirs.abs().max())
        assert largest > 0.1
        assert most is None or largest < most
        assert float((theirs - ours).abs().max()) <= CLOSE


@pytest.mark.parametrize("tiny", _TINY, ids=str)
def test_logits_agree_on_random_models(tiny, tmp_path):
    folder = small_bundle(tmp_path / "bundle", tiny)
    assert_agrees(folder, open_model(folder), most=10)


@pytest.mark.parametrize("name", bundled_names())
def test_logits_agree_on_bundled_models(name):
    model = open_model(name)
    assert model.config.positional_embedding_type in ("standard", "none")
    assert_agrees(model.folder, model)


def test_patterns_agree_on_a_random_model(tmp_path):
    folder = build_bundle(tmp_path / "bundle", _TINY[4])
    tokens = [1, 2, 3, 4, 5, 6]
    with torch.no_grad():
        _, cache = native_bridge(folder).run_with_cache(torch.tensor([tokens]))
    recording = record(open_model(folder), tokens, "float32")
    for layer in range(2):
        theirs = cache[f"blocks.{layer}.attn.hook_pattern"][0]
        # Weights between 0 and 1 in float32.
        assert (theirs - recording.pattern[layer]).abs().max() <= 1e-6
