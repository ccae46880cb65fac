"""A model of another program, run by that program's own code under transformer_lens' hooks.

A run writes what a recording needs into tensors made before it, and keeps nothing else: no scores,
no cache of keys and values. What norms divide by is computed here from the recorded stream, in
float64, and rounded once. Hooks live inside one `with`, so that none outlives an error.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.overrides import TorchFunctionMode

from circuitview.core.checkpoint.bridge_norms import Norm
from circuitview.core.checkpoint.bridge_weights import BlockNorms
from circuitview.core.edits import Edits
from circuitview.core.frozen import run_frozen
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, DtypeName, Head
from circuitview.core.observation import LayerOutputs, Observation
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.value_side import ValueSide

Hook = Callable[..., Tensor | None]
# Relative: float32 sums of a few parts in another order.
_SAME = 1e-4
# Absolute: weights between 0 and 1 in float32.
_WEIGHT = 1e-4
_SHOWN = {"resid_pre", "resid_post", "attn_out", "mlp_out", "z", "pattern"}
# No score is that low; what a mask adds is the lowest float there is, or minus infinity.
_MASKED = -1e30


@dataclass(frozen=True, eq=False, kw_only=True)
class BridgeModel(Model):
    """A checkpoint of another program.

    Attributes:
        bridge: the TransformerBridge.
        value_side: its value side, on the CPU.
        norms, final: its norms.
    """

    bridge: Any = field(repr=False)
    value_side: ValueSide = field(repr=False)
    norms: tuple[BlockNorms, ...] = field(repr=False)
    final: Norm | None = field(repr=False)
    dtypes: ClassVar[tuple[DtypeName, ...]] = ("float32",)

    def weights(self, dtype: DtypeName = "float32") -> ValueSide:
        """The value side, in float32 only."""
        self.require(dtype)
        return self.value_side

    def run(
        self, prompt: Prompt, dtype: DtypeName = "float32", edits: Edits | None = None
    ) -> Recording:
        """The recording of `prompt`, without scores, on the CPU whatever the model's device.

        Cost: one forward pass of the model; memory for n tokens: n_layers x (n_heads n² + 3 n
        d_model) and n d_vocab floats. Heads that are zeroed without frozen patterns change all
        that comes after them; with frozen patterns the model is not run at all.

        Raises:
            CircuitviewError: see Model.run; and where the model's own code does something that
                the sums don't know of.
        """
        self.require(dtype)
        edits = edits or Edits()
        if edits.frozen is not None:
            return run_frozen(edits.frozen, edits.zeroed)
        tokens = self._tokens(prompt)
        with torch.inference_mode():
            tape = _Tape(self, len(tokens), edits.zeroed)
            output = self.logits(tokens, tape.hooks())
            recording = tape.recording(prompt, tokens)
            self._check(recording, output)
        return recording

    def scores(self, recording: Recording, head: Head) -> Float[Tensor, "dest src"]:
        """The scores of one head as the model's softmax saw them, scaling and soft cap included; 0
        where nothing may be looked at. Cost: one forward pass.

        Raises:
            CircuitviewError: where the model's code does not show its scores.
        """
        if recording.scores is not None:
            return recording.scores[head.layer, head.head]
        pattern = recording.pattern[head.layer, head.head]
        seen = _Softmax(head.head, pattern)
        block = f"blocks.{head.layer}."
        with torch.inference_mode(), seen:
            hooks: list[tuple[str, Hook]] = [
                (block + "hook_in", seen.begin),
                (block + "hook_out", seen.end),
            ]
            self.logits(recording.tokens, hooks)
        if seen.scores is None:
            raise CircuitviewError(
                f"{self.name}: this family's attention ({self.config.original_architecture}) does "
                "not show its scores; look at its pattern instead"
            )
        return seen.scores

    def observe(self, prompt: Prompt, dtype: DtypeName = "float32") -> Observation:
        """What a plain run did, layer by layer, as the model's own hooks report it.

        Cost: one forward pass; memory as in run, twice over.
        """
        self.require(dtype)
        self.require(dtype)
        tokens = self._tokens(prompt)
        n, config = len(tokens), self.config
        L, H, dh = config.n_layers, config.n_heads, config.d_head
        seen: list[dict[str, Tensor]] = [{} for _ in range(L)]
        logits = torch.zeros(n, config.d_vocab)

        def keep(layer: int, key: str, shape: tuple[int, ...], tensor: Tensor, **_: Any) -> None:
            seen[layer][key] = tensor.reshape(shape).cpu().clone()

        hooks: list[tuple[str, Hook]] = [("unembed.hook_out", _into(logits))]
        stream = (n, config.d_model)
        for layer in range(L):
            block = f"blocks.{layer}."
            points = {
                "resid_pre": ("hook_in", stream),
                "resid_post": ("hook_out", stream),
                "attn_out": ("hook_attn_out", stream),
                "mlp_out": ("hook_mlp_out", stream),
                "z": ("attn.o.hook_in", (n, H, dh)),
                "v": ("attn.v.hook_out", (n, config.n_kv_heads, dh)),
                "pattern": ("attn.hook_pattern", (H, n, n)),
            }
            if not config.parallel_attn_mlp:
                points["resid_mid"] = ("hook_resid_mid", stream)
            for key, (point, shape) in points.items():
                hooks.append((block + point, partial(keep, layer, key, shape)))
        with torch.inference_mode():
            self.logits(tokens, hooks)
            for layer, outputs in enumerate(seen):
                self._require_all(_SHOWN - set(outputs), layer)
                for key in {"z", "v"} & set(outputs):
                    outputs[key] = outputs[key].transpose(0, 1)  # [head, pos, d_head]
            return Observation(
                layers=tuple(LayerOutputs(**outputs) for outputs in seen),
                logits=logits * self.value_side.logit_scale,
            )

    def _tokens(self, prompt: Prompt) -> Int[Tensor, " pos"]:
        """The prompt's tokens, of which the model can read every one."""
        config, n = self.config, len(prompt)
        if not 1 <= n <= config.n_ctx:
            raise CircuitviewError(
                f"the prompt has {n} tokens, the model reads 1 to {config.n_ctx}; shorten it"
            )
        if not all(0 <= token < config.d_vocab for token in prompt.token_ids):
            raise CircuitviewError(f"a token id lies outside the vocabulary of {config.d_vocab}")
        return torch.tensor(prompt.token_ids)

    def logits(
        self, tokens: Int[Tensor, " pos"], hooks: Sequence[tuple[str, Hook]] = ()
    ) -> Float[Tensor, "pos d_vocab"]:
        """The model's own logits of one plain run, its soft cap applied, on its device.

        Raises:
            CircuitviewError: where the model's code fails.
        """
        tokens = tokens.unsqueeze(0).to(self.device)
        try:
            with self.bridge.hooks(fwd_hooks=list(hooks)) if hooks else nullcontext():
                output: Tensor = self.bridge(tokens, return_type="logits", use_cache=False)
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise CircuitviewError(
                f"{self.name}: {self.config.original_architecture} can't be run ({reason}); "
                "choose another model"
            ) from error
        return output[0]

    def _require_all(self, missing: set[str], layer: int) -> None:
        if missing:
            raise CircuitviewError(
                f"{self.name}: layer {layer} of {self.config.original_architecture} does not show "
                f"its {min(missing)}, so it can't be split into exact paths; choose another model"
            )

    def _check(self, recording: Recording, output: Tensor) -> None:
        """Refuse what would make the sums wrong before a layer is looked at.

        Raises:
            CircuitviewError: naming it.
        """
        why = None
        embedding, first = recording.embedding, recording.stream[0]
        written = embedding if recording.positions is None else embedding + recording.positions
        if not _close(written, first):
            why = "something stands between its embeddings and its first layer"
        elif float((recording.pattern.sum(-1) - 1).abs().max()) > _WEIGHT:
            why = "its attention weights don't sum to 1"
        else:
            logits, cap = recording.logits[-1], self.config.output_logits_soft_cap
            shown = logits if cap is None else cap * torch.tanh(logits / cap)
            if not _close(shown, output[-1].float().cpu()):
                why = "something stands between its unembedding and its logits"
        if why is not None:
            raise CircuitviewError(
                f"{self.name}: {why}, so that {self.config.original_architecture} can't be split "
                "into exact paths; choose another model"
            )


