"""What an open file becomes: a model that folds its weights when a precision is first asked for."""

from functools import partial
from pathlib import Path as FilePath

import torch

from circuitview.core.checkpoint.arrays import StoredArrays
from circuitview.core.config import ModelConfig
from circuitview.core.model import NativeModel
from circuitview.core.tokenizer import Tokenizer
from circuitview.core.weights import Weights, fold


def native_model(
    name: str,
    folder: FilePath,
    config: ModelConfig,
    tokenizer: Tokenizer,
    arrays: StoredArrays,
    stored: str,
) -> NativeModel:
    """The model of these parts; `stored` names the precision of the file."""
    return NativeModel(
        name=name,
        folder=folder,
        config=config,
        tokenizer=tokenizer,
        stored=stored,
        folded=partial(_fold, config, arrays),
    )


def _fold(config: ModelConfig, arrays: StoredArrays, dtype: torch.dtype) -> Weights:
    try:
        return fold(config, arrays, dtype)
    finally:
        arrays.release()
