"""The runner agrees with transformer_lens' own native model in float64, MLPs and rotary positions
included: to rounding, for everything that both compute."""

from dataclasses import replace

import pytest
import torch

from circuitview.core.checkpoint import open_model
from tests.native_model import native_bridge
from tests.tiny_models import Tiny, build_bundle, record

_BASE = Tiny(n_heads=4, d_model=16, d_head=4, d_mlp=9, seed=3)
_SAME = [
    _BASE,
    replace(_BASE, normalization_type="LNPre", biases=False),
    replace(_BASE, positional_embedding_type="none"),
    replace(_BASE, act_fn="gelu"),
    replace(_BASE, act_fn="gelu", normalization_type="LNPre"),
    replace(_BASE, act_fn="relu", normalization_type=None, biases=False),
    replace(_BASE, act_fn="gelu_new", n_layers=3),
    replace(_BASE, act_fn="silu", normalization_type="RMS"),
    replace(_BASE, act_fn="solu", normalization_type="RMSPre"),
    replace(_BASE, act_fn="solu_ln"),
    # Its gated MLP has no biases.
    replace(_BASE, act_fn="silu", gated_mlp=True, normalization_type="RMS", biases=False),
    replace(_BASE, act_fn="gelu", gated_mlp=True, n_key_value_heads=2, biases=False),
    # It always turns adjacent numbers together.
    replace(_BASE, positional_embedding_type="rotary", rotary_adjacent_pairs=True),
    replace(
        _BASE,
        act_fn="relu",
        positional_embedding_type="rotary",
        rotary_adjacent_pairs=True,
        rotary_dim=2,
        rotary_base=100,
        n_key_value_heads=1,
    ),
]
# Relative to the largest logit. Its norms without gains, its RMS norms and its rotary tables are
# computed in float32 whatever the weights hold; LayerNorm and the rest are float64 throughout.
_EXACT, _IN_FLOAT32 = 1e-12, 2e-6


def _close(tiny: Tiny) -> float:
    exact = tiny.normalization_type in ("LN", None) and tiny.positional_embedding_type != "rotary"
    return _EXACT if exact else _IN_FLOAT32


@pytest.mark.parametrize("tiny", _SAME, ids=str)
def test_logits_agree_in_float64(tiny, tmp_path):
    folder = build_bundle(tmp_path / "bundle", tiny)
    bridge, model = native_bridge(folder, torch.float64), open_model(folder)
    generator = torch.Generator().manual_seed(5)
    for n in (1, 2, 10):
        tokens = torch.randint(0, tiny.d_vocab, (n,), generator=generator)
        with torch.no_grad():
            theirs = bridge(tokens.unsqueeze(0))[0]
        assert theirs.dtype == torch.float64
        ours = record(model, tokens.tolist()).logits
        assert (theirs - ours).abs().max() <= _close(tiny) * theirs.abs().max()


@pytest.mark.parametrize("tiny", [_SAME[3], _SAME[-1]], ids=str)
def test_each_layers_parts_agree_with_its_hooks(tiny, tmp_path):
    folder = build_bundle(tmp_path / "bundle", tiny)
    tokens = [1, 2, 3, 4, 5, 6]
    with torch.no_grad():
        _, cache = native_bridge(folder, torch.float64).run_with_cache(torch.tensor([tokens]))
    recording = record(open_model(folder), tokens)
    close = 1e-12 if tiny is _SAME[3] else 1e-6  # rotary tables in float32 there
    for layer in range(tiny.n_layers):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"][0]
        assert (pattern - recording.pattern[layer]).abs().max() <= close
        mlp_out = cache[f"blocks.{layer}.hook_mlp_out"][0]
        # Folded weights write centred vectors.
        mlp_out = mlp_out - mlp_out.mean(-1, keepdim=True)
        found = recording.mlp_out[layer]
        assert (mlp_out - found).abs().max() <= close * found.abs().max()
