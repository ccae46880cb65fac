"""transformer_lens' own native model with a bundle's or a state dict's weights: the second forward
pass."""

import json

import torch
from safetensors.torch import load_file


def native_bridge(folder, dtype=torch.float32):
    """A transformer_lens model with a bundle's weights, nothing folded."""
    config = json.loads((folder / "config.json").read_text())
    return native_of(config, load_file(folder / "model.safetensors"), dtype)


def native_of(config, arrays, dtype=torch.float32):
    """A transformer_lens model of transformer_lens' config fields and property-layout arrays."""
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge.sources import boot_native
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    assert config.get("use_attn_scale", True)
    norm, positions = config["normalization_type"], config["positional_embedding_type"]
    # What its native model takes; "none" is standard with positions of zero.
    assert positions in ("standard", "none", "rotary")
    assert positions != "rotary" or config["rotary_adjacent_pairs"]
    settings = TransformerBridgeConfig(
        n_layers=config["n_layers"],
        n_heads=config["n_heads"],
        d_model=config["d_model"],
        d_head=config["d_head"],
        d_vocab=config["d_vocab"],
        n_ctx=config["n_ctx"],
        d_mlp=config.get("d_mlp"),
        eps=config["eps"],
        normalization_type=norm,
        positional_embedding_type="rotary" if positions == "rotary" else "standard",
        rotary_dim=config.get("rotary_dim"),
        rotary_base=config.get("rotary_base", 10000.0),
        n_key_value_heads=config.get("n_key_value_heads"),
        attn_only=config["attn_only"],
        gated_mlp=config.get("gated_mlp", False),
        act_fn=config.get("act_fn") or "relu",
        architecture="TransformerLensNative",
    )
    bridge = boot_native(settings, dtype=dtype)
    given = {name: array.to(dtype) for name, array in arrays.items()}
    zeros = {name: array.to(dtype) for name, array in _zeros(config).items()}
    bridge.load_state_dict(convert_tl_checkpoint(zeros | given, settings), strict=True)
    return bridge


def _zeros(config):
    """The native model has nearly all biases, and positions: what a file lacks is zero there."""
    L, H, D = config["n_layers"], config["n_heads"], config["d_model"]
    kv, dh = config.get("n_key_value_heads") or H, config["d_head"]
    layer_norm = config["normalization_type"] == "LN"
    shapes = {"unembed.b_U": (config["d_vocab"],)}
    if config["positional_embedding_type"] != "rotary":
        shapes["pos_embed.W_pos"] = (config["n_ctx"], D)
    norms = ["ln_final"] if layer_norm else []
    for layer in range(L):
        block = f"blocks.{layer}"
        for kind, heads in (("Q", H), ("K", kv), ("V", kv)):
            shapes[f"{block}.attn.b_{kind}"] = (heads, dh)
        shapes[f"{block}.attn.b_O"] = (D,)
        if layer_norm:
            norms.append(f"{block}.ln1")
        if config["attn_only"]:
            continue
        if not config.get("gated_mlp", False):
            shapes[f"{block}.mlp.b_in"] = (config["d_mlp"],)
            shapes[f"{block}.mlp.b_out"] = (D,)
        if layer_norm:
            norms.append(f"{block}.ln2")
    shapes |= {f"{norm}.b": (D,) for norm in norms}
    return {name: torch.zeros(shape) for name, shape in shapes.items()}
