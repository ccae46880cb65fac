"""What of a Hugging Face model can't be split into exact paths, said by name before its weights are
read.

Paths are exact where each head writes a fixed linear map of the stream, weighted by its pattern.
What else stands in a layer must be linear once recorded scales are held. Everything not known to be
so is refused: a model that is refused can be asked for, one that is shown wrong can't be mended.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from circuitview.core.names import CircuitviewError

_LARGEST = 2**63 - 1
_FEW = 40  # digits of it that are shown
_REMEDY = "choose a plain decoder model"
_DECODER_ENDS = ("ForCausalLM", "LMHeadModel")
# What layers may be called in a config that names the kind of each.
_ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
# Config fields whose presence, with a value, means attention that is no weighting of values that
# each position makes for itself.
_FIELDS = {
    "kv_lora_rank": "latent attention",
    "clip_qkv": "values that are cut off",
    "altup_num_inputs": "several streams at once",
    "hidden_size_per_layer_input": "inputs of its own in every layer",
    "num_kv_shared_layers": "keys and values shared between layers",
    "ssm_state_size": "recurrent layers",
    "state_size": "recurrent layers",
    "mamba_d_state": "recurrent layers",
    "lru_width": "recurrent layers",
    "rescale_every": "recurrent layers",
    "linear_num_value_heads": "linear attention",
}
_MODEL_TYPES = {
    "gpt_oss": "attention sinks",
    "rwkv": "recurrent layers",
    "bloom": "a norm behind its embedding",
}
# The parts that a bridge may have; the whole of what the sums know of.
_PARTS = {"embed", "pos_embed", "rotary_emb", "rotary_emb_local", "blocks", "ln_final", "unembed"}
_BLOCK_PARTS = {"ln1", "ln1_post", "ln2", "ln2_post", "attn", "mlp"}
_ATTENTION_PARTS = {"q", "k", "v", "o", "qkv", "q_norm", "k_norm", "rotary_emb"}
_WORDS = {
    "embed_ln": "a norm behind its embedding",
    "project_in": "a projection behind its embedding",
    "mixer": "recurrent layers",
    "mamba": "recurrent layers",
    "ssm": "recurrent layers",
    "linear_attn": "linear attention",
    "v_norm": "normed values",
    "gate": "gated attention",
    "encoder_blocks": "an encoder",
    "vision_encoder": "a picture encoder",
    "audio_tower": "a sound encoder",
}


def refuse(where: str, architecture: str, what: str) -> CircuitviewError:
    """The error for an architecture that has `what`."""
    return CircuitviewError(
        f"{where}: {architecture} has {what}, which can't be split into exact paths; {_REMEDY}"
    )


def check_fields(fields: Mapping[str, object], where: str) -> str:
    """The architecture's name, from a config.json whose model may be open to exact sums.

    Args:
        fields: of the config.json.
        where: its path, for messages.

    Raises:
        CircuitviewError: naming what it has that can't be summed.
    """
    _require_numbers(fields, where)
    named = fields.get("architectures") or []
    model_type = str(fields.get("model_type", ""))
    architecture = str(named[0]) if isinstance(named, list) and named else model_type
    if fields.get("is_encoder_decoder"):
        raise refuse(where, architecture, "an encoder")
    if named and not architecture.endswith(_DECODER_ENDS):
        raise CircuitviewError(
            f"{where}: {architecture} does not predict the next token from those before it; "
            f"{_REMEDY}, whose architecture ends in ForCausalLM or LMHeadModel"
        )
    quantised = fields.get("quantization_config") or fields.get("compression_config")
    if quantised:
        method = quantised.get("quant_method", "") if isinstance(quantised, dict) else ""
        raise CircuitviewError(
            f"{where}: the weights are quantised ({method or 'quantization_config'}), which can't "
            "be opened; take the unquantised checkpoint, or a GGUF file"
        )
    layers = fields.get("layer_types") or fields.get("layers_block_type") or []
    kinds = {str(kind) for kind in layers} if isinstance(layers, list) else set()
    if other := sorted(kinds - _ATTENTION_LAYERS):
        raise refuse(where, architecture, f"{other[0].replace('_', ' ')} layers")
    if model_type in _MODEL_TYPES:
        raise refuse(where, architecture, _MODEL_TYPES[model_type])
    for field, what in _FIELDS.items():
        if fields.get(field):
            raise refuse(where, architecture, what)
    if fields.get("do_layer_norm_before") is False:  # OPT's smallest but one
        raise refuse(where, architecture, "norms on the stream itself")
    return architecture


def _require_numbers(fields: Mapping[Any, object], where: str) -> None:
    """Refuse numbers that torch can't hold: where one is first used it raises what it likes."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            _require_numbers(value, where)
        if not isinstance(name, str) or not isinstance(value, int | float):
            continue
        huge = isinstance(value, int) and abs(value) > _LARGEST and "max_length" not in name
        if huge or (name.endswith(("eps", "epsilon")) and not 0 <= value < math.inf):
            raise CircuitviewError(
                f"{where}: {name} is {str(value)[:_FEW]}, which no model has; mend the file or "
                "copy it again"
            )


def check_parts(parts: Mapping[str, Any], where: str, architecture: str) -> None:
    """Pass an adapter's plan of a model, before weights are read, whose every part the sums know.

    Args:
        parts: the plan, transformer_lens' component mapping. Parts that may be absent are left to
            check_block.
        where: the checkpoint, for messages.
        architecture: its name.

    Raises:
        CircuitviewError: naming the part.
    """
    _known(_needed(parts), _PARTS, where, architecture)
    for name in ("embed", "blocks", "unembed"):
        if name not in parts:
            raise refuse(where, architecture, f"no {name}")
    block = parts["blocks"].submodules
    _known(_needed(block), _BLOCK_PARTS, where, architecture)
    attention = block.get("attn")
    if attention is None or "mlp" not in block:
        raise refuse(where, architecture, "layers without attention or without an MLP")
    _known(_needed(attention.submodules), _ATTENTION_PARTS, where, architecture)
    if "o" not in attention.submodules or not {"v", "qkv"} & set(attention.submodules):
        raise refuse(where, architecture, "attention without values of its own")


def check_block(block: Any, where: str, architecture: str) -> None:
    """Pass a block of an open bridge whose every part the sums know of.

    Raises:
        CircuitviewError: naming the part.
    """
    parts = block.submodules
    _known(parts, _BLOCK_PARTS, where, architecture)
    if "attn" not in parts or "mlp" not in parts:
        raise refuse(where, architecture, "layers without attention or without an MLP")
    _known(parts["attn"].submodules, _ATTENTION_PARTS, where, architecture)
    if getattr(parts["attn"].original_component, "sinks", None) is not None:
        raise refuse(where, architecture, "attention sinks")


def _known(names: Iterable[str], allowed: set[str], where: str, architecture: str) -> None:
    for name in names:
        if name not in allowed:
            raise refuse(where, architecture, _WORDS.get(name, f"a part called {name}"))


def _needed(parts: Mapping[str, Any]) -> list[str]:
    """The parts that are surely there."""
    return [name for name, part in parts.items() if not getattr(part, "optional", False)]
