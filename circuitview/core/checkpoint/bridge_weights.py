"""The value side of a transformer_lens bridge: weights read where they stand.

Large matrices (unembedding, MLPs) are views on the model's own; W_V and W_O, with norms and
multipliers folded in, are copies, made layer by layer in float64 and rounded once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.checkpoint.bridge_norms import Norm, read_norm
from circuitview.core.config import ModelConfig
from circuitview.core.mlp import MLP
from circuitview.core.names import CircuitviewError
from circuitview.core.value_side import ValueSide

# Relative: an MLP in float32, summed in another order.
_SAME = 1e-4
_ACTS = ("act_fn", "act", "activation_fn", "activation", "activation_func")


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockNorms:
    """The norms of one block: before attention and before the MLP, and behind each."""

    attn: Norm | None
    mlp: Norm | None
    attn_post: Norm | None
    mlp_post: Norm | None


def parallel(bridge: Any) -> bool:
    """Whether attention and MLP both read the stream before attention."""
    from transformer_lens.model_bridge.generalized_components import ParallelBlockBridge

    return isinstance(bridge.blocks[0], ParallelBlockBridge)


def read_block_norms(bridge: Any, config: ModelConfig, where: str) -> tuple[BlockNorms, ...]:
    """The norms of every block.

    Raises:
        CircuitviewError: where one is of no known kind.
    """
    found = []
    for layer, block in enumerate(bridge.blocks):
        kinds = {
            name: read_norm(
                block.submodules.get(name),
                config.d_model,
                config.eps,
                f"{where}: {name} of layer {layer}",
            )
            for name in ("ln1", "ln2", "ln1_post", "ln2_post")
        }
        # Parallel blocks mostly share one norm.
        shared = config.parallel_attn_mlp and "ln2" not in block.submodules
        found.append(
            BlockNorms(
                attn=kinds["ln1"],
                mlp=kinds["ln1"] if shared else kinds["ln2"],
                attn_post=kinds["ln1_post"],
                mlp_post=kinds["ln2_post"],
            )
        )
    return tuple(found)


def read_value_side(
    bridge: Any,
    config: ModelConfig,
    norms: tuple[BlockNorms, ...],
    final: Norm | None,
    logit_scale: float,
    where: str,
) -> ValueSide:
    """The value side.

    Args:
        bridge: a TransformerBridge on the CPU; its weights are left as they are.
        config: sizes and kinds.
        norms, final: its norms.
        logit_scale: what the model multiplies its logits by.
        where: the checkpoint, for messages.

    Raises:
        CircuitviewError: where a layer's shapes are not those of the first layer.
    """
    L, H, D = config.n_layers, config.n_heads, config.d_model
    K, dh = config.n_kv_heads, config.d_head
    W_V, b_V = torch.empty(L, K, D, dh), torch.zeros(L, K, dh)
    W_O, b_O = torch.empty(L, H, dh, D), torch.zeros(L, D)
    b_post = torch.zeros(L, D)
    for layer, block in enumerate(bridge.blocks):
        values, out = block.attn.v, block.attn.o
        if matrix(values).shape != (D, K * dh) or matrix(out).shape != (H * dh, D):
            raise CircuitviewError(
                f"{where}: layer {layer} has other sizes than layer 0, which can't be opened; "
                "choose another model"
            )
        read, shift = _reading(matrix(values), bias(values), norms[layer].attn)
        W_V[layer] = read.view(D, K, dh).transpose(0, 1)  # [kv_head, d_model, d_head]
        b_V[layer] = shift.view(K, dh)
        written, constant = matrix(out).double(), bias(out)
        constant = written.new_zeros(D) if constant is None else constant.double()
        post, multiplier = norms[layer].attn_post, residual_multiplier(block)
        if post is not None:
            written, constant = (_behind(array, post) for array in (written, constant))
            if post.shift is not None:
                b_post[layer] = post.shift * multiplier
        W_O[layer] = (written * multiplier).view(H, dh, D)
        b_O[layer] = constant * multiplier
    unembed = bridge.unembed
    return ValueSide(
        config=config,
        W_V=W_V,
        W_O=W_O,
        b_V=b_V,
        b_O=b_O,
        W_U=matrix(unembed),
        b_U=bias(unembed),
        b_post=b_post if bool(b_post.any()) else None,
        final_gain=_single(None if final is None else final.gain),
        final_shift=_single(None if final is None else final.shift),
        centres=final is not None and final.centres,
        logit_scale=logit_scale,
        mlps=_read_mlps(bridge, norms, config.d_model),
    )


def matrix(component: Any) -> Float[Tensor, "d_in d_out"]:
    """The weights of a linear bridge component as a view that applies on the right."""
    module = component.original_component
    weight: Tensor = module.weight.detach()
    # GPT-2's own kind of linear layer stores them this way round already.
    return weight if type(module).__name__ == "Conv1D" else weight.mT


def bias(component: Any) -> Float[Tensor, " d_out"] | None:
    value = getattr(component.original_component, "bias", None)
    return value.detach() if isinstance(value, Tensor) else None


def residual_multiplier(block: Any) -> float:
    """What a block multiplies its attention's and MLP's outputs by before it adds them."""
    return float(getattr(block, "residual_contribution_scale", 1.0))


def _reading(
    weight: Float[Tensor, "d_model d_out"], shift: Tensor | None, norm: Norm | None
) -> tuple[Float[Tensor, "d_model d_out"], Float[Tensor, " d_out"]]:
    """What reads the stream behind `norm`, with all of the norm but its division; float64."""
    weight = weight.double()
    constant = weight.new_zeros(weight.shape[1]) if shift is None else shift.double()
    if norm is None:
        return weight, constant
    if norm.shift is not None:
        constant = constant + norm.shift @ weight  # [d_out]
    if norm.gain is not None:
        weight = norm.gain.unsqueeze(1) * weight
    return (weight - weight.mean(0) if norm.centres else weight), constant


def _behind(written: Float[Tensor, "*rows d_model"], norm: Norm) -> Float[Tensor, "*rows d_model"]:
    """What a norm behind attention makes of what is written, but for its division and shift."""
    if norm.centres:
        written = written - written.mean(-1, keepdim=True)
    return written if norm.gain is None else written * norm.gain


def _single(vector: Tensor | None) -> Tensor | None:
    return None if vector is None else vector.float()


def _read_mlps(bridge: Any, norms: tuple[BlockNorms, ...], d_model: int) -> tuple[MLP, ...]:
    """One MLP for each layer; none at all where one of them can only be a source."""
    mlps = []
    for block, around in zip(bridge.blocks, norms, strict=True):
        mlp = _read_mlp(block, around)
        if mlp is None or not _agrees(mlp, block, around, d_model):
            return ()
        mlps.append(mlp)
    return tuple(mlps)


def _read_mlp(block: Any, around: BlockNorms) -> MLP | None:
    mlp, post = block.mlp, around.mlp_post
    parts = mlp.submodules
    act = activation(block)
    into, out, gate = (parts.get(name) for name in ("in", "out", "gate"))
    known = into is not None and out is not None and set(parts) <= {"in", "out", "gate", "gate_up"}
    # A norm behind it that centres has no place in MLP; none is known to be in use.
    if not known or act is None or (post is not None and post.centres):
        return None
    if any(not hasattr(part.original_component, "weight") for part in (into, out, gate) if part):
        return None
    norm, multiplier = around.mlp, residual_multiplier(block)
    gain = None if post is None else post.gain
    W_in, W_out = matrix(into), matrix(out)
    out_gain = None
    if gain is not None or multiplier != 1:
        out_gain = (W_out.new_ones(W_out.shape[1]) if gain is None else gain) * multiplier
    b_post = None if post is None or post.shift is None else post.shift * multiplier
    b_out = bias(out)
    return MLP(
        W_in=W_in,
        W_out=W_out,
        b_in=_shifted(W_in, bias(into), norm),
        b_out=W_out.new_zeros(W_out.shape[1]) if b_out is None else b_out,
        act=act,
        W_gate=None if gate is None else matrix(gate),
        b_gate=None if gate is None else _shifted(matrix(gate), bias(gate), norm),
        gain=_single(None if norm is None else norm.gain),
        centred=norm is not None and norm.centres,
        out_gain=_single(out_gain),
        b_post=_single(b_post),
    )


def _shifted(weight: Tensor, constant: Tensor | None, norm: Norm | None) -> Float[Tensor, " d_mlp"]:
    """The bias at the neurons, that of the norm before them counted in."""
    total = weight.new_zeros(weight.shape[1]) if constant is None else constant
    if norm is not None and norm.shift is not None:
        total = total + norm.shift.float() @ weight  # [d_mlp]
    return total


def activation(block: Any) -> Callable[[Tensor], Tensor] | None:
    """The MLP's nonlinearity, from the model's own modules; None where it has weights of its own
    (PReLU), which MLP has no place for."""
    for module in (block.mlp.original_component, block.original_component):
        for name in _ACTS:
            found = getattr(module, name, None)
            if callable(found):
                if isinstance(found, torch.nn.Module) and any(True for _ in found.parameters()):
                    return None
                act: Callable[[Tensor], Tensor] = found
                return act
    return None


def _agrees(mlp: MLP, block: Any, around: BlockNorms, d_model: int) -> bool:
    """Whether `mlp` does what the model's own module does on two random vectors.

    Where the model has no module of its own for it (OPT), its parts are taken at their word.
    """
    module = block.mlp.original_component
    if block.mlp.name is None or module is None:
        return True
    stream = torch.randn(2, d_model, generator=torch.Generator().manual_seed(0))
    norm = around.mlp
    with torch.inference_mode():
        scale = torch.ones(2) if norm is None else norm.scale(stream).float()
        x = stream if norm is None else norm(stream).float()
        try:
            expected = module(x.unsqueeze(0))
        except Exception:  # noqa: BLE001  (MPT's asks for the stream as well)
            return False
        expected = (expected[0] if isinstance(expected, tuple) else expected)[0]
        read = mlp.normed(stream, scale)  # [2, d_model]
        neurons = read @ mlp.W_in + mlp.b_in  # [2, d_mlp]
        ours = (mlp.ratio(stream, scale) * neurons) @ mlp.W_out + mlp.b_out  # [2, d_model]
    return bool((ours - expected).abs().max() <= _SAME * expected.abs().max())
