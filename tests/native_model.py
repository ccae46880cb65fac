"""transformer_lens' own native model with a bundle's weights: the second forward pass."""

import json

import torch
from safetensors.torch import load_file


def native_bridge(folder):
    """A transformer_lens model with a bundle's weights, nothing folded."""
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge.sources import boot_native
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    config = json.loads((folder / "config.json").read_text())
    L, H, D = config["n_layers"], config["n_heads"], config["d_model"]
    dh, V = config["d_head"], config["d_vocab"]
    assert config["use_attn_scale"]
    arrays = {
        name: array.float() for name, array in load_file(folder / "model.safetensors").items()
    }
    # The native model has all biases, and positions: what a bundle lacks is zero there.
    zeros = {"unembed.b_U": (V,), "pos_embed.W_pos": (config["n_ctx"], D)}
    for layer in range(L):
        zeros |= {f"blocks.{layer}.attn.b_{kind}": (H, dh) for kind in "QKV"}
        zeros[f"blocks.{layer}.attn.b_O"] = (D,)
        if config["normalization_type"] == "LN":
            zeros[f"blocks.{layer}.ln1.b"] = (D,)
    if config["normalization_type"] == "LN":
        zeros["ln_final.b"] = (D,)
    arrays = {name: torch.zeros(shape) for name, shape in zeros.items()} | arrays
    settings = TransformerBridgeConfig(
        n_layers=L,
        n_heads=H,
        d_model=D,
        d_head=dh,
        d_vocab=V,
        n_ctx=config["n_ctx"],
        eps=config["eps"],
        normalization_type=config["normalization_type"],
        positional_embedding_type="standard",
        attn_only=True,
        act_fn="relu",
        architecture="TransformerLensNative",
    )
    bridge = boot_native(settings)
    bridge.load_state_dict(convert_tl_checkpoint(arrays, settings), strict=True)
    return bridge
