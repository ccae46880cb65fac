"""The training loop: resumable, and finished by a bundle that opens like any other.

While a run lasts, its state lies in OUT/training (weights, optimiser, tokens, settings). Calling
again with the same texts and settings goes on from the last saved step and ends with the same
weights as a run that was never interrupted; at the end the folder is removed.
"""

import hashlib
import math
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from circuitview.core.config import ModelConfig
from circuitview.core.files import read_text, write_bytes_whole, write_whole
from circuitview.core.head_kinds import head_kinds
from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress
from circuitview.core.tokenizer import train_tokenizer
from circuitview.core.training.network import Network
from circuitview.core.training.rows import (
    Batch,
    Rows,
    Tokens,
    encode_texts,
    repeated_random,
    windows,
)
from circuitview.core.training.settings import TrainingSettings
from circuitview.core.weights import fold

_SAVE_EVERY = 120.0  # seconds between two saved states
_WARM_UP = 0.01  # share of the steps over which the rates rise
_LOWEST_RATE = 0.05
_RUN_FILES = ("run.json", "tokenizer.json", "tokens.npy", "state.pt")


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """What a model costs on text it has not seen [nats a token].

    `first` and `second` are the two halves of a repeated random sequence: an induction head shows
    as a second half far below the first.
    """

    validation: float | None
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class TrainingPoint:
    """Where a run stands: the loss of the last batches [nats]; now and then, the losses above."""

    step: int
    loss: float
    losses: Losses | None = None


class TrainingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was done and measured, for the model card."""

    settings: TrainingSettings
    texts: list[str]
    held_out: str | None
    text_tokens: int
    steps: int
    seconds: float
    losses: Losses


class _Identity(msgspec.Struct, frozen=True):
    """What makes two calls the same run."""

    settings: TrainingSettings
    texts: str


@dataclass(eq=False)
class _State:
    network: Network
    optimiser: torch.optim.AdamW
    step: int = 0
    seconds: float = 0.0


def train(
    out: FilePath,
    texts: Sequence[FilePath],
    settings: TrainingSettings,
    held_out: FilePath | None = None,
    report_every: int = 500,
) -> Generator[Progress, None, TrainingRecord]:
    """Train on `texts` and write the bundle to the folder `out`.

    Yields a Progress after each step (partial: a TrainingPoint). Cost: about 6 x the parameters
    that a token meets, in multiplications, for each token.

    Args:
        out: the bundle's folder; made where it is missing.
        texts: UTF-8 text files.
        settings: sizes, schedule, seed.
        held_out: a text for the validation loss, not trained on.
        report_every: steps between two measurements of the losses.

    Raises:
        CircuitviewError: where a text can't be read or is too short, nothing is to train on, or
            `out` holds another run or a finished model.
    """
    texts = [path for path in texts if held_out is None or path.resolve() != held_out.resolve()]
    if not texts:
        besides = "" if held_out is None else " besides the held-out one"
        raise CircuitviewError(
            f"no text to train on{besides}; name text files or a folder of .txt files"
        )
    if (out / "model.safetensors").exists():
        raise CircuitviewError(f"{out} holds a finished model already; choose another --out")
    folder = out / "training"
    tokenizer, stream, held = _prepare(folder, texts, settings, held_out)
    rows = Rows(stream, settings)
    state = _restore(folder, settings)
    saved = time.monotonic()
    running = math.nan
    n_steps = rows.n_steps
    try:
        while state.step < n_steps:
            started = time.monotonic()
            loss = _step(state, rows.batch(state.step), n_steps, settings)
            _require_finite(loss, state.step, out)
            running = loss if math.isnan(running) else 0.98 * running + 0.02 * loss
            state.step += 1
            state.seconds += time.monotonic() - started
            losses = None
            if state.step % report_every == 0:
                losses = measure(state.network, settings, held)
            if time.monotonic() - saved > _SAVE_EVERY:
                _save(folder, state)
                saved = time.monotonic()
            yield Progress(state.step, n_steps, TrainingPoint(state.step, running, losses))
    except GeneratorExit:
        # Closed between two steps: nothing that was done is lost.
        _save(folder, state)
        raise
    measured = measure(state.network, settings, held)
    _require_finite(measured.second, n_steps, out)
    record = TrainingRecord(
        settings=settings,
        texts=sorted(path.stem for path in texts),
        held_out=None if held_out is None else held_out.stem,
        text_tokens=len(stream),
        steps=n_steps,
        seconds=state.seconds,
        losses=measured,
    )
    _finish(out, state.network, tokenizer, record)
    for name in _RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    return record


def _prepare(
    folder: FilePath,
    texts: Sequence[FilePath],
    settings: TrainingSettings,
    held_out: FilePath | None,
) -> tuple[Tokenizer, npt.NDArray[np.uint16], Tokens | None]:
    """The tokenizer and the token stream, those of the run in `folder` or new ones; and the rows
    of the held-out text."""
    if settings.d_vocab > 2**16:
        raise CircuitviewError(f"vocabulary {settings.d_vocab} is too large; at most {2**16}")
    digest = hashlib.sha256()
    for path in texts:
        digest.update(read_text(path).encode())
    identity = msgspec.json.encode(_Identity(settings, digest.hexdigest()))
    mark = folder / "run.json"
    if mark.exists() and mark.read_bytes() != identity:
        raise CircuitviewError(
            f"{folder} holds an interrupted run with other texts or settings; "
            "call it as before to go on, or choose another --out"
        )
    if not mark.exists():
        # Everything is made and checked before the first file is written.
        tokenizer = train_tokenizer(texts, settings.d_vocab)
        if tokenizer.get_vocab_size() < settings.d_vocab:
            raise CircuitviewError(
                f"the texts give only {tokenizer.get_vocab_size()} tokens, "
                f"{settings.d_vocab} asked for; give more text or a smaller --vocabulary"
            )
        stream = encode_texts(tokenizer, texts)
        Rows(stream, settings)
        _held_rows(tokenizer, held_out, settings)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CircuitviewError(
                f"can't make {folder}: {error.strerror}; choose another --out"
            ) from None
        write_whole(folder / "tokenizer.json", lambda path: tokenizer.save(str(path)))
        write_whole(folder / "tokens.npy", lambda path: np.save(path, stream))
        write_bytes_whole(mark, identity)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    stream = np.load(folder / "tokens.npy", allow_pickle=False)
    return tokenizer, stream, _held_rows(tokenizer, held_out, settings)


def _held_rows(
    tokenizer: Tokenizer, held_out: FilePath | None, settings: TrainingSettings
) -> Tokens | None:
    """The rows of the validation loss, where a text is held out.

    Raises:
        CircuitviewError: where it can't be read, or is shorter than one row.
    """
    if held_out is None:
        return None
    return windows(encode_texts(tokenizer, [held_out]), settings.n_ctx, most=128)


def _restore(folder: FilePath, settings: TrainingSettings) -> _State:
    network = Network(settings)
    attention: list[torch.nn.Parameter] = []
    rest: list[torch.nn.Parameter] = []
    for name in network.names:
        parameter = network.get_parameter(network.names[name])
        (attention if ".attn.W_" in name else rest).append(parameter)
    optimiser = torch.optim.AdamW(
        [
            {"params": attention, "peak": settings.rate_attention},
            {"params": rest, "peak": settings.rate_rest},
        ],
        lr=settings.rate_attention,
        betas=(0.9, 0.98),
        weight_decay=settings.weight_decay,
    )
    state = _State(network, optimiser)
    path = folder / "state.pt"
    if path.exists():
        saved = torch.load(path, weights_only=True)
        network.load_state_dict(saved["network"])
        optimiser.load_state_dict(saved["optimiser"])
        state.step, state.seconds = saved["step"], saved["seconds"]
    return state


def _save(folder: FilePath, state: _State) -> None:
    content = {
        "network": state.network.state_dict(),
        "optimiser": state.optimiser.state_dict(),
        "step": state.step,
        "seconds": state.seconds,
    }
    write_whole(folder / "state.pt", lambda path: torch.save(content, path))


def _require_finite(loss: float, step: int, out: FilePath) -> None:
    """Let no run go on that has left the numbers: its model could never be opened."""
    if not math.isfinite(loss):
        raise CircuitviewError(
            f"{out}: the loss is {loss} at step {step}, the run diverged; "
            "choose lower rates and another --out"
        )


def rate_share(step: int, n_steps: int) -> float:
    """The share of the peak rate at `step`: a short rise, then a cosine down to 5 percent."""
    rise = max(1, round(n_steps * _WARM_UP))
    if step < rise:
        return (step + 1) / rise
    angle = math.pi * (step - rise) / max(1, n_steps - rise)
    return _LOWEST_RATE + (1 - _LOWEST_RATE) * 0.5 * (1 + math.cos(angle))


def _step(state: _State, batch: Batch, n_steps: int, settings: TrainingSettings) -> float:
    share = rate_share(state.step, n_steps)
    for group in state.optimiser.param_groups:
        group["lr"] = group["peak"] * share
    tokens = torch.from_numpy(batch.tokens)
    counted = torch.from_numpy(batch.counted)
    with torch.autocast("cpu", torch.bfloat16, enabled=settings.precision == "bfloat16"):
        logits = state.network(tokens[:, :-1])
    loss = functional.cross_entropy(logits.float()[counted], tokens[:, 1:][counted])
    state.optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(state.network.parameters(), 1.0)
    state.optimiser.step()
    return float(loss.detach())


@torch.no_grad()
def measure(network: Network, settings: TrainingSettings, held: Tokens | None) -> Losses:
    """The losses of the model as it is, in float32 [nats a token]."""
    repeated = repeated_random(settings.d_vocab, settings.n_ctx, count=32, seed=settings.seed + 1)
    half = repeated.shape[1] // 2
    by_position = _losses(network, repeated).mean(axis=0)
    validation = None
    if held is not None:
        pieces = [_losses(network, held[start : start + 8]) for start in range(0, len(held), 8)]
        validation = float(np.concatenate(pieces).mean())
    # The first token of the repeat can't be foreseen: the second half starts behind it.
    return Losses(
        validation=validation,
        first=float(by_position[:half].mean()),
        second=float(by_position[half + 1 :].mean()),
    )


def _losses(network: Network, rows: Tokens) -> npt.NDArray[np.float64]:
    """The loss of each next token [row, pos − 1]."""
    tokens = torch.from_numpy(rows)
    logits = network(tokens[:, :-1])
    each = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    result: npt.NDArray[np.float64] = each.view(tokens.shape[0], -1).double().numpy()
    return result


def _finish(out: FilePath, network: Network, tokenizer: Tokenizer, record: TrainingRecord) -> None:
    from circuitview.core.checkpoint.bundle import write_bundle
    from circuitview.core.training.card import model_card

    settings = record.settings
    config = ModelConfig(
        n_layers=settings.n_layers,
        n_heads=settings.n_heads,
        d_model=settings.d_model,
        d_head=settings.d_head,
        n_ctx=settings.n_ctx,
        d_vocab=settings.d_vocab,
        normalization_type="LN",
        positional_embedding_type="standard",
        eps=settings.eps,
        bos_token_id=0,
    )
    arrays = {name: weight.to(torch.float16) for name, weight in network.named_weights()}
    kinds = head_kinds(fold(config, arrays).to(torch.float32))
    card = model_card(out.name, record, kinds)
    write_bundle(out, config, arrays, tokenizer.to_str(pretty=False), card)