class _Softmax(TorchFunctionMode):
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
        if not torch.allclose(weights[0, self.head].cpu(), self.pattern, rtol=0, atol=_WEIGHT):
            return
        kept = scores[0, self.head].float().cpu()
        future = torch.ones_like(kept, dtype=torch.bool).triu(1)  # [dest, src]
        self.scores = kept.masked_fill(future | (kept < _MASKED), 0.0)


def _close(ours: Tensor, theirs: Tensor) -> bool:
    return float((ours - theirs).abs().max()) <= _SAME * max(float(theirs.abs().max()), 1e-30)


class _Tape:
    """What one run writes to: a recording in the making."""

    def __init__(self, model: BridgeModel, n: int, zeroed: frozenset[Head]) -> None:
        config = model.config
        L, H, D = config.n_layers, config.n_heads, config.d_model
        self.model, self.zeroed = model, zeroed
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
            "embed.hook_out": _into(self.embedding),
            "unembed.hook_out": _into(self.logits),
        }
        if self.positions is not None:
            points["pos_embed.hook_out"] = _into(self.positions)
        last = len(self.model.norms) - 1
        points[f"blocks.{last}.hook_out"] = _into(self.stream[-1])
        if self.model.final is not None:
            points["ln_final.hook_in"] = points.pop(f"blocks.{last}.hook_out")
        for layer, norms in enumerate(self.model.norms):
            block = f"blocks.{layer}."
            points[block + "hook_in"] = _into(self.stream[layer])
            points[block + "attn.hook_pattern"] = _into(self.pattern[layer])
            points[block + "attn.o.hook_in"] = partial(self._mixed, layer)
            points[block + "hook_mlp_out"] = _into(self.mlp_out[layer])
            behind = {"ln1_post": norms.attn_post, "ln2_post": norms.mlp_post}
            if not self.model.config.parallel_attn_mlp:
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

    def _mixed(self, layer: int, tensor: Tensor, **_: Any) -> Tensor | None:
        """Record z; where heads of this layer are zeroed, hand on what is left."""
        zeroed = [head.head for head in self.zeroed if head.layer == layer]
        target = self.z[layer].transpose(0, 1)  # [pos, head, d_head]
        if not zeroed:
            target.copy_(tensor.reshape(target.shape))
            return None
        left = tensor.clone()
        left.view(target.shape)[:, zeroed] = 0.0
        target.copy_(left.view(target.shape))
        return left

    def _scale(self, norm: Norm, target: Tensor, tensor: Tensor, **_: Any) -> None:
        target.copy_(norm.scale(tensor.reshape(len(target), -1).cpu()))

    def recording(self, prompt: Prompt, tokens: Int[Tensor, " pos"]) -> Recording:
        """What was recorded.

        Raises:
            CircuitviewError: where the model's code passed one of the points by.
        """
        model, norms = self.model, self.model.norms
        missing = sorted({name for name, _ in self.hooks()} - self.fired)
        if missing:
            raise CircuitviewError(
                f"{model.name}: {model.config.original_architecture} does not show {missing[0]}, "
                "so it can't be split into exact paths; choose another model"
            )
        ln_scale = torch.ones_like(self.mlp_scale)
        for layer, around in enumerate(norms):
            if around.attn is not None:
                ln_scale[layer] = around.attn.scale(self.stream[layer])
            if model.config.parallel_attn_mlp and around.mlp is not None:
                self.mlp_scale[layer] = around.mlp.scale(self.stream[layer])
        final = torch.ones(len(tokens))
        if model.final is not None:
            final.copy_(model.final.scale(self.stream[-1]))
        if self.positions is None:
            self.embedding = _written(self.embedding, self.stream[0])
        if model.value_side.logit_scale != 1:
            self.logits *= model.value_side.logit_scale
        behind_attn = any(around.attn_post is not None for around in norms)
        behind_mlp = any(around.mlp_post is not None for around in norms)
        return Recording(
            prompt=prompt,
            weights=model.value_side,
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
            rerun=partial(_rerun, model, prompt),
        )


def _into(target: Tensor) -> Hook:
    """A hook that copies what it sees into `target`."""

    def write(tensor: Tensor, **_: Any) -> None:
        # Without its batch axis; OPT's blocks have none inside.
        target.copy_(tensor.reshape(target.shape))

    return write


def _written(embedding: Tensor, first: Tensor) -> Tensor:
    """What the embedding writes: itself, times the number that the model multiplies it by."""
    multiplier = float((embedding * first).sum() / embedding.square().sum().clamp_min(1e-30))
    return first if _close(embedding * multiplier, first) else embedding


def _rerun(model: BridgeModel, prompt: Prompt, edits: Edits) -> Recording:
    return model.run(prompt, edits=edits)
