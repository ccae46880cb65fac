"""What a run of another program's model is written to, under transformer_lens' hooks.

A tape holds what a recording needs in tensors made before the run, and keeps nothing else: no
scores, no cache of keys and values. What norms divide by is computed here from the recorded stream,
in float64, and rounded once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.overrides import TorchFunctionMode

from circuitview.core.checkpoint.bridge_norms import Norm
from circuitview.core.checkpoint.bridge_weights import BlockNorms
from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.value_side import ValueSide

Hook = Callable[..., Tensor | None]
# Relative: float32 sums of a few parts in another order.
_SAME = 1e-4
# Absolute: weights between 0 and 1 in float32.
WEIGHT = 1e-4
# No score is that low; what a mask adds is the lowest float there is, or minus infinity.
_MASKED = -1e30


class Softmax(TorchFunctionMode):
    """Sees what the softmax of one layer's attention reads, whoever calls it.

    The bridge's own point for scores will not do: where attention is left to the model's code, it
    fires with the pattern.

    Attributes:
        scores: [dest, src] of one head, 0 where nothing may be looked at; None where no softmax
            within the layer gave its pattern.
    """

    def __init__(self, head: int, pattern: Float[Tensor, "dest src"]) -> None:
        super().__init__()
        self.head, self.pattern = head, pattern
        self.inside = False
        self.scores: Tensor | None = None

    def begin(self, *_: Any, **__: Any) -> None:
        self.inside = True

    def end(self, *_: Any, **__: Any) -> None:
        self.inside = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.inside and getattr(func, "__name__", "") == "softmax" and args:
            self._keep(args[0], result)
        return result

    def _keep(self, scores: Tensor, weights: Tensor) -> None:
        if scores.ndim != 4 or scores.shape[-2:] != self.pattern.shape:
            return
        if not torch.allclose(weights[0, self.head].cpu(), self.pattern, rtol=0, atol=WEIGHT):
            return
        kept = scores[0, self.head].float().cpu()
        future = torch.ones_like(kept, dtype=torch.bool).triu(1)  # [dest, src]
        self.scores = kept.masked_fill(future | (kept < _MASKED), 0.0)


def close(ours: Tensor, theirs: Tensor) -> bool:
    return float((ours - theirs).abs().max()) <= _SAME * max(float(theirs.abs().max()), 1e-30)


class Tape:
    """What one run writes to: a recording in the making."""

    def __init__(
        self,
        weights: ValueSide,
        norms: tuple[BlockNorms, ...],
        last_norm: Norm | None,
        n: int,
    ) -> None:
        """A tape for `n` tokens of the model of these weights and norms."""
        config = weights.config
        L, H, D = config.n_layers, config.n_heads, config.d_model
        self.weights, self.norms, self.last_norm = weights, norms, last_norm
        self.fired: set[str] = set()
        self.pattern = torch.zeros(L, H, n, n)
        self.z = torch.zeros(L, H, n, config.d_head)
        self.stream = torch.zeros(L + 1, n, D)
        self.mlp_out = torch.zeros(L, n, D)
        self.logits = torch.zeros(n, config.d_vocab)
        self.embedding = torch.zeros(n, D)
        self.positions = torch.zeros(n, D) if config.has_positions else None
        self.mlp_scale = torch.ones(L, n)
        self.post_scale = torch.ones(L, n)
        self.mlp_post_scale = torch.ones(L, n)

    def hooks(self) -> list[tuple[str, Hook]]:
        """The points that are recorded, and what is done there."""
        points: dict[str, Hook] = {
            "embed.hook_out": into(self.embedding),
            "unembed.hook_out": into(self.logits),
        }
        if self.positions is not None:
            points["pos_embed.hook_out"] = into(self.positions)
        last = len(self.norms) - 1
        points[f"blocks.{last}.hook_out"] = into(self.stream[-1])
        if self.last_norm is not None:
            points["ln_final.hook_in"] = points.pop(f"blocks.{last}.hook_out")
        for layer, norms in enumerate(self.norms):
            block = f"blocks.{layer}."
            points[block + "hook_in"] = into(self.stream[layer])
            points[block + "attn.hook_pattern"] = into(self.pattern[layer])
            points[block + "attn.o.hook_in"] = partial(self._mixed, layer)
            points[block + "hook_mlp_out"] = into(self.mlp_out[layer])
            behind = {"ln1_post": norms.attn_post, "ln2_post": norms.mlp_post}
            if not self.weights.config.parallel_attn_mlp:
                behind["ln2"] = norms.mlp
            places = {
                "ln1_post": self.post_scale,
                "ln2_post": self.mlp_post_scale,
                "ln2": self.mlp_scale,
            }
            for name, norm in behind.items():
                if norm is not None:
                    points[f"{block}{name}.hook_in"] = partial(
                        self._scale, norm, places[name][layer]
                    )
        return [(name, partial(self._note, name, hook)) for name, hook in points.items()]

    def _note(self, name: str, then: Hook, tensor: Tensor, **_: Any) -> Tensor | None:
        self.fired.add(name)
        return then(tensor)

    def _mixed(self, layer: int, tensor: Tensor, **_: Any) -> None:
        target = self.z[layer].transpose(0, 1)  # [pos, head, d_head]
        target.copy_(tensor.reshape(target.shape))

    def _scale(self, norm: Norm, target: Tensor, tensor: Tensor, **_: Any) -> None:
        target.copy_(norm.scale(tensor.reshape(len(target), -1).cpu()))

    def recording(
        self,
        prompt: Prompt,
        tokens: Int[Tensor, " pos"],
        rerun: Callable[[Edits], Recording],
        edits: Edits,
    ) -> Recording:
        """What was recorded of a run with `edits`.

        Raises:
            CircuitviewError: where the model's code passed one of the points by.
        """
        config, norms = self.weights.config, self.norms
        missing = sorted({name for name, _ in self.hooks()} - self.fired)
        if missing:
            raise CircuitviewError(
                f"{prompt.model}: {config.original_architecture} does not show {missing[0]}, "
                "so it can't be split into exact paths; choose another model"
            )
        ln_scale = torch.ones_like(self.mlp_scale)
        for layer, around in enumerate(norms):
            if around.attn is not None:
                ln_scale[layer] = around.attn.scale(self.stream[layer])
            if config.parallel_attn_mlp and around.mlp is not None:
                self.mlp_scale[layer] = around.mlp.scale(self.stream[layer])
        final = torch.ones(len(tokens))
        if self.last_norm is not None:
            final.copy_(self.last_norm.scale(self.stream[-1]))
        if edits.embedding is not None:
            self.embedding = edits.embedding
        elif self.positions is None:
            self.embedding = _written(self.embedding, self.stream[0])
        for head, pattern in edits.patterns.items():
            self.pattern[head.layer, head.head] = pattern
        if self.weights.logit_scale != 1:
            self.logits *= self.weights.logit_scale
        behind_attn = any(around.attn_post is not None for around in norms)
        behind_mlp = any(around.mlp_post is not None for around in norms)
        return Recording(
            prompt=prompt,
            weights=self.weights,
            tokens=tokens,
            pattern=self.pattern,
            z=self.z,
            stream=self.stream,
            ln_scale=ln_scale,
            final_scale=final,
            logits=self.logits,
            embedding=self.embedding,
            positions=self.positions,
            mlp_out=self.mlp_out,
            mlp_scale=self.mlp_scale,
            post_scale=self.post_scale if behind_attn else None,
            mlp_post_scale=self.mlp_post_scale if behind_mlp else None,
            rerun=rerun,
        )


def into(target: Tensor) -> Hook:
    """A hook that copies what it sees into `target`."""

    def write(tensor: Tensor, **_: Any) -> None:
        # Without its batch axis; OPT's blocks have none inside.
        target.copy_(tensor.reshape(target.shape))

    return write


def _written(embedding: Tensor, first: Tensor) -> Tensor:
    """What the embedding writes: itself, times the number that the model multiplies it by."""
    multiplier = float((embedding * first).sum() / embedding.square().sum().clamp_min(1e-30))
    return first if close(embedding * multiplier, first) else embedding
