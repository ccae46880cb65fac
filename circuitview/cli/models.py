"""`circuitview models`: what comes with the program."""

from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

import typer

from circuitview.cli.outcome import emit, emit_json
from circuitview.core.bundled import DEFAULT_MODEL, bundled_folder, bundled_names
from circuitview.core.config import read_config
from circuitview.core.names import CircuitviewError
from circuitview.core.path import count_chains

Format = Literal["table", "json"]


def models(
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = "table",
) -> None:
    """List the bundled models, the default one first."""
    rows = [_facts(name) for name in bundled_names()]
    if form == "json":
        emit_json(rows)
        return
    width = max((len(row["model"]) for row in rows), default=0)
    emit("".join(f"{row['model']:<{width}}  {_sentence(row)}\n" for row in rows))


def _facts(name: str) -> dict[str, Any]:
    folder = bundled_folder(name)
    path = folder / "config.json"
    try:
        config = read_config(path.read_bytes(), str(path))
        size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise CircuitviewError(f"{error.filename}: {error.strerror}; install again") from None
    return {
        "model": name,
        "folder": str(folder),
        "default": name == DEFAULT_MODEL,
        "n_layers": config.n_layers,
        "n_heads": config.n_heads,
        "d_model": config.d_model,
        "d_head": config.d_head,
        "n_ctx": config.n_ctx,
        "d_vocab": config.d_vocab,
        "normalization_type": config.normalization_type,
        "positional_embedding_type": config.positional_embedding_type,
        "bos_token_id": config.bos_token_id,
        "n_token_paths": count_chains(config.n_layers, config.n_heads),
        "bytes": size,
        "about": _about(folder),
    }


def _about(folder: FilePath) -> str:
    """The first sentence of the model card below its title."""
    try:
        lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    text: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith(("#", "|", "```", "---")):
            text.append(line.strip())
        elif text:
            break
    paragraph = " ".join(text)
    first, found, _ = paragraph.partition(". ")
    return first + "." if found else paragraph


def _sentence(row: dict[str, Any]) -> str:
    layers = f"{row['n_layers']} layer" + ("" if row["n_layers"] == 1 else "s")
    heads = f"{row['n_heads']} head" + ("" if row["n_heads"] == 1 else "s")
    bos = "no BOS" if row["bos_token_id"] is None else "BOS"
    size = row["bytes"] / 1e6
    shown = f"{size:.1f} MB" if size >= 0.1 else f"{row['bytes'] / 1e3:.0f} kB"
    facts = (
        f"{layers} of {heads}, d_model {row['d_model']}, n_ctx {row['n_ctx']}, "
        f"vocabulary {row['d_vocab']}, {bos}, {shown}"
    )
    return facts + (", the default" if row["default"] else "")
