"""Hugging Face folders, GGUF files and models in the Hugging Face cache, through transformer_lens.

transformers reads the weights and runs the model; transformer_lens' bridge puts hooks into it.
Neither is asked for anything from the network, and code in a checkpoint is never run. Weights are
widened to float32. Only the modules of this package named bridge… may import either program, inside
functions.
"""

import os
import re
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Any

import torch

from circuitview.core.checkpoint.bridge_files import (
    CONFIG,
    read_json,
    stored_dtype,
    weight_files,
)
from circuitview.core.checkpoint.bridge_load import (
    boot,
    load,
    one_reader,
    packed_dtype,
    read_config,
)
from circuitview.core.checkpoint.bridge_model import BridgeModel
from circuitview.core.checkpoint.bridge_norms import Norm, read_norm
from circuitview.core.checkpoint.bridge_refusals import check_block, check_fields
from circuitview.core.checkpoint.bridge_tokenizer import read_tokenizer
from circuitview.core.checkpoint.bridge_weights import (
    matrix,
    parallel,
    read_block_norms,
    read_value_side,
)
from circuitview.core.config import ModelConfig
from circuitview.core.device import require_device
from circuitview.core.names import CircuitviewError

__all__ = ["cached_folder", "open_folder", "open_gguf", "recognises"]

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
# Logits; what a device may be off by, of logits of order ten.
_DEVICE = 1e-3


def recognises(folder: FilePath) -> bool:
    """Whether `folder` has a config.json in Hugging Face's style: it names a class or a family."""
    path = folder / CONFIG
    if not path.is_file():
        return False
    try:
        fields = read_json(path)
    except CircuitviewError:
        return False
    return "architectures" in fields or "model_type" in fields


def cached_folder(name: str) -> FilePath | None:
    """Where the user's Hugging Face cache has the model `name` ("gpt2", "org/name"), or None.

    HF_HOME and HF_HUB_CACHE are obeyed; nothing is downloaded.
    """
    if not _NAME.fullmatch(name):
        return None
    _stay_offline()
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, CONFIG)
    except HFValidationError:
        return None
    return FilePath(found).parent if isinstance(found, str) else None


def open_folder(folder: FilePath, name: str, device: str = "cpu") -> BridgeModel:
    """The model in a Hugging Face folder.

    Memory: at most twice the model's size in float32. What can't be split into exact paths is
    refused by name, before weights are read where the config says so.

    Args:
        folder: config.json, safetensors (or .bin without code in it), tokenizer.
        name: what to call it.
        device: "cpu", "cuda", or "mps", which must first agree with the CPU.

    Raises:
        CircuitviewError: naming the file, what is wrong with it and the remedy.
    """
    folder = folder.resolve()
    path = folder / CONFIG
    fields = read_json(path)
    check_fields(fields, str(path))
    listed, files = weight_files(folder)
    stored = stored_dtype(files, fields)
    return _open(folder, name, device, listed, files, stored)


def open_gguf(file: FilePath, name: str, device: str = "cpu") -> BridgeModel:
    """The model in a GGUF file, its weights unpacked to float32; its tokenizer is in the file.

    Needs the optional package gguf. Memory: several times the model's float32 size while it opens.

    Raises:
        CircuitviewError: as for folders; and where the package is missing.
    """
    if find_spec("gguf") is None:
        raise CircuitviewError(
            f"{file}: GGUF files need a package more: pip install 'circuitview[gguf]'"
        )
    file = file.absolute()  # a link in a cache leads to a file of no telling name
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as error:
        raise CircuitviewError(f"{file}: {error.strerror}; name a .gguf file") from None
    if magic != b"GGUF":
        raise CircuitviewError(f"{file}: not a GGUF file; name a .gguf file")
    _stay_offline()
    with one_reader():
        return _open(file.parent, name, device, file, (file,), packed_dtype(file), file.name)


