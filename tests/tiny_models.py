"""Small bundles on disk with random weights: every norm, kind of position, depth, with and without
biases. Gains differ from 1 and norm biases from 0, or folding them wrongly would pass."""

import itertools
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from circuitview.core.config import read_config
from circuitview.core.model import Model
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.tokenizer import Tokenizer as CoreTokenizer
from circuitview.core.weights import fold

BOS = "<|BOS|>"


@dataclass(frozen=True)
class Tiny:
    """What a random bundle is made of; the defaults are the smallest that is not degenerate."""

    n_layers: int = 2
    n_heads: int = 2
    d_model: int = 12
    d_head: int = 3
    n_ctx: int = 10
    d_vocab: int = 9
    normalization_type: str | None = "LN"
    positional_embedding_type: str = "standard"
    biases: bool = True
    seed: int = 0
    use_attn_scale: bool = True

    def __str__(self) -> str:
        norm = self.normalization_type or "no norm"
        biases = "biases" if self.biases else "no biases"
        return f"{self.n_layers}x{self.n_heads} {norm}, {self.positional_embedding_type}, {biases}"

    @property
    def config(self) -> dict[str, object]:
        fields = asdict(self)
        for name in ("biases", "seed"):
            del fields[name]
        return {**fields, "eps": 1e-5, "bos_token_id": 0, "attn_only": True}

    @property
    def has_gains(self) -> bool:
        return self.normalization_type in ("LN", "RMS")


# Every norm with and without biases, and shortformer and position-free models.
KINDS = tuple(
    Tiny(normalization_type=norm, positional_embedding_type=positions, biases=biases)
    for (norm, positions), biases in itertools.product(
        [
            (None, "standard"),
            ("LN", "standard"),
            ("RMS", "standard"),
            ("LN", "shortformer"),
            ("LNPre", "standard"),
            ("RMSPre", "none"),
        ],
        [True, False],
    )
)


def random_arrays(tiny: Tiny, dtype: type = np.float64) -> dict[str, np.ndarray]:
    """Weights of order one over the root of what they read; scores large enough to be uneven."""
    rng = np.random.default_rng(tiny.seed)
    D, H, dh, V = tiny.d_model, tiny.n_heads, tiny.d_head, tiny.d_vocab

    def draw(*shape: int, spread: float = 1.0, middle: float = 0.0) -> np.ndarray:
        return (middle + spread * rng.standard_normal(shape)).astype(dtype)

    # A mean that is not zero, so that a forgotten centring shows.
    arrays = {"embed.W_E": draw(V, D, middle=0.3)}
    if tiny.positional_embedding_type in ("standard", "shortformer"):
        arrays["pos_embed.W_pos"] = draw(tiny.n_ctx, D, spread=0.7, middle=-0.2)
    for layer in range(tiny.n_layers):
        block = f"blocks.{layer}"
        for kind in "QKV":
            arrays[f"{block}.attn.W_{kind}"] = draw(H, D, dh, spread=1.5 * D**-0.5)
        arrays[f"{block}.attn.W_O"] = draw(H, dh, D, spread=dh**-0.5, middle=0.1)
        if tiny.biases:
            for kind in "QKV":
                arrays[f"{block}.attn.b_{kind}"] = draw(H, dh, spread=0.4)
            arrays[f"{block}.attn.b_O"] = draw(D, spread=0.4, middle=0.1)
        if tiny.has_gains:
            arrays.update(_norm(f"{block}.ln1", tiny, draw))
    if tiny.has_gains:
        arrays.update(_norm("ln_final", tiny, draw))
    arrays["unembed.W_U"] = draw(D, V)
    if tiny.biases:
        arrays["unembed.b_U"] = draw(V)
    return arrays


def _norm(name, tiny, draw):
    arrays = {f"{name}.w": draw(tiny.d_model, spread=0.3, middle=1.2)}
    if tiny.normalization_type == "LN" and tiny.biases:
        arrays[f"{name}.b"] = draw(tiny.d_model, spread=0.4)
    return arrays


def word_tokenizer(d_vocab: int) -> Tokenizer:
    """BOS, then the words w1, w2, …"""
    vocabulary = {BOS: 0} | {f"w{token}": token for token in range(1, d_vocab)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(BOS, special=True)])
    return tokenizer


def byte_tokenizer(merges: list[tuple[str, str]] | None = None) -> Tokenizer:
    """BOS, all bytes, and then what `merges` joins; pieces in the byte-level spelling ("Ġ")."""
    merges = merges or []
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [BOS, *alphabet, *("".join(pair) for pair in merges)]
    vocabulary = {piece: token for token, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(BOS, special=True)])
    return tokenizer


def build_bundle(
    folder: Path, tiny: Tiny, dtype: type = np.float64, tokenizer: Tokenizer | None = None
) -> Path:
    """A bundle of random weights in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(tiny.config))
    save_file(random_arrays(tiny, dtype), folder / "model.safetensors")
    (tokenizer or word_tokenizer(tiny.d_vocab)).save(str(folder / "tokenizer.json"))
    return folder


def random_prompts(tiny: Tiny, count: int, seed: int = 1) -> list[list[int]]:
    """Token ids, each prompt of a random length up to the context."""
    rng = np.random.default_rng((seed, tiny.seed))
    return [
        rng.integers(0, tiny.d_vocab, int(rng.integers(1, tiny.n_ctx + 1))).tolist()
        for _ in range(count)
    ]


def tiny_model(tiny: Tiny, dtype: type = np.float64) -> Model:
    """The model of a bundle that is never written: folded weights in memory."""
    config = read_config(json.dumps(tiny.config).encode(), "tiny")
    arrays = {name: torch.from_numpy(array) for name, array in random_arrays(tiny, dtype).items()}
    tokenizer = CoreTokenizer(word_tokenizer(tiny.d_vocab), 0, tiny.d_vocab)
    return Model("tiny", Path("tiny"), config, tokenizer, fold(config, arrays))


def record(model: Model, tokens: list[int], dtype: str = "float64", edits=None) -> Recording:
    """The run of a model on token ids."""
    labels = tuple(model.tokenizer.label(token) for token in tokens)
    return model.run(Prompt(model.name, tuple(tokens), labels), dtype, edits)
