"""Small bundles on disk with random weights: every norm, kind of position, depth, with and without
biases. Gains differ from 1 and norm biases from 0, or folding them wrongly would pass."""

import itertools
import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from circuitview.core.config import read_config
from circuitview.core.model import NativeModel
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
    act_fn: str | None = None  # with one, every layer has an MLP
    d_mlp: int = 7
    gated_mlp: bool = False
    parallel_attn_mlp: bool = False
    n_key_value_heads: int | None = None
    rotary_dim: int | None = None
    rotary_base: float = 10000.0
    rotary_adjacent_pairs: bool = False
    output_logits_soft_cap: float | None = None

    def __str__(self) -> str:
        norm = self.normalization_type or "no norm"
        biases = "biases" if self.biases else "no biases"
        words = [f"{self.n_layers}x{self.n_heads} {norm}", self.positional_embedding_type, biases]
        if self.act_fn is not None:
            words.append(f"{'gated ' if self.gated_mlp else ''}{self.act_fn}")
            words.append("parallel" if self.parallel_attn_mlp else "behind")
        if self.n_key_value_heads is not None:
            words.append(f"{self.n_key_value_heads} kv")
        if self.positional_embedding_type == "rotary":
            words.append("adjacent" if self.rotary_adjacent_pairs else "halves")
        return ", ".join(words)

    @property
    def config(self) -> dict[str, object]:
        fields = asdict(self)
        for name in ("biases", "seed"):
            del fields[name]
        return {**fields, "eps": 1e-5, "bos_token_id": 0, "attn_only": self.act_fn is None}

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


