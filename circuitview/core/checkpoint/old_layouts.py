"""State dicts from before the property layout settled, brought into it array by array.

Two are known. The SoLU models of 2022 call their norms norm1, norm2 and norm, and all but the
deepest keep matrices the other way round. minGPT keeps all heads of a layer in one matrix, the
other way round, and names its parts otherwise. Both are recognised by their names; the facts are
those of transformer_lens' own reader of such repositories.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

from circuitview.core.checkpoint.arrays import Stored
from circuitview.core.checkpoint.layout import plain_names

# Up to this depth a square W_pos, or square matrices, of a SoLU model lie the other way round.
_TURNED_POSITIONS, _TURNED_MATRICES = 8, 6
_BLOCK = re.compile(r"blocks\.(\d{1,9})\.(.+)")
_MINGPT = {
    "tok_emb.weight": "embed.W_E",
    "pos_emb": "pos_embed.W_pos",
    "ln_f.weight": "ln_final.w",
    "ln_f.bias": "ln_final.b",
    "head.weight": "unembed.W_U",
}
_MINGPT_BLOCK = {
    **{
        f"attn.{name}.weight": f"attn.W_{kind}"
        for name, kind in zip(("query", "key", "value", "proj"), "QKVO", strict=True)
    },
    **{
        f"attn.{name}.bias": f"attn.b_{kind}"
        for name, kind in zip(("query", "key", "value", "proj"), "QKVO", strict=True)
    },
    **{
        f"{norm}.{name}": f"{norm}.{kind}"
        for norm in ("ln1", "ln2")
        for name, kind in (("weight", "w"), ("bias", "b"))
    },
    "mlp.0.weight": "mlp.W_in",
    "mlp.0.bias": "mlp.b_in",
    "mlp.2.weight": "mlp.W_out",
    "mlp.2.bias": "mlp.b_out",
}


def is_mingpt(names: Mapping[str, Tensor]) -> bool:
    return "tok_emb.weight" in names


def translate(arrays: Mapping[str, Tensor], n_heads: int | None = None) -> dict[str, Stored]:
    """Where each array of the property layout is found among `arrays`.

    Args:
        arrays: of the file.
        n_heads: how many heads a layer of a minGPT model has; its arrays don't say.
    """
    if is_mingpt(arrays) and n_heads is not None:
        return _of_mingpt(arrays, n_heads)
    if any(".norm1." in name or name.startswith("norm.") for name in arrays):
        return _of_solu(arrays)
    return plain_names(arrays)


def _of_solu(arrays: Mapping[str, Tensor]) -> dict[str, Stored]:
    n_layers = 1 + max((int(m[1]) for name in arrays if (m := _BLOCK.match(name))), default=0)
    found = {}
    for plain, stored in plain_names(arrays).items():
        name = plain.replace("norm", "ln")
        name = f"ln_final.{name.removeprefix('ln.')}" if name.startswith("ln.") else name
        turned = False
        if name == "pos_embed.W_pos":
            # [d_model, n_ctx] there; d_model is the length of any norm or output bias.
            turned = _turned(arrays[stored.name], _width(arrays), n_layers <= _TURNED_POSITIONS)
        elif ".W_" in name:
            W_E = arrays.get("embed.W_E")
            by_depth = n_layers <= _TURNED_MATRICES
            turned = by_depth if W_E is None else _turned(W_E, _width(arrays), by_depth)
        found[name] = Stored(stored.name, _turn if turned else None)
    return found


def _width(arrays: Mapping[str, Tensor]) -> int | None:
    for name, array in arrays.items():
        if name.endswith((".attn.b_O", "norm1.w")):
            return array.shape[-1]
    return None


def _turned(array: Tensor, d_model: int | None, by_depth: bool) -> bool:
    """Whether an embedding [.., d_model] lies the other way round; by the model's depth where its
    shape does not tell."""
    if d_model is None or array.ndim != 2 or array.shape[0] == array.shape[1]:
        return by_depth
    return array.shape[0] == d_model


def _turn(array: Tensor) -> Tensor:
    return array.transpose(-2, -1)


def _of_mingpt(arrays: Mapping[str, Tensor], n_heads: int) -> dict[str, Stored]:
    found = {}
    for name in arrays:
        if name.endswith(".attn.mask"):
            continue
        block = _BLOCK.match(name)
        if block is None:
            plain = _MINGPT.get(name, name)
        else:
            plain = f"blocks.{block[1]}.{_MINGPT_BLOCK.get(block[2], block[2])}"
        found[plain] = Stored(name, _mingpt_change(plain, n_heads))
    return found


def _mingpt_change(name: str, n_heads: int) -> Callable[[Tensor], Tensor] | None:
    kind = name.rpartition(".")[2]
    match kind:
        case "W_Q" | "W_K" | "W_V":
            return partial(_split_reads, n_heads=n_heads)
        case "W_O":
            return partial(_split_writes, n_heads=n_heads)
        case "b_Q" | "b_K" | "b_V":
            return partial(_split_bias, n_heads=n_heads)
        case "W_in" | "W_out" | "W_U":
            return _turn
        case "W_pos":
            return _without_batch
    return None


def _split_reads(array: Tensor, n_heads: int) -> Tensor:
    """[head x d_head, d_model] as [head, d_model, d_head]."""
    return array.reshape(n_heads, -1, array.shape[1]).transpose(1, 2)


def _split_writes(array: Tensor, n_heads: int) -> Tensor:
    """[d_model, head x d_head] as [head, d_head, d_model]."""
    return array.reshape(array.shape[0], n_heads, -1).permute(1, 2, 0)


def _split_bias(array: Tensor, n_heads: int) -> Tensor:
    return array.reshape(n_heads, -1)


def _without_batch(array: Tensor) -> Tensor:
    return array.squeeze(0)
