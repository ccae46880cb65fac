"""transformer_lens' property layout: which arrays a model of some config holds, and their shapes.

embed.W_E, blocks.0.attn.W_Q [head, d_model, d_head], … as HookedTransformer.state_dict() named
them. Biases may be missing, and the norms' gains where normalization_type says they are folded
(LNPre, RMSPre). In a gated MLP b_in is added behind the product, as there.
"""

from collections.abc import Iterable, Iterator

import torch

from circuitview.core.checkpoint.arrays import Stored, StoredArrays
from circuitview.core.config import ModelConfig
from circuitview.core.names import CircuitviewError

# Buffers that are saved beside the weights; the forward pass makes its own.
BUFFERS = (".attn.mask", ".attn.IGNORE", ".attn.rotary_sin", ".attn.rotary_cos")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_LONG = 120  # characters: what can be no name is not repeated whole
# Grouped heads carry an underscore there.
_GROUPED = {f".attn._{kind}": f".attn.{kind}" for kind in ("W_K", "W_V", "b_K", "b_V")}

Shapes = Iterator[tuple[str, tuple[int, ...], bool]]


def plain_names(names: Iterable[str]) -> dict[str, Stored]:
    """The arrays among `names`, under the layout's names."""
    found = {}
    for name in names:
        if name.endswith(BUFFERS):
            continue
        plain = name
        for grouped, kind in _GROUPED.items():
            plain = plain.replace(grouped, kind)
        found[plain] = Stored(name)
    return found


def layout(config: ModelConfig) -> Shapes:
    """Name, shape and whether it must be there, for each array that such a model may hold."""
    D, V = config.d_model, config.d_vocab
    yield "embed.W_E", (V, D), True
    if config.positional_embedding_type in ("standard", "shortformer"):
        yield "pos_embed.W_pos", (config.n_ctx, D), True
    for layer in range(config.n_layers):
        block = f"blocks.{layer}."
        yield from _attention(config, f"{block}attn.")
        yield from _norm(config, f"{block}ln1")
        if not config.attn_only:
            yield from _norm(config, f"{block}ln2")
            yield from _mlp(config, f"{block}mlp.")
    yield from _norm(config, "ln_final")
    yield "unembed.W_U", (D, V), True
    yield "unembed.b_U", (V,), False


def _attention(config: ModelConfig, name: str) -> Shapes:
    D, dh = config.d_model, config.d_head
    for kind, heads in (("Q", config.n_heads), ("K", config.n_kv_heads), ("V", config.n_kv_heads)):
        yield f"{name}W_{kind}", (heads, D, dh), True
        yield f"{name}b_{kind}", (heads, dh), False
    yield f"{name}W_O", (config.n_heads, dh, D), True
    yield f"{name}b_O", (D,), False


def _mlp(config: ModelConfig, name: str) -> Shapes:
    D, neurons = config.d_model, config.n_neurons
    yield f"{name}W_in", (D, neurons), True
    yield f"{name}b_in", (neurons,), False
    yield f"{name}W_out", (neurons, D), True
    yield f"{name}b_out", (D,), False
    if config.gated_mlp:
        yield f"{name}W_gate", (D, neurons), True
        yield f"{name}b_gate", (neurons,), False
    if config.act_fn == "solu_ln" and config.normalization_type == "LN":
        yield f"{name}ln.w", (neurons,), True
        yield f"{name}ln.b", (neurons,), False


def _norm(config: ModelConfig, name: str) -> Shapes:
    if config.normalization_type in ("LN", "RMS"):
        yield f"{name}.w", (config.d_model,), True
        if config.norm == "LN":
            yield f"{name}.b", (config.d_model,), False


def check_arrays(arrays: StoredArrays, config: ModelConfig, source: str = "config.json") -> str:
    """The precision in which the file holds its embedding, once all arrays are what they must be.

    Args:
        arrays: of a file; each is read once.
        config: what they must fit.
        source: where the config comes from, for messages.

    Raises:
        CircuitviewError: naming the array that is missing, too much, of another shape, no
            floating-point array, or not finite.
    """
    path = arrays.path
    if config.n_layers > len(arrays):  # else a wrong number fills the memory with names
        raise CircuitviewError(
            f"{path}: holds {len(arrays)} arrays, {source} asks for {config.n_layers} layers; "
            f"save the whole model or mend {source}"
        )
    shapes = {name: (shape, needed) for name, shape, needed in layout(config)}
    unknown = sorted(set(arrays) - set(shapes))
    if unknown:
        kind = "an attention-only model" if config.attn_only else "a model"
        raise CircuitviewError(
            f"{path}: holds {unknown[0][:_LONG]}, which {kind} of this config does not have; check "
            f"{source}"
        )
    for name in arrays:
        # Shape first: a wrong file should not be read into memory.
        shape, expected = tuple(arrays[name].shape), shapes[name][0]
        if shape != expected:
            raise CircuitviewError(
                f"{path}: {name} has shape {list(shape)}, {source} asks for {list(expected)}; "
                "one of the two belongs to another model"
            )
    for name, (_, needed) in shapes.items():
        if needed and name not in arrays:
            raise CircuitviewError(f"{path}: {name} is missing; save the whole model")
    _check_numbers(arrays)
    stored = str(arrays["embed.W_E"].dtype).removeprefix("torch.")
    arrays.release()
    return stored


def _check_numbers(arrays: StoredArrays) -> None:
    for name in arrays:
        array = arrays[name]
        where = f"{arrays.path}: {name}"
        if array.dtype not in DTYPES or array.layout != torch.strided:
            kind = array.dtype if array.layout == torch.strided else "sparse"
            raise CircuitviewError(f"{where} is {kind}; store floating-point weights")
        # Least and largest need no second array; both are NaN where one number is.
        if not all(bool(end.isfinite()) for end in array.aminmax()):
            raise CircuitviewError(
                f"{where} holds NaN or infinity; the training run went wrong, use an earlier "
                "checkpoint"
            )
