"""The logits after changes, without computing again what a change can't reach.

Runs of one prompt that differ from the clean one only from some layer on start there, from the
recorded stream, and several such runs are computed side by side. Of the first changed layer only
the change itself is computed and added to what was recorded, so that replacing a head's output by
itself changes nothing at all. Logits are made only where they are asked for.

Cost of one run from layer l on, against a forward pass: (n_layers − 1 − l) / n_layers of its
layers, and the unembedding of the dests asked for. With everything held a change is linear, and
only the change is carried on: the value side of those layers.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitview.core.config import ModelConfig
from circuitview.core.edits import Edits
from circuitview.core.names import Head
from circuitview.core.recording import Recording
from circuitview.core.runner import attend, mlp_output, scale_of, written_by
from circuitview.core.weights import Weights

Dests = Int[Tensor, " dest"]
Batch = tuple[list[int], Float[Tensor, "run dest d_vocab"]]
# So many logits are computed at once (float32: 64 MB).
_LOGITS = 16_000_000


def batches(
    edits: Sequence[Edits], config: ModelConfig, n: int, n_dests: int
) -> Iterator[list[int]]:
    """The places of `edits`, those that start in the same layer together, in batches that take at
    most as many multiplications as one forward pass, or are one run.

    Args:
        n: the positions of a forward pass, which makes the logits of all of them.
        n_dests: of how many each run makes them.
    """
    by_start: dict[int, list[int]] = {}
    for place, edit in enumerate(edits):
        by_start.setdefault(edit.first_layer(config.n_layers), []).append(place)
    layer, logits = n * _layer_cost(config, n), config.d_model * config.d_vocab
    whole, last = config.n_layers * layer + n * logits, max(1, n_dests) * logits
    for start, places in sorted(by_start.items()):
        cost = (config.n_layers - start) * layer + last
        most = max(1, min(whole // cost, _LOGITS // (max(1, n_dests) * config.d_vocab)))
        for first in range(0, len(places), most):
            yield places[first : first + most]


def _layer_cost(config: ModelConfig, n: int) -> int:
    """The multiplications that a layer takes for each position."""
    heads, shared = config.n_heads, config.n_key_value_heads or config.n_heads
    attention = 2 * (heads + shared) * config.d_model * config.d_head  # q and o; k and v
    attention += 2 * n * heads * config.d_head  # scores, and what they mix
    if config.attn_only:
        return attention
    matrices = 3 if config.gated_mlp else 2
    return attention + matrices * config.d_model * (config.d_mlp or 4 * config.d_model)


def frozen_batches(recording: Recording, edits: Sequence[Edits], dests: Dests) -> Iterator[Batch]:
    """frozen_logits, batch by batch: which of `edits`, and their logits."""
    for places in _batches_of(recording, edits, dests):
        yield places, frozen_logits(recording, [edits[place] for place in places], dests)


def free_batches(
    weights: Weights, recording: Recording, edits: Sequence[Edits], dests: Dests
) -> Iterator[Batch]:
    """free_logits, batch by batch: which of `edits`, and their logits."""
    for places in _batches_of(recording, edits, dests):
        chosen = [edits[place] for place in places]
        yield places, free_logits(weights, recording, chosen, dests)


def _batches_of(recording: Recording, edits: Sequence[Edits], dests: Dests) -> Iterator[list[int]]:
    return batches(edits, recording.weights.config, len(recording.tokens), len(dests))


def frozen_logits(
    recording: Recording, edits: Sequence[Edits], dests: Dests
) -> Float[Tensor, "run dest d_vocab"]:
    """The logits at `dests` after each of `edits`, for any kind of model.

    Held fixed: patterns, norm scales and MLP outputs, as recorded, where they are not replaced.
    run_frozen computes the same whole; here only the change is carried on.
    """
    with torch.inference_mode():
        weights, L = recording.weights, recording.weights.config.n_layers
        start = min(edit.first_layer(L) for edit in edits)
        change = recording.stream.new_zeros(len(edits), *recording.stream[0].shape)
        if any(edit.embedding is not None for edit in edits):
            for run, edit in enumerate(edits):
                if edit.embedding is not None:
                    change[run] = edit.embedding - recording.embedding
        elif start < L:
            written = _put_in(recording, start, edits)
            change = _frozen_behind(recording, start, edits, change, written)
            start += 1
        for layer in range(start, L):
            change = _frozen_layer(recording, layer, edits, change)
        for run, edit in enumerate(edits):
            if edit.added is not None:
                change[run] += edit.added
        last = change[:, dests] / recording.final_scale[dests].unsqueeze(-1)
        return weights.read_out(last).add_(_at(recording.logits, dests))  # [run, dest, d_vocab]


def _at(rows: Float[Tensor, "pos width"], dests: Dests) -> Float[Tensor, "dest width"]:
    """Some rows; no copy where they are the first ones, as those of a text are."""
    count = len(dests)
    return rows[:count] if torch.equal(dests, torch.arange(count)) else rows[dests]


def _frozen_layer(
    recording: Recording,
    layer: int,
    edits: Sequence[Edits],
    change: Float[Tensor, "run pos d_model"],
) -> Float[Tensor, "run pos d_model"]:
    """The change of the stream behind a layer, from the one before it."""
    weights = recording.weights
    read = change / recording.ln_scale[layer].unsqueeze(-1)  # [run, pos, d_model]
    values = read.unsqueeze(1) @ weights.W_V[layer]  # [run, kv_head, pos, d_head]
    values = values.repeat_interleave(weights.group, 1)  # [run, head, pos, d_head]
    z = recording.pattern[layer] @ values  # [run, head, dest, d_head]
    for run, edit in enumerate(edits):
        for head in edit.heads_of(layer):
            z[run, head.head] = _changed_z(recording, edit, head, values[run, head.head])
    flat = z.transpose(1, 2).flatten(2)  # [run, dest, head x d_head]
    written = flat @ weights.W_O[layer].flatten(0, 1)  # [run, dest, d_model]
    return _frozen_behind(recording, layer, edits, change, written)


def _frozen_behind(
    recording: Recording,
    layer: int,
    edits: Sequence[Edits],
    change: Float[Tensor, "run pos d_model"],
    written: Float[Tensor, "run pos d_model"],
) -> Float[Tensor, "run pos d_model"]:
    """The change behind a layer, from the one before it and that of what its heads write."""
    if recording.post_scale is not None:
        written = written / recording.post_scale[layer].unsqueeze(-1)
    change = change + written
    if recording.mlp_out is not None:
        for run, edit in enumerate(edits):
            if layer in edit.mlp_out:
                change[run] += edit.mlp_out[layer] - recording.mlp_out[layer]
    return change


def _changed_z(
    recording: Recording,
    edit: Edits,
    head: Head,
    change: Float[Tensor, "pos d_head"] | None = None,
) -> Float[Tensor, "pos d_head"]:
    """How the output of a replaced head differs from the recorded one; `change` is that of its
    values, None where there is none."""
    before = recording.z[head.layer, head.head]
    if head in edit.z:
        return edit.z[head] - before
    if head in edit.zeroed:
        return -before
    # Both in one way, so that its own pattern changes nothing at all.
    own = _mixed(recording, head, recording.pattern[head.layer, head.head])
    return _mixed(recording, head, edit.patterns[head], change) - own


def _put_in(
    recording: Recording, layer: int, edits: Sequence[Edits]
) -> Float[Tensor, "run pos d_model"]:
    """What the replaced heads of the first changed layer write beyond what was recorded."""
    written = recording.stream.new_zeros(len(edits), *recording.stream[0].shape)
    for run, edit in enumerate(edits):
        for head in edit.heads_of(layer):
            z = _changed_z(recording, edit, head)
            written[run] += z @ recording.weights.W_O_of(head)  # [pos, d_model]
    return written


def _mixed(
    recording: Recording,
    head: Head,
    pattern: Float[Tensor, "dest src"],
    change: Float[Tensor, "pos d_head"] | None = None,
) -> Float[Tensor, "pos d_head"]:
    """What a head makes of its recorded values, and of a change of them, under another pattern."""
    weights, layer = recording.weights, head.layer
    read = recording.stream[layer] / recording.ln_scale[layer].unsqueeze(-1)  # [src, d_model]
    values = read @ weights.W_V_of(head) + weights.b_V[layer, head.head // weights.group]
    return pattern @ (values if change is None else values + change)  # [dest, d_head]


def free_logits(
    weights: Weights, recording: Recording, edits: Sequence[Edits], dests: Dests
) -> Float[Tensor, "run dest d_vocab"]:
    """The logits at `dests` after each of `edits`, all that follows computed anew.

    Args:
        weights: folded; those of the recording.
        recording: the clean run.
        edits: with the same first changed layer, or the earliest of them is where all start.
    """
    with torch.inference_mode():
        config = weights.config
        L = config.n_layers
        start = min(edit.first_layer(L) for edit in edits)
        stream = recording.stream[start].expand(len(edits), -1, -1)  # [run, pos, d_model]
        if any(edit.embedding is not None for edit in edits):
            stream = stream.clone()
            for run, edit in enumerate(edits):
                if edit.embedding is not None:
                    stream[run] += edit.embedding - recording.embedding
        elif start < L:
            stream = _first_layer(weights, recording, start, edits)
            start += 1
        for layer in range(start, L):
            stream = _free_layer(weights, layer, edits, stream)
        if any(edit.added is not None for edit in edits):
            stream = stream.clone()
            for run, edit in enumerate(edits):
                if edit.added is not None:
                    stream[run] += edit.added
        last = stream[:, dests]
        last = last / scale_of(config, last).unsqueeze(-1)  # [run, dest, d_model]
        # The constant is added as the product is written: logits are most of what is computed.
        logits = torch.addmm(weights.b_U, last.flatten(0, 1), weights.W_U)  # [run x dest, d_vocab]
        return logits.view(*last.shape[:2], -1)


def _first_layer(
    weights: Weights, recording: Recording, layer: int, edits: Sequence[Edits]
) -> Float[Tensor, "run pos d_model"]:
    """The stream behind the first changed layer: what was recorded, and the change."""
    written = _put_in(recording, layer, edits)
    behind = recording.stream[layer + 1] + written
    if recording.mlp_out is None:
        return behind
    if not weights.config.parallel_attn_mlp:
        for run, edit in enumerate(edits):
            if layer in edit.mlp_out or not edit.heads_of(layer):
                continue
            read = recording.into_mlp(layer) + written[run]  # [pos, d_model]
            made = mlp_output(weights.blocks[layer], read, scale_of(weights.config, read))
            behind[run] = read + made
    for run, edit in enumerate(edits):
        if layer in edit.mlp_out:
            behind[run] += edit.mlp_out[layer] - recording.mlp_out[layer]
    return behind


def _free_layer(
    weights: Weights, layer: int, edits: Sequence[Edits], stream: Float[Tensor, "run pos d_model"]
) -> Float[Tensor, "run pos d_model"]:
    """The streams behind a layer, from those before it."""
    config = weights.config
    normed = stream / scale_of(config, stream).unsqueeze(-1)  # [run, pos, d_model]
    z = _attended(weights, layer, normed, edits)  # [run, head, pos, d_head]
    behind = stream + written_by(weights, layer, z)
    if weights.blocks:
        read = stream if config.parallel_attn_mlp else behind
        made = mlp_output(weights.blocks[layer], read, scale_of(config, read))
        for run, edit in enumerate(edits):
            if layer in edit.mlp_out:
                made[run] = edit.mlp_out[layer]
        behind = behind + made
    return behind


def _attended(
    weights: Weights, layer: int, normed: Float[Tensor, "run pos d_model"], edits: Sequence[Edits]
) -> Float[Tensor, "run head pos d_head"]:
    """What the heads of a layer mix in each run, replaced where the run's edits say so."""
    _, z = attend(weights, layer, normed)
    for run, edit in enumerate(edits):
        for head in edit.heads_of(layer):
            if head in edit.z:
                z[run, head.head] = edit.z[head]
            elif head in edit.zeroed:
                z[run, head.head] = 0.0
            else:
                kv_head = head.head // weights.group
                values = normed[run] @ weights.W_V[layer, kv_head] + weights.b_V[layer, kv_head]
                z[run, head.head] = edit.patterns[head] @ values  # [dest, d_head]
    return z
