"""Whether a model does what the sums take for granted, layer by layer.

Paths are exact only where the stream is the sum of what is written to it, what attention writes is
the sum of its heads, and a head mixes linear values by its pattern. Each of these is held against
what the model's own code reports of one short run. A model that fails is refused, with the layer.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from circuitview.core.frozen import run_frozen
from circuitview.core.model import Model
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.observation import LayerOutputs, Observation
from circuitview.core.orders import order_sums
from circuitview.core.prompt import Prompt
from circuitview.core.recording import Recording
from circuitview.core.target import Target
from circuitview.core.value_side import ValueSide

# Relative to the largest entry of what is compared. float32 rounds to 6e-8 of each entry, a product
# of rows of some thousands adds up to 1e-5 of that of the largest; a part that is left out of the
# sums shows in the first digits. float64 has nine digits more.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}
_N_TOKENS = 8

ATTENTION = "resid_pre + attention = resid_mid"
ATTENTION_ONLY = "resid_pre + attention = resid_post"
MLP = "resid_mid + MLP = resid_post"
PARALLEL = "resid_pre + attention + MLP = resid_post"
HEADS = "sum of heads + b_O = attention"
VALUES = "pattern x values = z"
ROWS = "pattern rows = 1"
STREAM = "recorded stream = resid_pre"
MLP_OUT = "recorded MLP = MLP"
LOGITS = "recorded logits = logits"
FROZEN = "logits of the frozen run = logits"
PATHS = "sum of paths = logit"

# What most likely is behind an identity that fails.
_REASONS = {
    ATTENTION: "something stands between attention and the stream that this program does not know",
    ATTENTION_ONLY: "something else than attention writes to the stream",
    MLP: "something stands between the MLP and the stream that this program does not know",
    PARALLEL: "something else than attention and MLP writes to the stream",
    HEADS: "something stands behind attention that this program does not know",
    VALUES: "its values are no linear map of the stream, or its heads mix more than values",
    ROWS: "its attention keeps weight back, as sinks do, or is changed behind its softmax",
    STREAM: "two runs of the same prompt differ: the model keeps something between runs",
    MLP_OUT: "two runs of the same prompt differ: the model keeps something between runs",
    LOGITS: "two runs of the same prompt differ: the model keeps something between runs",
    FROZEN: "something stands before the logits that this program does not know",
    PATHS: "a path is left out of the sums",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far the two sides of an identity lie apart.

    Attributes:
        identity: in words.
        layer: None for what concerns the whole model.
        error: the largest absolute difference.
        largest: the largest entry of what is compared.
        tolerance: the largest relative error that rounding explains.
    """

    identity: str
    layer: int | None
    error: float
    largest: float
    tolerance: float

    @property
    def relative(self) -> float:
        """The error as a share of the largest entry."""
        if self.error == 0:
            return 0.0
        return self.error / self.largest if self.largest else float("inf")

    @property
    def passed(self) -> bool:
        return self.relative <= self.tolerance  # False where anything is NaN

    @property
    def failure(self) -> str:
        """What to say where it does not pass."""
        where = "" if self.layer is None else f"layer {self.layer}: "
        if not math.isfinite(self.error):
            return f"{where}{self.identity} can't be compared: numbers pass what floats can hold"
        return (
            f"{where}{self.identity} fails by {self.error:.2g} where entries reach "
            f"{self.largest:.2g}: {_REASONS[self.identity]}"
        )


@dataclass(frozen=True, slots=True)
class DestCheck:
    """The sum of all paths to the top prediction at one dest (logits)."""

    dest: int
    label: str
    target: str
    total: float
    logit: float
    compared: Comparison


@dataclass(frozen=True, eq=False)
class CheckReport:
    """What came of a check.

    Attributes:
        model: its name.
        dtype, stored, device: the precision that was checked, that of the file, and where it ran.
        labels: of the prompt.
        comparisons: layer by layer, then those of the whole model.
        dests: three dests.
    """

    model: str
    dtype: DtypeName
    stored: str
    device: str
    labels: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    dests: tuple[DestCheck, ...]

    @cached_property
    def everything(self) -> tuple[Comparison, ...]:
        """All comparisons, in the order in which a fault would show first."""
        return (*self.comparisons, *(dest.compared for dest in self.dests))

    @property
    def first_failure(self) -> Comparison | None:
        return next((compared for compared in self.everything if not compared.passed), None)

    @property
    def passed(self) -> bool:
        return self.first_failure is None

    @property
    def worst(self) -> Comparison:
        """The comparison with the largest relative error."""
        return max(self.everything, key=lambda compared: compared.relative)

    @property
    def identities(self) -> tuple[str, ...]:
        """What was compared in layers."""
        names = (found.identity for found in self.comparisons if found.layer is not None)
        return tuple(dict.fromkeys(names))

    def of_layer(self, layer: int) -> dict[str, Comparison]:
        return {found.identity: found for found in self.comparisons if found.layer == layer}

    def require_passed(self) -> None:
        """Pass only a model whose paths are exact.

        Raises:
            CircuitviewError: naming the first layer that fails, the identity, its error and the
                likely reason.
        """
        failed = self.first_failure
        if failed is not None:
            raise CircuitviewError(
                f"{self.model}: {failed.failure}; its paths would not be exact, choose another "
                "model"
            )


