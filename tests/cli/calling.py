"""A bundle with random weights to call the program on, and the program in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from circuitview.core.checkpoint.bundle import write_bundle
from circuitview.core.config import ModelConfig

BOS = "<|BOS|>"
# What is joined: " tea", " green" and "or" are one token; "tea" is three.
_MERGES = ["Ġ t", "Ġt e", "Ġte a", "Ġ g", "r e", "e n", "Ġg re", "Ġgre en", "o r"]
PROMPT = "I like green tea"


def byte_tokenizer() -> Tokenizer:
    """BOS, the 256 bytes, and the few tokens that _MERGES makes."""
    merges = [(left, right) for left, right in (pair.split() for pair in _MERGES)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [BOS, *alphabet, *(left + right for left, right in merges)]
    tokenizer = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(BOS, special=True)])
    return tokenizer


def random_bundle(folder: Path, n_layers: int, n_heads: int = 2) -> Path:
    """A LayerNorm model with biases, gains away from one, and the tokenizer above."""
    tokenizer = byte_tokenizer()
    V, D, dh, n_ctx = tokenizer.get_vocab_size(), 12, 4, 24
    config = ModelConfig(
        n_layers=n_layers,
        n_heads=n_heads,
        d_model=D,
        d_head=dh,
        n_ctx=n_ctx,
        d_vocab=V,
        normalization_type="LN",
        bos_token_id=0,
    )
    generator = torch.Generator().manual_seed(n_layers)

    def draw(*shape: int, middle: float = 0.0) -> torch.Tensor:
        return middle + 0.6 * torch.randn(*shape, generator=generator)

    arrays = {"embed.W_E": draw(V, D), "pos_embed.W_pos": draw(n_ctx, D)}
    for norm in [f"blocks.{layer}.ln1" for layer in range(n_layers)] + ["ln_final"]:
        arrays |= {f"{norm}.w": draw(D, middle=1.0), f"{norm}.b": draw(D)}
    for layer in range(n_layers):
        attention = f"blocks.{layer}.attn."
        for kind in "QKV":
            arrays[f"{attention}W_{kind}"] = draw(n_heads, D, dh)
            arrays[f"{attention}b_{kind}"] = draw(n_heads, dh)
        arrays |= {f"{attention}W_O": draw(n_heads, dh, D), f"{attention}b_O": draw(D)}
    arrays |= {"unembed.W_U": draw(D, V), "unembed.b_U": draw(V)}
    write_bundle(folder, config, arrays, tokenizer.to_str(), "# random\n")
    return folder


def process(
    *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The finished process `python -m circuitview …`."""
    return subprocess.run(
        [sys.executable, "-m", "circuitview", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=os.environ | environment,
        timeout=300,
        check=False,
    )
