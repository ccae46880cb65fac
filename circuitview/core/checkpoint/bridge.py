"""Hugging Face folders, GGUF files and models in the Hugging Face cache, through transformer_lens.

transformers reads the weights and runs the model; transformer_lens' bridge puts hooks into it.
Neither is asked for anything from the network (what that sets in the whole process is said at
_stay_offline), and code in a checkpoint is never run. Weights are widened to float32. Only the
modules of this package named bridge… may import either program, inside functions.
"""

import math
import os
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Any

import torch

from circuitview.core.checkpoint.bridge_config import read_sizes
from circuitview.core.checkpoint.bridge_load import (
    boot,
    load,
    no_model,
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
    read_block_norms,
    read_value_side,
)
from circuitview.core.device import require_device
from circuitview.core.formats import CONFIG
from circuitview.core.names import CircuitviewError
from circuitview.core.tokenizer import Tokenizer
from circuitview.core.weight_files import hugging_face_weights, read_json, stored_dtype

__all__ = ["open_folder", "open_gguf"]

# Logits; what a device may be off by, of logits of order ten.
_DEVICE = 1e-3


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
    listed, files = hugging_face_weights(folder)
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
        hf_model = load(folder, hf_config, listed, files, gguf_file)
        try:
            model = _hooked(folder, name, stored, hf_config, tokenizer, hf_model, where)
        except (CircuitviewError, OSError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  (numbers in a config that no code foresees)
            raise CircuitviewError(no_model(where, error)) from None
    return model if device == "cpu" else _moved(model, device)


def _hooked(
    folder: FilePath,
    name: str,
    stored: str,
    hf_config: Any,
    tokenizer: Tokenizer,
    hf_model: Any,
    where: str,
) -> BridgeModel:
    """The model with hooks and its value side, on the CPU."""
    bridge = boot(folder, hf_model)
    final = _final_norm(bridge, where)
    config = read_sizes(bridge, hf_config, final, tokenizer.bos_token_id, where)
    for block in bridge.blocks:
        check_block(block, where, str(config.original_architecture))
    norms = read_block_norms(bridge, config, where)
    scale = _logit_scale(hf_config, where)
    return BridgeModel(
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


def _stay_offline() -> None:
    """Keep both programs off the network, in the whole process and for good: HF_HUB_OFFLINE and
    TRANSFORMERS_OFFLINE are set in its environment, progress bars and telemetry are turned off
    unless it says otherwise.

    They are read once, when huggingface_hub is imported. Where a notebook has imported it before,
    they come too late; so each call here is told local_files_only as well, or given what it would
    fetch.
    """
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def _final_norm(bridge: Any, where: str) -> Norm | None:
    component = bridge.adapter.component_mapping.get("ln_final")
    if component is None:
        return None
    d_model = matrix(bridge.blocks[0].attn.o).shape[1]
    return read_norm(bridge.ln_final, d_model, float(bridge.cfg.eps), f"{where}: ln_final")


def _logit_scale(hf_config: Any, where: str) -> float:
    """What the model multiplies its logits by; a run checks it against the model's own.

    Raises:
        CircuitviewError: where that is no number, or 0.
    """
    scale = 1.0
    for name, power in (("logit_scale", 1), ("logits_scaling", -1)):
        value = getattr(hf_config, name, None)
        if value is None:
            continue
        if not isinstance(value, int | float) or value == 0 or not math.isfinite(value):
            raise CircuitviewError(
                f"{where}: {name} is {str(value)[:20]}; need a number other than 0"
            )
        scale *= float(value) ** power
    return scale


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
