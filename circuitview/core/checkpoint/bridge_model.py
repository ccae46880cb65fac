"""A model of another program, run by that program's own code under transformer_lens' hooks.

bridge_tape.py is what a run is written to. Hooks live inside one `with`, so that none outlives an
error.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.checkpoint.bridge_edits import EditHooks, logits_at
from circuitview.core.checkpoint.bridge_norms import Norm
from circuitview.core.checkpoint.bridge_tape import WEIGHT, Hook, Softmax, Tape, close, into
from circuitview.core.checkpoint.bridge_weights import BlockNorms
from circuitview.core.edits import Edits
from circuitview.core.frozen import impose, run_frozen
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, DtypeName, Head
from circuitview.core.observation import LayerOutputs, Observation
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.resumed import frozen_batches
from circuitview.core.value_side import ValueSide

_SHOWN = {"resid_pre", "resid_post", "attn_out", "mlp_out", "z", "pattern"}


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
        that comes after them; with frozen patterns the model is run for its embeddings alone.

        Raises:
            CircuitviewError: see Model.run; and where the model's own code does something that
                the sums don't know of.
        """
        self.require(dtype)
        edits = edits or Edits()
        if edits.frozen is not None:
            return run_frozen(impose(edits.frozen, self.run(prompt)), edits)
        tokens = self._tokens(prompt)
        clean = None if edits.embedding is None else self.run(prompt).embedding
        with torch.inference_mode():
            tape = Tape(self.value_side, self.norms, self.final, len(tokens))
            output = self.logits(tokens, [*self._edit_hooks(edits, clean), *tape.hooks()])
            recording = tape.recording(prompt, tokens, partial(_rerun, self, prompt), edits)
            self._check(recording, output)
        return recording

    def logits_after(
        self,
        recording: Recording,
        edits: Sequence[Edits],
        dests: Int[Tensor, " dest"],
        frozen: bool = False,
    ) -> Iterator[tuple[list[int], Float[Tensor, "run dest d_vocab"]]]:
        """See Model.logits_after. Its blocks can't be entered midway: each run that is not frozen
        and changes more than the last stream is a whole forward pass, of which only the logits
        asked for are kept."""
        if frozen:
            yield from frozen_batches(recording, edits, dests)
            return
        for place, edit in enumerate(edits):
            if edit.first_layer(self.config.n_layers) == self.config.n_layers:
                yield [place], self._read_last(recording, edit, dests).unsqueeze(0)
                continue
            kept: list[Tensor] = []
            with torch.inference_mode():
                hooks = self._edit_hooks(edit, recording.embedding)
                self.logits(recording.tokens, [*hooks, logits_at(dests, kept)])
                found = kept[0] * self.value_side.logit_scale  # [dest, d_vocab]
            yield [place], found.unsqueeze(0)

    def _read_last(
        self, recording: Recording, edit: Edits, dests: Int[Tensor, " dest"]
    ) -> Float[Tensor, "dest d_vocab"]:
        """The logits where nothing but the stream behind the last layer is changed; only the final
        norm reacts."""
        with torch.inference_mode():
            last = recording.stream[-1][dests]
            if edit.added is not None:
                last = last + edit.added[dests]
            if self.final is not None:
                last = last / self.final.scale(last).to(last.dtype).unsqueeze(-1)
            return self.value_side.read_out(last) + self.value_side.constants()

    def _edit_hooks(self, edits: Edits, clean: Tensor | None) -> list[tuple[str, Hook]]:
        return EditHooks(self.value_side, self.norms, self.final, edits, clean).hooks()

    def scores(self, recording: Recording, head: Head) -> Float[Tensor, "dest src"]:
        """The scores of one head as the model's softmax saw them, scaling and soft cap included; 0
        where nothing may be looked at. Cost: one forward pass.

        Raises:
            CircuitviewError: where the model's code does not show its scores.
        """
        pattern = recording.pattern[head.layer, head.head]
        seen = Softmax(head.head, pattern)
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

    @property
    def runs_by(self) -> str:
        return f"transformers' {self.config.original_architecture}"

    @property
    def carries_mlps(self) -> bool:
        return bool(self.value_side.mlps)

    def observe(self, prompt: Prompt, dtype: DtypeName = "float32") -> Observation:
        """What a plain run did, layer by layer, as the model's own hooks report it.

        Cost: one forward pass; memory as in run, twice over.
        """
        self.require(dtype)
        tokens = self._tokens(prompt)
        n, config = len(tokens), self.config
        L, H, dh = config.n_layers, config.n_heads, config.d_head
        seen: list[dict[str, Tensor]] = [{} for _ in range(L)]
        logits = torch.zeros(n, config.d_vocab)

        def keep(layer: int, key: str, shape: tuple[int, ...], tensor: Tensor, **_: Any) -> None:
            seen[layer][key] = tensor.reshape(shape).cpu().clone()

        hooks: list[tuple[str, Hook]] = [("unembed.hook_out", into(logits))]
        stream = (n, config.d_model)
        for layer in range(L):
            block = f"blocks.{layer}."
            points = {
                "resid_pre": ("hook_in", stream),
                "resid_post": ("hook_out", stream),
                "attn_out": ("hook_attn_out", stream),
                "mlp_out": ("hook_mlp_out", stream),
                "z": ("attn.o.hook_in", (n, H, dh)),
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
                outputs["z"] = outputs["z"].transpose(0, 1)  # [head, pos, d_head]
            return Observation(
                layers=tuple(LayerOutputs(**outputs) for outputs in seen),
                logits=logits * self.value_side.logit_scale,
            )

    def _tokens(self, prompt: Prompt) -> Int[Tensor, " pos"]:
        """The prompt's tokens, of which the model can read every one."""
        prompt.require_readable(self.config)
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
        if not close(written, first):
            why = "something stands between its embeddings and its first layer"
        elif float((recording.pattern.sum(-1) - 1).abs().max()) > WEIGHT:
            why = "its attention weights don't sum to 1"
        else:
            logits, cap = recording.logits[-1], self.config.output_logits_soft_cap
            shown = logits if cap is None else cap * torch.tanh(logits / cap)
            if not close(shown, output[-1].float().cpu()):
                why = "something stands between its unembedding and its logits"
        if why is not None:
            raise CircuitviewError(
                f"{self.name}: {why}, so that {self.config.original_architecture} can't be split "
                "into exact paths; choose another model"
            )


def _rerun(model: "BridgeModel", prompt: Prompt, edits: Edits) -> Recording:
    return model.run(prompt, edits=edits)