# MLPs of every nonlinearity, plain and gated, behind and beside attention; rotary positions of both
# pairings and of a part of the head; shared keys and values; deeper ones.
_BIG = Tiny(n_heads=4, d_model=14, d_head=4, act_fn="gelu")
MLP_KINDS = (
    _BIG,
    replace(_BIG, act_fn="relu", normalization_type=None),
    replace(_BIG, act_fn="gelu_new", normalization_type="LNPre", biases=False),
    replace(_BIG, act_fn="gelu_fast", positional_embedding_type="shortformer"),
    replace(_BIG, act_fn="solu_ln"),
    replace(_BIG, act_fn="solu_ln", normalization_type="LNPre"),
    replace(_BIG, act_fn="solu", normalization_type="RMS"),
    replace(_BIG, act_fn="gelu", parallel_attn_mlp=True, positional_embedding_type="rotary"),
    replace(
        _BIG,
        act_fn="silu",
        gated_mlp=True,
        normalization_type="RMS",
        positional_embedding_type="rotary",
        n_key_value_heads=2,
        rotary_base=50.0,
    ),
    replace(
        _BIG,
        act_fn="gelu_pytorch_tanh",
        gated_mlp=True,
        positional_embedding_type="rotary",
        rotary_adjacent_pairs=True,
        d_head=6,
        rotary_dim=4,
        n_key_value_heads=1,
    ),
    replace(_BIG, n_layers=3, n_heads=2, parallel_attn_mlp=True, normalization_type="RMSPre"),
    replace(_BIG, act_fn=None, positional_embedding_type="rotary", n_key_value_heads=2),
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
    kv = tiny.n_key_value_heads or H
    for layer in range(tiny.n_layers):
        block = f"blocks.{layer}"
        for kind, heads in zip("QKV", (H, kv, kv), strict=True):
            arrays[f"{block}.attn.W_{kind}"] = draw(heads, D, dh, spread=1.5 * D**-0.5)
        arrays[f"{block}.attn.W_O"] = draw(H, dh, D, spread=dh**-0.5, middle=0.1)
        if tiny.biases:
            for kind, heads in zip("QKV", (H, kv, kv), strict=True):
                arrays[f"{block}.attn.b_{kind}"] = draw(heads, dh, spread=0.4)
            arrays[f"{block}.attn.b_O"] = draw(D, spread=0.4, middle=0.1)
        if tiny.has_gains:
            arrays.update(_norm(f"{block}.ln1", tiny, draw))
        if tiny.act_fn is not None:
            arrays.update(_mlp(block, tiny, draw))
    if tiny.has_gains:
        arrays.update(_norm("ln_final", tiny, draw))
    arrays["unembed.W_U"] = draw(D, V)
    if tiny.biases:
        arrays["unembed.b_U"] = draw(V)
    return arrays


def _norm(name, tiny, draw, width=None):
    width = width or tiny.d_model
    arrays = {f"{name}.w": draw(width, spread=0.3, middle=1.2)}
    if tiny.normalization_type == "LN" and tiny.biases:
        arrays[f"{name}.b"] = draw(width, spread=0.4)
    return arrays


def _mlp(block, tiny, draw):
    D, neurons, name = tiny.d_model, tiny.d_mlp, f"{block}.mlp"
    arrays = _norm(f"{block}.ln2", tiny, draw) if tiny.has_gains else {}
    arrays[f"{name}.W_in"] = draw(D, neurons, spread=1.5 * D**-0.5)
    arrays[f"{name}.W_out"] = draw(neurons, D, spread=neurons**-0.5, middle=0.1)
    if tiny.gated_mlp:
        arrays[f"{name}.W_gate"] = draw(D, neurons, spread=1.5 * D**-0.5)
    if tiny.biases:
        arrays[f"{name}.b_in"] = draw(neurons, spread=0.4)
        arrays[f"{name}.b_out"] = draw(D, spread=0.4, middle=0.1)
    if tiny.act_fn == "solu_ln" and tiny.normalization_type == "LN":
        arrays.update(_norm(f"{name}.ln", tiny, draw, neurons))
        # transformer_lens' norms have both.
        arrays.setdefault(f"{name}.ln.b", draw(neurons, spread=0.4))
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


def state_dict(tiny: Tiny, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """The arrays as HookedTransformer.state_dict() has them: buffers too, grouped heads with an
    underscore."""
    found = {}
    for name, array in random_arrays(tiny).items():
        grouped = tiny.n_key_value_heads and name.rpartition(".")[2] in ("W_K", "W_V", "b_K", "b_V")
        name = name.replace(".attn.", ".attn._") if grouped else name
        found[name] = torch.from_numpy(array).to(dtype)
    for layer in range(tiny.n_layers):
        attention = f"blocks.{layer}.attn"
        mask = torch.ones(tiny.n_ctx, tiny.n_ctx, dtype=torch.bool).tril()
        found[f"{attention}.mask"], found[f"{attention}.IGNORE"] = mask, torch.tensor(-torch.inf)
        if tiny.positional_embedding_type == "rotary":
            angle = rotary_angles(tiny)
            found[f"{attention}.rotary_sin"], found[f"{attention}.rotary_cos"] = (
                angle.sin().to(dtype),
                angle.cos().to(dtype),
            )
    return found


def rotary_angles(tiny: Tiny) -> torch.Tensor:
    """[n_ctx, rotary_dim], as HookedTransformer's tables hold them."""
    width = tiny.rotary_dim or tiny.d_head
    turns = [tiny.rotary_base ** (-2 * pair / width) for pair in range(width // 2)]
    columns = [turn for turn in turns for _ in "ab"] if tiny.rotary_adjacent_pairs else 2 * turns
    return torch.arange(tiny.n_ctx).double().outer(torch.tensor(columns, dtype=torch.float64))


def build_legacy(folder: Path, tiny: Tiny, file: str = "model_final.pth", **config) -> Path:
    """A folder as transformer_lens wrote it before version 4; `config` changes its fields, and
    takes those away that are `...`."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = {name: value for name, value in tiny.config.items() if name != "bos_token_id"}
    fields |= {"act_fn": tiny.act_fn or "relu", "dtype": "torch.float32", "seed": None}
    # What its own config writes for "as usual".
    fields |= {"attn_scale": -1.0, "output_logits_soft_cap": -1.0, "d_vocab_out": tiny.d_vocab}
    fields = {name: value for name, value in (fields | config).items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(fields))
    torch.save(state_dict(tiny), folder / file)
    word_tokenizer(tiny.d_vocab).save(str(folder / "tokenizer.json"))
    return folder


def random_prompts(tiny: Tiny, count: int, seed: int = 1) -> list[list[int]]:
    """Token ids, each prompt of a random length up to the context."""
    rng = np.random.default_rng((seed, tiny.seed))
    return [
        rng.integers(0, tiny.d_vocab, int(rng.integers(1, tiny.n_ctx + 1))).tolist()
        for _ in range(count)
    ]


def tiny_model(tiny: Tiny, dtype: type = np.float64) -> NativeModel:
    """The model of a bundle that is never written: folded weights in memory."""
    config = read_config(json.dumps(tiny.config).encode(), "tiny")
    arrays = {name: torch.from_numpy(array) for name, array in random_arrays(tiny, dtype).items()}
    tokenizer = CoreTokenizer(word_tokenizer(tiny.d_vocab), 0, tiny.d_vocab)
    return NativeModel(
        name="tiny",
        folder=Path("tiny"),
        config=config,
        tokenizer=tokenizer,
        folded=partial(fold, config, arrays),
    )


def record(model: NativeModel, tokens: list[int], dtype: str = "float64", edits=None) -> Recording:
    """The run of a model on token ids."""
    labels = tuple(model.tokenizer.label(token) for token in tokens)
    return model.run(Prompt(model.name, tuple(tokens), labels), dtype, edits)
