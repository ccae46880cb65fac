"""A slow oracle: reads a bundle itself and pushes every path forward, in numpy and float64.

It shares no code and no trick with circuitview.core: nothing is folded, a norm centres, divides,
multiplies and adds as the model's definition says, and every path is a vector that walks from head
to head, once for each source position.
"""

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


@dataclass
class Run:
    """One prompt's numbers; scales and patterns are what the paths are held to."""

    pattern: np.ndarray  # [layer, head, dest, src]
    scores: np.ndarray  # [layer, head, dest, src]
    scale: np.ndarray  # [layer, pos]
    final_scale: np.ndarray  # [pos]
    final_stream: np.ndarray  # [pos, d_model]
    logits: np.ndarray  # [pos, d_vocab]
    mlp_out: np.ndarray  # [layer, pos, d_model]; zero in attention-only models
    mlp_scale: np.ndarray  # [layer, pos]


def _each(function):
    return np.vectorize(function, otypes=[np.float64])


def _tanh_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


_ACTIVATIONS = {
    "relu": _each(lambda x: max(x, 0.0)),
    "gelu": _each(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
    "gelu_new": _each(_tanh_gelu),
    "gelu_pytorch_tanh": _each(_tanh_gelu),
    "gelu_fast": _each(lambda x: 0.5 * x * (1 + math.tanh(0.7978845608 * (x + 0.044715 * x**3)))),
    "silu": _each(lambda x: x / (1 + math.exp(-x))),
    "solu": lambda x: x * np.exp(x) / np.exp(x).sum(),
}


class Oracle:
    """A bundle's model, straight from its two files."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        stored = load_file(folder / "model.safetensors")
        self.arrays = {name: array.astype(np.float64) for name, array in stored.items()}
        self.n_layers = self.config["n_layers"]
        self.n_heads = self.config["n_heads"]
        self.positions = self.config.get("positional_embedding_type", "standard")
        self.group = self.n_heads // (self.config.get("n_key_value_heads") or self.n_heads)
        self.has_mlps = not self.config.get("attn_only", True)

    def get(self, name: str, shape: tuple[int, ...], default: float = 0.0) -> np.ndarray:
        return self.arrays.get(name, np.full(shape, default))

    def attention(self, layer: int, kind: str, head: int) -> tuple[np.ndarray, np.ndarray]:
        """Weight [d_model, d_head] and bias [d_head] of one head's Q, K or V."""
        if kind in "KV":
            head //= self.group
        weight = self.arrays[f"blocks.{layer}.attn.W_{kind}"][head]
        bias = self.get(f"blocks.{layer}.attn.b_{kind}", (self.n_heads, self.config["d_head"]))
        return weight, bias[head]

    def turn(self, x: np.ndarray) -> np.ndarray:
        """Queries or keys [pos, d_head] with rotary positions: pairs as complex numbers, turned."""
        if self.positions != "rotary":
            return x
        width = self.config.get("rotary_dim") or self.config["d_head"]
        half = width // 2
        turned = x.copy()
        for pair in range(half):
            first, second = (pair, pair + half)
            if self.config.get("rotary_adjacent_pairs"):
                first, second = (2 * pair, 2 * pair + 1)
            for place in range(len(x)):
                angle = place / self.config.get("rotary_base", 10000.0) ** (2 * pair / width)
                moved = complex(x[place, first], x[place, second]) * complex(
                    math.cos(angle), math.sin(angle)
                )
                turned[place, first], turned[place, second] = moved.real, moved.imag
        return turned

    def mlp(self, layer: int, normed: np.ndarray) -> np.ndarray:
        """What one position's MLP makes of the normed stream [d_model]."""
        name, width = f"blocks.{layer}.mlp", self.config["d_mlp"]
        x = normed @ self.arrays[f"{name}.W_in"]
        b_in = self.get(f"{name}.b_in", (width,))
        kind = self.config["act_fn"]
        if self.config.get("gated_mlp"):
            gate = normed @ self.arrays[f"{name}.W_gate"]
            neurons = _ACTIVATIONS[kind](gate) * x + b_in
        else:
            neurons = _ACTIVATIONS[kind.removesuffix("_ln")](x + b_in)
        if kind == "solu_ln":
            neurons = neurons - neurons.mean()
            neurons = neurons / np.sqrt((neurons**2).mean() + self.config.get("eps", 1e-5))
            neurons = neurons * self.get(f"{name}.ln.w", (width,), 1.0)
            neurons = neurons + self.get(f"{name}.ln.b", (width,))
        b_out = self.get(f"{name}.b_out", (self.config["d_model"],))
        return neurons @ self.arrays[f"{name}.W_out"] + b_out

    def output(self, layer: int, head: int) -> np.ndarray:
        return self.arrays[f"blocks.{layer}.attn.W_O"][head]

    @property
    def centres(self) -> bool:
        return str(self.config.get("normalization_type")).startswith("LN")

    def gain(self, norm: str) -> np.ndarray:
        return self.get(f"{norm}.w", (self.config["d_model"],), 1.0)

    def shift(self, norm: str) -> np.ndarray:
        return self.get(f"{norm}.b", (self.config["d_model"],))

    def measure(self, x: np.ndarray) -> float:
        """What the norm divides one position's vector by."""
        if self.config.get("normalization_type") is None:
            return 1.0
        centred = x - x.mean() if self.centres else x
        return float(np.sqrt((centred**2).mean() + self.config.get("eps", 1e-5)))

    def linear_norm(self, x: np.ndarray, scale: float, norm: str) -> np.ndarray:
        """The norm without its bias, its scale held: linear in x."""
        centred = x - x.mean() if self.centres else x
        return centred / scale * self.gain(norm)

    def score_divisor(self) -> float:
        if not self.config.get("use_attn_scale", True):
            return 1.0
        given = self.config.get("attn_scale")
        return given if given is not None and given > 0 else self.config["d_head"] ** 0.5

    def embed(self, tokens: list[int]) -> np.ndarray:
        """Token embeddings and, where they enter the stream, positions [2, pos, d_model]."""
        words = self.arrays["embed.W_E"][tokens]
        places = np.zeros_like(words)
        if self.positions == "standard":
            places = self.arrays["pos_embed.W_pos"][: len(tokens)]
        return np.stack([words, places])

    def run(self, tokens: list[int]) -> Run:
        n, L, H = len(tokens), self.n_layers, self.n_heads
        stream = self.embed(tokens).sum(0)
        pattern, scores = np.zeros((L, H, n, n)), np.zeros((L, H, n, n))
        scale, mlp_scale = np.ones((L, n)), np.ones((L, n))
        mlp_out = np.zeros((L, *stream.shape))
        for layer in range(L):
            norm = f"blocks.{layer}.ln1"
            scale[layer] = [self.measure(x) for x in stream]
            normed = np.stack(
                [
                    self.linear_norm(x, s, norm) + self.shift(norm)
                    for x, s in zip(stream, scale[layer], strict=True)
                ]
            )
            read = normed
            if self.positions == "shortformer":
                read = normed + self.arrays["pos_embed.W_pos"][:n]
            update = np.tile(self.get(f"blocks.{layer}.attn.b_O", stream.shape[1:]), (n, 1))
            for head in range(H):
                (W_Q, b_Q), (W_K, b_K), (W_V, b_V) = (
                    self.attention(layer, kind, head) for kind in "QKV"
                )
                q, k, v = read @ W_Q + b_Q, read @ W_K + b_K, normed @ W_V + b_V
                q, k = self.turn(q), self.turn(k)
                for dest in range(n):
                    row = k[: dest + 1] @ q[dest] / self.score_divisor()
                    scores[layer, head, dest, : dest + 1] = row
                    row = np.exp(row - row.max())
                    pattern[layer, head, dest, : dest + 1] = row / row.sum()
                update += pattern[layer, head] @ v @ self.output(layer, head)
            into_mlp = stream if self.config.get("parallel_attn_mlp") else stream + update
            stream = stream + update
            if self.has_mlps:
                norm = f"blocks.{layer}.ln2"
                for place, x in enumerate(into_mlp):
                    mlp_scale[layer, place] = self.measure(x)
                    normed_x = self.linear_norm(x, mlp_scale[layer, place], norm)
                    mlp_out[layer, place] = self.mlp(layer, normed_x + self.shift(norm))
            stream = stream + mlp_out[layer]
        final_scale = np.array([self.measure(x) for x in stream])
        normed = np.stack(
            [
                self.linear_norm(x, s, "ln_final") + self.shift("ln_final")
                for x, s in zip(stream, final_scale, strict=True)
            ]
        )
        W_U = self.arrays["unembed.W_U"]
        logits = normed @ W_U + self.get("unembed.b_U", (W_U.shape[1],))
        return Run(pattern, scores, scale, final_scale, stream, logits, mlp_out, mlp_scale)

    def constant(self, token: int) -> float:
        """What stands beside the paths: b_U and the final norm's bias."""
        W_U = self.arrays["unembed.W_U"]
        bias = self.get("unembed.b_U", (W_U.shape[1],))
        return float(self.shift("ln_final") @ W_U[:, token] + bias[token])

    def layer_bias(self, layer: int) -> np.ndarray:
        """The constant that one layer writes: b_O and, through W_O, what is constant in V."""
        total = np.array(self.get(f"blocks.{layer}.attn.b_O", (self.config["d_model"],)))
        for head in range(self.n_heads):
            W_V, b_V = self.attention(layer, "V", head)
            total = total + (self.shift(f"blocks.{layer}.ln1") @ W_V + b_V) @ self.output(
                layer, head
            )
        return total

    def sources(self, run: Run, tokens: list[int]) -> dict[str, tuple[int, np.ndarray]]:
        """By name: the layer that writes (-1 for embeddings) and what, [pos, d_model]."""
        words, places = self.embed(tokens)
        found = {"token": (-1, words)}
        if self.positions == "standard":
            found["position"] = (-1, places)
        for layer in range(self.n_layers):
            bias = self.layer_bias(layer)
            if np.abs(bias).max() > 0:
                found[f"bias {layer}"] = (layer, np.tile(bias, (len(tokens), 1)))
            if self.has_mlps:
                found[f"mlp {layer}"] = (layer, run.mlp_out[layer])
        return found

    def walk(self, run: Run, stream: np.ndarray, layer: int, head: int) -> np.ndarray:
        """What one head makes of a stream, its biases left out [pos, d_model]."""
        W_V, _ = self.attention(layer, "V", head)
        n = len(stream)
        values = np.stack(
            [
                self.linear_norm(stream[src], run.scale[layer, src], f"blocks.{layer}.ln1") @ W_V
                for src in range(n)
            ]
        )
        mixed = np.zeros_like(values)
        for dest in range(n):
            for src in range(dest + 1):
                mixed[dest] += run.pattern[layer, head, dest, src] * values[src]
        return mixed @ self.output(layer, head)

    def paths(
        self, run: Run, tokens: list[int], dest: int, direction: np.ndarray
    ) -> dict[tuple[str, tuple[tuple[int, int], ...]], np.ndarray]:
        """For every path its contribution by source position [src].

        `direction` [d_vocab] weighs the logits: one-hot for a token, +1 and -1 for a difference.
        """
        reader = self.arrays["unembed.W_U"] @ direction
        result = {}
        for name, (after, written) in self.sources(run, tokens).items():
            later = range(after + 1, self.n_layers)
            for length in range(len(later) + 1):
                for layers in itertools.combinations(later, length):
                    for heads in itertools.product(range(self.n_heads), repeat=length):
                        chain = tuple(zip(layers, heads, strict=True))
                        result[name, chain] = self._push(run, written, chain, dest, reader)
        return result

    def _push(
        self,
        run: Run,
        written: np.ndarray,
        chain: tuple[tuple[int, int], ...],
        dest: int,
        reader: np.ndarray,
    ) -> np.ndarray:
        by_source = np.zeros(len(written))
        for src in range(len(written)):
            stream = np.zeros_like(written)
            stream[src] = written[src]
            for layer, head in chain:
                stream = self.walk(run, stream, layer, head)
            arrived = self.linear_norm(stream[dest], run.final_scale[dest], "ln_final")
            by_source[src] = arrived @ reader
        return by_source