def check_model(
    model: Model, prompt: Prompt | None = None, dtype: DtypeName = "float32"
) -> CheckReport:
    """The identities behind the sums, in every layer, on one run of `model`.

    Held fixed where paths are summed: patterns, norm scales and MLP outputs. Cost: two forward
    passes of `prompt`, and the value side of one for each of three dests.

    Args:
        model: an open one.
        prompt: what it reads; None takes a few tokens from all over its vocabulary.
        dtype: the precision to check.

    Raises:
        CircuitviewError: where the model can't run in `dtype`, or not read the prompt.
    """
    model.require(dtype)
    prompt = prompt or short_prompt(model)
    observed, recording = model.observe(prompt, dtype), model.run(prompt, dtype)
    with torch.inference_mode():
        compared = tuple(_layers(observed, recording)) + _whole(observed, recording)
    dests = sorted({0, len(prompt) // 2, len(prompt) - 1})
    return CheckReport(
        model=model.name,
        dtype=dtype,
        stored=model.stored,
        device=model.device,
        labels=prompt.labels,
        comparisons=compared,
        dests=tuple(_dest(model, recording, dest) for dest in dests),
    )


def require_exact(model: Model, dtype: DtypeName = "float32") -> Model:
    """`model`, where it does what the sums take for granted, in `dtype` or, where it can't run in
    that, in the precision that it runs in.

    Raises:
        CircuitviewError: where it does something that is not summed.
    """
    check_model(model, dtype=model.nearest(dtype)).require_passed()
    return model


def short_prompt(model: Model) -> Prompt:
    """BOS, where the model starts with it, and tokens spread evenly over the vocabulary."""
    config, tokenizer = model.config, model.tokenizer
    bos = () if tokenizer.bos_token_id is None else (tokenizer.bos_token_id,)
    if not tokenizer.bos_by_default:
        bos = ()
    spread = tuple((2 * k + 1) * config.d_vocab // (2 * _N_TOKENS) for k in range(_N_TOKENS))
    ids = (*bos, *spread)[: config.n_ctx]
    return Prompt(model.name, ids, tuple(tokenizer.label(token) for token in ids))


def _layers(observed: Observation, recording: Recording) -> Iterator[Comparison]:
    weights = recording.weights
    tolerance = TOLERANCE[weights.dtype]
    for layer, outputs in enumerate(observed.layers):
        sides = [
            *_additions(outputs),
            (HEADS, _heads(weights, recording, layer, outputs), outputs.attn_out),
            (VALUES, _mixed(weights, recording, layer, outputs), outputs.z),
            (ROWS, outputs.pattern.sum(-1), torch.ones_like(outputs.pattern[..., 0])),
            (STREAM, recording.stream[layer], outputs.resid_pre),
        ]
        if recording.mlp_out is not None and outputs.mlp_out is not None:
            sides.append((MLP_OUT, recording.mlp_out[layer], outputs.mlp_out))
        for identity, ours, theirs in sides:
            yield _compare(identity, layer, ours, theirs, tolerance)


def _additions(outputs: LayerOutputs) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Left and right side of how one layer adds to the stream."""
    added = outputs.resid_pre + outputs.attn_out
    if outputs.mlp_out is None:
        yield ATTENTION_ONLY, added, outputs.resid_post
    elif outputs.resid_mid is None:
        yield PARALLEL, added + outputs.mlp_out, outputs.resid_post
    else:
        yield ATTENTION, added, outputs.resid_mid
        yield MLP, outputs.resid_mid + outputs.mlp_out, outputs.resid_post


def _heads(weights: ValueSide, recording: Recording, layer: int, outputs: LayerOutputs) -> Tensor:
    """What the heads of a layer and its biases write to the stream."""
    flat = outputs.z.transpose(0, 1).flatten(1)  # [pos, head x d_head]
    written = flat @ weights.W_O[layer].flatten(0, 1) + weights.b_O[layer]  # [pos, d_model]
    if recording.post_scale is not None:
        written = written / recording.post_scale[layer].unsqueeze(-1)
    return written if weights.b_post is None else written + weights.b_post[layer]


def _mixed(weights: ValueSide, recording: Recording, layer: int, outputs: LayerOutputs) -> Tensor:
    """What the heads of a layer mix, from the recorded stream, its scale and the pattern."""
    read = recording.stream[layer] / recording.ln_scale[layer].unsqueeze(-1)  # [src, d_model]
    values = read @ weights.W_V[layer] + weights.b_V[layer].unsqueeze(1)  # [kv_head, src, d_head]
    return outputs.pattern @ values.repeat_interleave(weights.group, 0)  # [head, dest, d_head]


def _whole(observed: Observation, recording: Recording) -> tuple[Comparison, ...]:
    tolerance = TOLERANCE[recording.weights.dtype]
    frozen = run_frozen(recording)
    return (
        _compare(LOGITS, None, recording.logits, observed.logits, tolerance),
        _compare(FROZEN, None, frozen.logits, observed.logits, tolerance),
    )


def _compare(
    identity: str, layer: int | None, ours: Tensor, theirs: Tensor, tolerance: float
) -> Comparison:
    error = float((ours - theirs).abs().max())
    return Comparison(identity, layer, error, float(theirs.abs().max()), tolerance)


def _dest(model: Model, recording: Recording, dest: int) -> DestCheck:
    """All paths to the top prediction at `dest` together: one pass, whatever the depth."""
    weights = recording.weights
    token = int(recording.logits[dest].argmax())
    target = Target(dest, token, model.tokenizer.label(token))
    sums = order_sums(recording, target, most=0).by_source  # [source, order]
    total = float(sums.sum()) + target.constant(weights)
    logit = target.of(recording.logits[dest].double())
    largest = max(abs(logit), float(abs(sums).max()))
    return DestCheck(
        dest=dest,
        label=recording.prompt.labels[dest],
        target=target.label,
        total=total,
        logit=logit,
        compared=Comparison(PATHS, None, abs(logit - total), largest, TOLERANCE[weights.dtype]),
    )