def _open(
    folder: FilePath,
    name: str,
    device: str,
    listed: FilePath,
    files: tuple[FilePath, ...],
    stored: str,
    gguf_file: str | None = None,
) -> BridgeModel:
    require_device(device)
    _stay_offline()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hf_config, adapter = read_config(folder, files, gguf_file)
        where = str(folder / CONFIG) if gguf_file is None else str(listed)
        family_has_bos = bool(getattr(adapter.cfg, "default_prepend_bos", True))
        tokenizer = read_tokenizer(folder, hf_config, gguf_file, family_has_bos)
        hf_model = load(folder, hf_config, listed, gguf_file)
        bridge = boot(folder, hf_model)
        final = _final_norm(bridge, where)
        config = _sizes(bridge, final, tokenizer.bos_token_id, where)
        for block in bridge.blocks:
            check_block(block, where, str(config.original_architecture))
        norms = read_block_norms(bridge, config, where)
        scale = _logit_scale(hf_config)
        model = BridgeModel(
            name=name,
            folder=folder,
            config=config,
            tokenizer=tokenizer,
            device="cpu",
            stored=stored,
            bridge=bridge,
            value_side=read_value_side(bridge, config, norms, final, scale, where),
            norms=norms,
            final=final,
        )
    return model if device == "cpu" else _moved(model, device)


def _stay_offline() -> None:
    """Before either program is imported: they read these once."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def _final_norm(bridge: Any, where: str) -> Norm | None:
    component = bridge.adapter.component_mapping.get("ln_final")
    if component is None:
        return None
    d_model = matrix(bridge.blocks[0].attn.o).shape[1]
    return read_norm(bridge.ln_final, d_model, float(bridge.cfg.eps), f"{where}: ln_final")


def _sizes(bridge: Any, final: Norm | None, bos: int | None, where: str) -> ModelConfig:
    """Sizes from the weights themselves, kinds from transformer_lens' config."""
    cfg, attention = bridge.cfg, bridge.blocks[0].attn
    n_heads = int(cfg.n_heads)
    width, d_model = matrix(attention.o).shape
    d_head = width // n_heads
    kind = getattr(cfg, "positional_embedding_type", None)
    cap = getattr(cfg, "output_logits_soft_cap", None)
    config = ModelConfig(
        n_layers=len(bridge.blocks),
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_head,
        n_ctx=int(cfg.n_ctx),
        d_vocab=matrix(bridge.unembed).shape[1],
        normalization_type=None if final is None else "LN" if final.centres else "RMS",
        positional_embedding_type="standard"
        if "pos_embed" in bridge.adapter.component_mapping
        else "alibi"
        if kind == "alibi"
        else "rotary",
        eps=float(cfg.eps) if final is None else final.eps,
        attn_only=False,
        n_key_value_heads=matrix(attention.v).shape[1] // d_head,
        parallel_attn_mlp=parallel(bridge),
        output_logits_soft_cap=cap if cap is not None and cap > 0 else None,
        original_architecture=str(cfg.architecture),
        bos_token_id=bos,
    )
    config.check(where)
    return config


def _logit_scale(hf_config: Any) -> float:
    """What the model multiplies its logits by; a run checks it against the model's own."""
    divisor = getattr(hf_config, "logits_scaling", None)
    factor = getattr(hf_config, "logit_scale", None)
    return (1.0 if factor is None else float(factor)) / (1.0 if divisor is None else float(divisor))


def _moved(model: BridgeModel, device: str) -> BridgeModel:
    """The model on another device; its value side and what it records stay on the CPU.

    Raises:
        CircuitviewError: where the device's logits are not the CPU's (asked of mps only).
    """
    tokens = torch.arange(min(16, model.config.n_ctx, model.config.d_vocab))
    with torch.inference_mode():
        expected = model.logits(tokens)
        try:
            model.bridge.to(device)
        except RuntimeError as error:  # mostly a want of memory
            reason = " ".join(str(error).split())[:200]
            raise CircuitviewError(
                f"{model.name}: can't be moved to {device} ({reason}); choose the CPU"
            ) from None
        moved = replace(model, device=device)
        off = float((moved.logits(tokens).cpu() - expected).abs().max())
    if device == "mps" and not off <= _DEVICE:
        raise CircuitviewError(
            f"{model.name}: logits on {device} differ from the CPU's by {off:.3g}, more than "
            f"{_DEVICE:g}; choose the CPU"
        )
    return moved
