"""The trainable attention-only transformer, parameters named as in a bundle's model.safetensors.

Pre-LayerNorm, learned positions, biases, untied unembedding. Source of the started head and of the
sinusoidal start of the positions: a previous-token head is one rotation of sine and cosine planes.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from circuitview.core.training.settings import TrainingSettings

_EMBED_STD = 0.02
# Of the started head: how far its query and key are drawn out. 1.5 puts a few percent more weight
# one back than elsewhere, enough for the gradient to find it.
_GAIN = 1.5


class Network(nn.Module):
    """The model under training; `named_weights` gives its arrays under the bundle's names."""

    def __init__(self, settings: TrainingSettings) -> None:
        super().__init__()
        self.settings = settings
        self.names: dict[str, str] = {}
        generator = torch.Generator().manual_seed(settings.seed)
        D, H, dh = settings.d_model, settings.n_heads, settings.d_head
        embed = torch.randn(settings.d_vocab, D, generator=generator) * _EMBED_STD
        self._add("embed.W_E", embed)
        half_norm = _EMBED_STD * math.sqrt(D) / 2
        self._add("pos_embed.W_pos", sinusoidal_positions(settings.n_ctx, D) * half_norm)
        for layer in range(settings.n_layers):
            block = f"blocks.{layer}."
            self._add(block + "ln1.w", torch.ones(D))
            self._add(block + "ln1.b", torch.zeros(D))
            for matrix in ("W_Q", "W_K", "W_V"):
                start = torch.randn(H, D, dh, generator=generator) * _EMBED_STD
                self._add(block + "attn." + matrix, start)
            for bias in ("b_Q", "b_K", "b_V"):
                self._add(block + "attn." + bias, torch.zeros(H, dh))
            std = _EMBED_STD / math.sqrt(2 * settings.n_layers)
            self._add(block + "attn.W_O", torch.randn(H, dh, D, generator=generator) * std)
            self._add(block + "attn.b_O", torch.zeros(D))
        self._add("ln_final.w", torch.ones(D))
        self._add("ln_final.b", torch.zeros(D))
        self._add("unembed.W_U", embed.T.clone() / 2)
        self._add("unembed.b_U", torch.zeros(settings.d_vocab))
        if settings.started_head:
            query, key = previous_token_start(D, dh)
            with torch.no_grad():
                self.weight("blocks.0.attn.W_Q")[0] = query
                self.weight("blocks.0.attn.W_K")[0] = key

    def _add(self, name: str, start: Tensor) -> None:
        # torch allows no dot in a parameter's name.
        attribute = name.replace(".", "__")
        self.names[name] = attribute
        self.register_parameter(attribute, nn.Parameter(start))

    def weight(self, name: str) -> Tensor:
        parameter: Tensor = getattr(self, self.names[name])
        return parameter

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        for name in self.names:
            yield name, self.weight(name).detach()

    def forward(self, tokens: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos d_vocab"]:
        settings = self.settings
        D, H, dh = settings.d_model, settings.n_heads, settings.d_head
        batch, pos = tokens.shape
        stream = self.weight("embed.W_E")[tokens] + self.weight("pos_embed.W_pos")[:pos]
        for layer in range(settings.n_layers):
            block = f"blocks.{layer}."
            normed = functional.layer_norm(
                stream,
                (D,),
                self.weight(block + "ln1.w"),
                self.weight(block + "ln1.b"),
                settings.eps,
            )
            parts = []
            for matrix, bias in (("W_Q", "b_Q"), ("W_K", "b_K"), ("W_V", "b_V")):
                wide = self.weight(block + "attn." + matrix).transpose(0, 1).reshape(D, H * dh)
                part = normed @ wide + self.weight(block + "attn." + bias).reshape(H * dh)
                parts.append(
                    part.view(batch, pos, H, dh).transpose(1, 2)
                )  # [batch, head, pos, d_head]
            query, key, value = parts
            z = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            mixed = z.transpose(1, 2).reshape(batch, pos, H * dh)
            written = mixed @ self.weight(block + "attn.W_O").reshape(H * dh, D)
            stream = stream + written + self.weight(block + "attn.b_O")
        normed = functional.layer_norm(
            stream, (D,), self.weight("ln_final.w"), self.weight("ln_final.b"), settings.eps
        )
        return normed @ self.weight("unembed.W_U") + self.weight("unembed.b_U")


def _frequencies(d_model: int) -> Float[Tensor, " plane"]:
    return torch.linspace(0.02, 3.0, d_model // 2)


def sinusoidal_positions(n_ctx: int, d_model: int) -> Float[Tensor, "n_ctx d_model"]:
    """Unit-norm positions: cosine and sine of d_model / 2 frequencies (rad a position)."""
    angles = torch.arange(n_ctx).unsqueeze(1) * _frequencies(d_model)  # [n_ctx, plane]
    planes = torch.stack([angles.cos(), angles.sin()], dim=-1)  # [n_ctx, plane, 2]
    positions = torch.zeros(n_ctx, d_model)
    positions[:, : 2 * (d_model // 2)] = planes.flatten(1)
    return positions / math.sqrt(d_model // 2)


def previous_token_start(
    d_model: int, d_head: int
) -> tuple[Float[Tensor, "d_model d_head"], Float[Tensor, "d_model d_head"]]:
    """W_Q and W_K of a head that looks one position back.

    The key reads d_head / 2 of the position planes as they are; the query reads the same planes
    turned back by one position, so that their product is largest one position earlier.
    """
    frequencies = _frequencies(d_model)
    planes = torch.linspace(0, len(frequencies) - 1, d_head // 2).round().long()
    query, key = torch.zeros(d_model, d_head), torch.zeros(d_model, d_head)
    for place, plane in enumerate(planes.tolist()):
        angle = float(frequencies[plane])
        back = torch.tensor(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        )
        rows, columns = slice(2 * plane, 2 * plane + 2), slice(2 * place, 2 * place + 2)
        key[rows, columns] = torch.eye(2) * _GAIN
        query[rows, columns] = back * _GAIN
    return query, key
