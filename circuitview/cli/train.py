"""`circuitview train`: train a small attention-only model on one's own text."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from circuitview.cli.outcome import StoppedError
from circuitview.cli.waiting import asked_to_stop, duration
from circuitview.core.names import CircuitviewError
from circuitview.core.training.settings import TrainingSettings

if TYPE_CHECKING:  # torch is loaded when the training starts
    from circuitview.core.progress import Progress
    from circuitview.core.training.run import Losses, TrainingRecord

_DEFAULT = TrainingSettings()
_WIDEST = 65_536  # a slip of the finger should not ask for all memory there is
_QUIET_SECONDS = 30.0  # between two lines where stderr is no terminal


def _option(name: str, text: str, **limits: Any) -> Any:
    return typer.Option(name, help=text, **limits)


def train(
    texts: Annotated[
        list[FilePath],
        typer.Argument(metavar="TEXT", help="UTF-8 text files, or folders of .txt files."),
    ],
    out: Annotated[
        FilePath, typer.Option("--out", metavar="DIR", help="The folder of the finished model.")
    ],
    held_out: Annotated[
        FilePath | None,
        typer.Option(
            "--held-out",
            metavar="FILE",
            help="A text for the validation loss; left out of the training where TEXT has it.",
        ),
    ] = None,
    layers: Annotated[int, _option("--layers", "Layers", min=1, max=256)] = _DEFAULT.n_layers,
    heads: Annotated[int, _option("--heads", "Heads a layer", min=1, max=1024)] = _DEFAULT.n_heads,
    d_model: Annotated[
        int, _option("--d-model", "Width of the residual stream", min=2, max=_WIDEST)
    ] = _DEFAULT.d_model,
    d_head: Annotated[
        int, _option("--d-head", "Width of a head", min=2, max=_WIDEST)
    ] = _DEFAULT.d_head,
    n_ctx: Annotated[
        int, _option("--n-ctx", "Longest prompt [tokens]", min=32, max=_WIDEST)
    ] = _DEFAULT.n_ctx,
    vocabulary: Annotated[
        int,
        _option("--vocabulary", "Byte-level BPE tokens, BOS and the 256 bytes included", min=257),
    ] = _DEFAULT.d_vocab,
    tokens: Annotated[
        int, _option("--tokens", "Tokens trained on in all", min=1, max=10**12)
    ] = _DEFAULT.tokens,
    batch_tokens: Annotated[
        int, _option("--batch-tokens", "Tokens a step", min=1, max=2**22)
    ] = _DEFAULT.batch_tokens,
    repeat_stage: Annotated[
        float,
        _option("--repeat-stage", "Share of the tokens first spent on repeats alone", min=0, max=1),
    ] = _DEFAULT.repeat_stage,
    repeat_first: Annotated[
        float, _option("--repeat-first", "Share of repeated rows after that", min=0, max=1)
    ] = _DEFAULT.repeat_first,
    repeat_last: Annotated[
        float, _option("--repeat-last", "Share of repeated rows at the end", min=0, max=1)
    ] = _DEFAULT.repeat_last,
    started_head: Annotated[
        bool,
        typer.Option(
            "--started-head/--no-started-head",
            help="Whether head 0.0 starts out looking one position back",
        ),
    ] = _DEFAULT.started_head,
    rate_attention: Annotated[
        float, _option("--rate-attention", "Peak learning rate of the heads' matrices", min=0)
    ] = _DEFAULT.rate_attention,
    rate_rest: Annotated[
        float, _option("--rate-rest", "Peak learning rate of all else", min=0)
    ] = _DEFAULT.rate_rest,
    precision: Annotated[
        Literal["float32", "bfloat16"], _option("--precision", "Of the matrix products")
    ] = _DEFAULT.precision,
    seed: Annotated[
        int, _option("--seed", "Of weights and rows", min=0, max=2**63 - 1)
    ] = _DEFAULT.seed,
    threads: Annotated[
        int | None,
        _option("--threads", "Processor cores; default: torch's choice", min=1, max=1024),
    ] = None,
) -> None:
    """Train a model on your own text.

    DIR is ready for every other command then. The defaults take hours on two cores; --tokens 60000
    tries it out in a minute.

    Part of the rows are a stretch of text or of random tokens, repeated, so that induction heads
    form early. Losses are in nats a token; "copy" is a repeated random sequence, first and second
    half. An interrupted run goes on where it was when the same command is called again.
    """
    files = text_files(texts)
    if held_out is not None and not held_out.is_file():
        raise CircuitviewError(f"{held_out}: no such file; --held-out names a text file")
    settings = TrainingSettings(
        n_layers=layers,
        n_heads=heads,
        d_model=d_model,
        d_head=d_head,
        n_ctx=n_ctx,
        d_vocab=vocabulary,
        tokens=tokens,
        batch_tokens=batch_tokens,
        repeat_stage=repeat_stage,
        repeat_first=repeat_first,
        repeat_last=repeat_last,
        started_head=started_head,
        rate_attention=rate_attention,
        rate_rest=rate_rest,
        precision=precision,
        seed=seed,
    )
    record = _run(out, files, settings, held_out, threads)
    _say(
        f"{out}: {record.steps:,} steps in {duration(record.seconds)}; {_losses(record.losses)}. "
        f"Open it with: circuitview open {out}"
    )


def text_files(texts: Sequence[FilePath]) -> list[FilePath]:
    """The files that `texts` name: files as they are, of folders their .txt files by name.

    Raises:
        CircuitviewError: where one is missing, or a folder has no .txt file.
    """
    files: list[FilePath] = []
    for path in texts:
        if path.is_dir():
            found = sorted(path.glob("*.txt"))
            if not found:
                raise CircuitviewError(f"{path} has no .txt file; name a folder of text files")
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise CircuitviewError(f"{path}: no such file or folder; name text to train on")
    return files


def _run(
    out: FilePath,
    files: Sequence[FilePath],
    settings: TrainingSettings,
    held_out: FilePath | None,
    threads: int | None,
) -> "TrainingRecord":
    """The record of the finished run; progress goes to stderr."""
    import torch

    from circuitview.core.training.run import train as train_model

    if threads is not None:
        torch.set_num_threads(threads)
    _say(f"reading {len(files)} text" + ("" if len(files) == 1 else "s"))
    steps = train_model(out, files, settings, held_out)
    lines = _Lines()
    with asked_to_stop() as stop:
        try:
            while True:
                progress = next(steps)
                lines.show(progress)
                if stop.is_set() and progress.done < progress.total:
                    steps.close()
                    lines.end()
                    raise StoppedError(
                        f"stopped at step {progress.done:,} of {progress.total:,}; call the same "
                        "command again to go on"
                    )
        except StopIteration as finished:
            lines.end()
            record: TrainingRecord = finished.value
            return record


class _Lines:
    """Progress on stderr: one line, rewritten, on a terminal; a line now and then elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started = time.monotonic()
        self._first: int | None = None
        self._shown = 0.0
        self._width = 0

    def show(self, progress: "Progress") -> None:
        point = progress.partial
        now = time.monotonic()
        if self._first is None:
            self._first, self._started = progress.done - 1, now
        if point.losses is not None:
            self.end()
            _say(f"step {progress.done:,}: {_losses(point.losses)}")
        if now - self._shown < (0.2 if self._live else _QUIET_SECONDS):
            return
        self._shown = now
        done = progress.done - self._first
        left = (now - self._started) / done * (progress.total - progress.done)
        share = progress.done / progress.total
        line = (
            f"step {progress.done:,} of {progress.total:,} ({share:.0%}), loss {point.loss:.3f}"
            + (f", {duration(left)} left" if done > 1 else "")
        )
        if self._live:
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)
        else:
            _say(line)

    def end(self) -> None:
        """Wipe the line that is being rewritten."""
        if self._live and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _losses(losses: "Losses") -> str:
    text = "" if losses.validation is None else f"validation {losses.validation:.3f}, "
    return f"{text}copy {losses.first:.2f} then {losses.second:.2f} nats"
