"""What the exact sums need of a model: how its heads move values, and how tokens are read out.

Every kind of model is brought into this form: attention-only bundles with all norms folded in, and
models opened from other programs, whose large matrices stay where they are. What stands between a
head and the stream must be linear once recorded scales are held; the form has a place for each such
thing, and a model with anything else is refused.

Row vectors, weights applied on the right: W_OV = W_V W_O (the paper of Elhage et al. 2021
multiplies on the left). Products stay factored: W_OV is never built.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.config import ModelConfig
from circuitview.core.mlp import MLP
from circuitview.core.names import POSITION, TOKEN, Head, Source


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueSide:
    """The value side of a model.

    Attributes:
        config: sizes and kinds.
        W_V, b_V: with the norm's gain, bias and centring folded in. Under grouped-query attention
            they stay grouped: query head h reads kv head h // (n_heads // n_kv_heads).
        W_O, b_O: with the gain of a norm behind attention and all multipliers folded in; that
            norm's division is recorded (post_scale) and applied by who uses them.
        b_post: [layer, d_model], what a norm behind attention adds after its division, or None.
        W_U, b_U: the unembedding, as the model has it.
        final_gain, final_shift: of the final norm where they are not folded into W_U, b_U.
        centres: whether the final norm centres the stream (a folded model writes it centred).
        logit_scale: what the model multiplies its logits by.
        mlps: one for each layer whose MLP paths can be carried through, in order; empty where the
            model has none, or where they can only be sources.
    """

    config: ModelConfig
    W_V: Float[Tensor, "layer kv_head d_model d_head"]
    W_O: Float[Tensor, "layer head d_head d_model"]
    b_V: Float[Tensor, "layer kv_head d_head"]
    b_O: Float[Tensor, "layer d_model"]
    W_U: Float[Tensor, "d_model d_vocab"]
    b_U: Float[Tensor, " d_vocab"] | None = None
    b_post: Float[Tensor, "layer d_model"] | None = None
    final_gain: Float[Tensor, " d_model"] | None = None
    final_shift: Float[Tensor, " d_model"] | None = None
    centres: bool = False
    logit_scale: float = 1.0
    mlps: tuple[MLP, ...] = ()

    @property
    def dtype(self) -> torch.dtype:
        return self.W_V.dtype

    @property
    def group(self) -> int:
        """How many query heads share a kv head."""
        return self.config.n_heads // self.W_V.shape[1]

    def head_W_V(self, layer: int) -> Float[Tensor, "head d_model d_head"]:
        """W_V of a layer for each query head; a copy only where heads are grouped."""
        grouped = self.W_V[layer]
        return grouped if self.group == 1 else grouped.repeat_interleave(self.group, 0)

    def W_V_of(self, head: Head) -> Float[Tensor, "d_model d_head"]:
        return self.W_V[head.layer, head.head // self.group]

    def W_O_of(self, head: Head) -> Float[Tensor, "d_head d_model"]:
        return self.W_O[head.layer, head.head]

    def head_bias(self) -> Float[Tensor, "layer head d_model"]:
        """What each head writes whatever it looks at: b_V W_O (pattern rows sum to 1)."""
        b_V = self.b_V.repeat_interleave(self.group, 1)  # [layer, head, d_head]
        return torch.einsum("lhe,lhed->lhd", b_V, self.W_O)  # [layer, head, d_model]

    @cached_property
    def bias(self) -> Float[Tensor, "layer d_model"]:
        """The constant that each layer's attention writes: b_O and all its heads' value biases,
        before the division by a norm behind it."""
        return self.b_O + self.head_bias().sum(1)  # [layer, d_model]

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What writes to the stream without reading it: token, position, the layers' biases, and
        their MLPs' recorded outputs.

        A layer whose constant is exactly zero has no bias source.
        """
        found = [TOKEN]
        if self.config.has_positions:
            found.append(POSITION)
        for layer, bias in enumerate(self.bias):
            post = None if self.b_post is None else self.b_post[layer]
            if bool(bias.any()) or (post is not None and bool(post.any())):
                found.append(Source("bias", layer))
            if not self.config.attn_only:
                found.append(Source("mlp", layer))
        return tuple(found)

    def direction(self, token: int) -> Float[Tensor, " d_model"]:
        """The direction in the stream that the logit of `token` reads, the final norm's gain and
        centring counted in."""
        return self.directions(torch.tensor([token]))[0]

    def directions(self, tokens: Int[Tensor, " token"]) -> Float[Tensor, "token d_model"]:
        """The same of several tokens."""
        found = self.W_U[:, tokens].mT.to(self.dtype) * self.logit_scale  # [token, d_model]
        if self.final_gain is not None:
            found = found * self.final_gain
        return found - found.mean(-1, keepdim=True) if self.centres else found

    def constant(self, token: int) -> float:
        """What is added to the logit of `token` whatever is in the stream [logits]."""
        constant = 0.0 if self.b_U is None else float(self.b_U[token])
        if self.final_shift is not None:
            constant += float(self.final_shift.double() @ self.W_U[:, token].double())
        return constant * self.logit_scale

    def read_out(self, written: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_vocab"]:
        """What vectors in the stream do to every logit where the final scale is 1."""
        if self.centres:
            written = written - written.mean(-1, keepdim=True)
        if self.final_gain is not None:
            written = written * self.final_gain
        logits = written @ self.W_U.to(written.dtype)  # [.., d_vocab]
        return logits if self.logit_scale == 1 else logits * self.logit_scale

    def constants(self) -> Float[Tensor, " d_vocab"]:
        """What is added to every logit whatever is in the stream [logits]."""
        constants = torch.zeros_like(self.W_U[0]) if self.b_U is None else self.b_U
        if self.final_shift is not None:
            constants = constants + self.final_shift @ self.W_U  # [d_vocab]
        return constants * self.logit_scale
