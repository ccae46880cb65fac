"""What the arrays of a state dict say of the model by their names and shapes."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from circuitview.core.checkpoint.arrays import StoredArrays
from circuitview.core.names import CircuitviewError

_LAYER = re.compile(r"blocks\.(\d{1,9})\.")  # more is no number of a layer


def derive(arrays: StoredArrays) -> dict[str, object]:
    """The fields of ModelConfig that the arrays fix; those they leave open are not in it.

    Sizes always are, but n_ctx where there are no position embeddings and no buffers. The kind of
    norm is where norms have gains, rotary positions where their tables were saved.

    Raises:
        CircuitviewError: where the arrays are not in transformer_lens' property layout.
    """
    d_vocab, d_model = _shape(arrays, "embed.W_E", 2)
    n_layers = _count_layers(arrays)
    n_heads, _, d_head = _shape(arrays, "blocks.0.attn.W_Q", 3)
    n_kv_heads, _, _ = _shape(arrays, "blocks.0.attn.W_K", 3)
    found: dict[str, object] = {
        "n_layers": n_layers,
        "n_heads": n_heads,
        "d_model": d_model,
        "d_head": d_head,
        "d_vocab": d_vocab,
        "n_key_value_heads": None if n_kv_heads == n_heads else n_kv_heads,
        "attn_only": "blocks.0.mlp.W_in" not in arrays,
    }
    if "blocks.0.mlp.W_in" in arrays:
        found["d_mlp"] = _shape(arrays, "blocks.0.mlp.W_in", 2)[1]
        found["gated_mlp"] = "blocks.0.mlp.W_gate" in arrays
        if "blocks.0.mlp.ln.w" in arrays:
            found["act_fn"] = "solu_ln"
    if "blocks.0.ln1.w" in arrays:
        found["normalization_type"] = "LN" if "blocks.0.ln1.b" in arrays else "RMS"
    if "pos_embed.W_pos" in arrays:
        found["n_ctx"] = _shape(arrays, "pos_embed.W_pos", 2)[0]
    found.update(_from_buffers(arrays.file()))
    return found


def _count_layers(arrays: StoredArrays) -> int:
    layers = {int(match[1]) for name in arrays if (match := _LAYER.match(name))}
    missing = next(layer for layer in range(len(layers) + 1) if layer not in layers)
    if missing < len(layers):
        raise CircuitviewError(
            f"{arrays.path}: has no blocks.{missing}, but blocks.{max(layers)}; "
            "save the whole model"
        )
    return len(layers)


def _shape(arrays: StoredArrays, name: str, axes: int) -> tuple[int, ...]:
    if name not in arrays:
        other = min(arrays, default="nothing")
        raise CircuitviewError(
            f"{arrays.path}: has no {name} but {other}: not in transformer_lens' property layout; "
            "a Hugging Face model is opened by its folder, others are to be renamed"
        )
    shape = tuple(arrays[name].shape)
    if len(shape) != axes:
        raise CircuitviewError(
            f"{arrays.path}: {name} has shape {list(shape)}, transformer_lens' has {axes} axes; "
            "reshape it to that layout"
        )
    return shape


def _from_buffers(file: Mapping[str, Tensor]) -> dict[str, object]:
    """What the tables say that HookedTransformer saved beside its weights."""
    found: dict[str, object] = {}
    mask, sin = file.get("blocks.0.attn.mask"), file.get("blocks.0.attn.rotary_sin")
    if mask is not None and mask.ndim >= 2:
        found["n_ctx"] = mask.shape[-1]
    if sin is None or sin.ndim != 2 or sin.shape[0] < 2 or sin.shape[1] % 2:
        return found
    n_ctx, rotary_dim = sin.shape
    found.update(n_ctx=n_ctx, positional_embedding_type="rotary", rotary_dim=rotary_dim)
    if rotary_dim > 2:
        turn = sin[1].double()  # [rotary_dim], the sine of each number's angle at position 1
        found["rotary_adjacent_pairs"] = bool(torch.isclose(turn[0], turn[1]))
        # The slowest pair turns by base^-(1 − 2/rotary_dim): a small angle, known to six digits.
        slowest = float(torch.asin(turn[-1]))
        found["rotary_base"] = float(f"{slowest ** (-rotary_dim / (rotary_dim - 2)):.5g}")
    return found
