"""Checkpoints that something is wrong with, and what the one line about each must name.

A builder makes the broken thing in an empty folder of its own and gives what a user would open.
"""

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.hf_families import REFUSED, build_model, edit_json, save_family
from tests.tiny_models import Tiny, build_bundle, build_legacy, state_dict, word_tokenizer

TINY = Tiny()
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
# What the code hidden in a checkpoint would make, beside it.
TRACE = "code-was-run"


@dataclass(frozen=True)
class Broken:
    """One broken checkpoint.

    Attributes:
        build: makes it in a folder, and gives the path to open.
        file: what the line must name.
        words: what it must say, the remedy among it.
    """

    build: Callable[[Path], Path]
    file: str
    words: tuple[str, ...]


def _bundle(folder: Path) -> Path:
    return build_bundle(folder / "bundle", TINY)


def _family(folder: Path, family: str = "llama", **save: object) -> Path:
    return save_family(family, folder / family, **save)


def _changed_config(folder: Path, **changes: object) -> Path:
    edit_json(folder / CONFIG, lambda fields: fields.update(changes))
    return folder


def _changed_arrays(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    arrays = load_file(folder / WEIGHTS)
    change(arrays)
    save_file(arrays, folder / WEIGHTS, metadata={"format": "pt"})
    return folder


def _cut(path: Path, share: float) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: int(share * len(raw))])


def truncated_safetensors(folder: Path) -> Path:
    whole = _family(folder)
    _cut(whole / WEIGHTS, 0.7)
    return whole


def truncated_pickle(folder: Path) -> Path:
    whole = build_legacy(folder / "legacy", TINY)
    _cut(next(whole.glob("*.pth")), 0.6)
    return whole


def wrong_shapes(folder: Path) -> Path:
    def change(arrays: dict[str, torch.Tensor]) -> None:
        name = "model.layers.1.self_attn.o_proj.weight"
        arrays[name] = arrays[name][:, :-1].clone()

    return _changed_arrays(_family(folder), change)


def not_a_number(folder: Path) -> Path:
    def change(arrays: dict[str, torch.Tensor]) -> None:
        arrays["model.layers.2.mlp.down_proj.weight"][0, 0] = torch.nan

    return _changed_arrays(_family(folder), change)


def missing_tokenizer(folder: Path) -> Path:
    whole = _family(folder)
    for path in whole.glob("tokenizer*"):
        path.unlink()
    return whole


class _Code:
    """What a pickle may hold: a call that is made when it is read."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (str(self.trace),))


def code_in_a_legacy_pickle(folder: Path) -> Path:
    whole = build_legacy(folder / "legacy", TINY)
    weights = next(whole.glob("*.pth"))
    torch.save({**state_dict(TINY), "extra": _Code(folder / TRACE)}, weights)
    return whole


def code_in_a_bare_pickle(folder: Path) -> Path:
    path = folder / "weights.pt"
    path.write_bytes(pickle.dumps(_Code(folder / TRACE)))
    return path


def code_in_a_hugging_face_pickle(folder: Path) -> Path:
    whole = _family(folder)
    arrays = load_file(whole / WEIGHTS)
    (whole / WEIGHTS).unlink()
    torch.save({**arrays, "lm_head.weight": _Code(folder / TRACE)}, whole / "pytorch_model.bin")
    return whole


def code_that_a_config_asks_for(folder: Path) -> Path:
    """A config that names a Python file of its own, as trust_remote_code would run."""
    whole = _family(folder)
    (whole / "modeling_own.py").write_text(f"import os\nos.mkdir({str(folder / TRACE)!r})\n")
    own = {"AutoModelForCausalLM": "modeling_own.OwnModel", "AutoConfig": "modeling_own.OwnConfig"}
    return _changed_config(whole, auto_map=own, model_type="own", architectures=["OwnForCausalLM"])


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def no_layers(folder: Path) -> Path:
    return _changed_config(_bundle(folder), n_layers=0)


def negative_sizes(folder: Path) -> Path:
    return _changed_config(_bundle(folder), d_head=-3)


def vocabulary_mismatch(folder: Path) -> Path:
    whole = _bundle(folder)
    word_tokenizer(TINY.d_vocab + 5).save(str(whole / TOKENIZER))
    return whole


def folder_for_a_file(folder: Path) -> Path:
    whole = _bundle(folder)
    (whole / TOKENIZER).unlink()
    (whole / TOKENIZER).mkdir()
    return whole


def folder_for_the_weights(folder: Path) -> Path:
    whole = _family(folder)
    (whole / WEIGHTS).unlink()
    (whole / WEIGHTS).mkdir()
    return whole


def link_to_nowhere(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "gone")
    return folder / "link"


def weights_link_to_nowhere(folder: Path) -> Path:
    whole = _family(folder)
    (whole / WEIGHTS).unlink()
    (whole / WEIGHTS).symlink_to(folder / "gone")
    return whole


def config_that_is_no_json(folder: Path) -> Path:
    whole = _family(folder)
    (whole / CONFIG).write_text("n_layers: 2\n")
    return whole


def unknown_architecture(folder: Path) -> Path:
    return _changed_config(
        _family(folder), model_type="llamaduck", architectures=["LlamaduckForCausalLM"]
    )


def missing_shard(folder: Path) -> Path:
    whole = _family(folder, max_shard_size="20kB")
    max(whole.glob("model-*-of-*.safetensors")).unlink()
    return whole


def missing_config(folder: Path) -> Path:
    whole = _family(folder)
    (whole / CONFIG).unlink()
    return whole


def whole_numbers(folder: Path) -> Path:
    def change(arrays: dict[str, torch.Tensor]) -> None:
        for name, array in arrays.items():
            arrays[name] = (100 * array).to(torch.int32)

    return _changed_arrays(_bundle(folder), change)


def two_pickles(folder: Path) -> Path:
    whole = build_legacy(folder / "legacy", TINY)
    weights = next(whole.glob("*.pth"))
    for step in (100, 200):
        (whole / f"step_{step}.pth").write_bytes(weights.read_bytes())
    weights.unlink()
    return whole


def pipe_for_the_config(folder: Path) -> Path:
    """Nobody can read it, root included: reading a pipe without a writer would wait forever."""
    whole = _bundle(folder)
    (whole / CONFIG).unlink()
    os.mkfifo(whole / CONFIG)
    return whole


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "model.pth")
    return folder / "model.pth"


def zero_bytes(folder: Path) -> Path:
    path = folder / "weights.pth"
    path.touch()
    return path


def zero_bytes_of_safetensors(folder: Path) -> Path:
    whole = _family(folder)
    (whole / WEIGHTS).write_bytes(b"")
    return whole


def truncated_gguf(folder: Path) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\x10" + bytes(7))
    return path


def gguf_that_is_none(folder: Path) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(b"not a model at all, but long enough to hold a header of any kind" * 9)
    return path


def other_layout(folder: Path) -> Path:
    path = folder / "resnet.pth"
    torch.save({"conv1.weight": torch.ones(3, 3), "fc.bias": torch.ones(3)}, path)
    return path


def text_file(folder: Path) -> Path:
    path = folder / "notes.pth"
    path.write_text("These are my notes.\n")
    return path


def nested_without_end(folder: Path) -> Path:
    whole = _bundle(folder)
    (whole / CONFIG).write_text("[" * 200_000)
    return whole


def huge_header(folder: Path) -> Path:
    """A safetensors file that says that its header is 8 exabytes long."""
    whole = _bundle(folder)
    (whole / WEIGHTS).write_bytes(b"\xff" * 7 + b"\x7f" + b"{}")
    return whole


def refused(name: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        architecture, config, fields, _ = REFUSED[name]
        build_model(architecture, config, fields).save_pretrained(folder / name)
        return folder / name

    return build


def infinite_scale(folder: Path) -> Path:
    """Finite weights whose products are not."""
    whole = _bundle(folder)
    arrays = load_file(whole / WEIGHTS)
    huge = {name: (array * 1e18).float() for name, array in arrays.items()}
    save_file(huge, whole / WEIGHTS)
    return whole


SAVE_AGAIN = "copy or save it again"
CASES: dict[str, Broken] = {
    "truncated safetensors": Broken(truncated_safetensors, WEIGHTS, (SAVE_AGAIN,)),
    "truncated pickle": Broken(truncated_pickle, ".pth", (SAVE_AGAIN,)),
    "wrong shapes": Broken(wrong_shapes, WEIGHTS, ("layers.1.self_attn.o_proj", "another model")),
    "NaN": Broken(not_a_number, WEIGHTS, ("NaN", "use an earlier checkpoint")),
    "missing tokenizer": Broken(missing_tokenizer, "llama", ("tokenizer.json", "copy")),
    "code in a legacy pickle": Broken(code_in_a_legacy_pickle, ".pth", ("could run code", "save")),
    "code in a bare pickle": Broken(code_in_a_bare_pickle, "weights.pt", ("could run code",)),
    "code in a Hugging Face pickle": Broken(
        code_in_a_hugging_face_pickle, "pytorch_model.bin", ("could run code", "safetensors")
    ),
    "code that a config asks for": Broken(
        code_that_a_config_asks_for, CONFIG, ("never done", "choose a model")
    ),
    "empty folder": Broken(empty_folder, "empty", ("is empty", "name a folder")),
    "no layers": Broken(no_layers, CONFIG, ("n_layers is 0", "need 1 or more")),
    "negative sizes": Broken(negative_sizes, CONFIG, ("d_head is -3", "need 1 or more")),
    "vocabulary mismatch": Broken(vocabulary_mismatch, TOKENIZER, ("another model",)),
    "folder where a file should be": Broken(folder_for_a_file, TOKENIZER, ("tokenizer.json",)),
    "folder where weights should be": Broken(folder_for_the_weights, "llama", ("copy",)),
    "link to nowhere": Broken(link_to_nowhere, "link", ("leads nowhere", "mend the link")),
    "weights link to nowhere": Broken(weights_link_to_nowhere, WEIGHTS, ("leads nowhere", "copy")),
    "config that is no JSON": Broken(config_that_is_no_json, CONFIG, ("JSON", "export it again")),
    "unknown architecture": Broken(
        unknown_architecture, CONFIG, ("llamaduck", "choose another model")
    ),
    "missing shard": Broken(missing_shard, "model-", ("missing", "copy the whole folder")),
    "missing config": Broken(missing_config, CONFIG, ("needs its config.json",)),
    "whole numbers": Broken(whole_numbers, WEIGHTS, ("int32", "store floating-point weights")),
    "two pickles": Broken(two_pickles, "step_100.pth", ("step_200.pth", "leave one")),
    "pipe for the config": Broken(pipe_for_the_config, CONFIG, ("is a pipe", "name a folder")),
    "pipe": Broken(pipe, "model.pth", ("neither a file nor a folder",)),
    "zero bytes": Broken(zero_bytes, "weights.pth", ("is empty", SAVE_AGAIN)),
    "zero bytes of safetensors": Broken(zero_bytes_of_safetensors, WEIGHTS, (SAVE_AGAIN,)),
    "truncated GGUF": Broken(truncated_gguf, "model.gguf", ("copy",)),
    "GGUF that is none": Broken(gguf_that_is_none, "model.gguf", ("not a GGUF file",)),
    "other layout": Broken(other_layout, "resnet.pth", ("conv1.weight", "layout")),
    "text file": Broken(text_file, "notes.pth", ("torch.save did not write", "save")),
    "config nested without end": Broken(nested_without_end, CONFIG, ("JSON", "export it again")),
    "huge header": Broken(huge_header, WEIGHTS, (SAVE_AGAIN,)),
    "recurrent model": Broken(refused("mamba"), CONFIG, ("recurrent layers", "choose")),
    "latent attention": Broken(refused("deepseek-v3"), CONFIG, ("latent attention", "choose")),
    "encoder": Broken(refused("bert"), CONFIG, ("does not predict the next token", "choose")),
    "numbers that overflow": Broken(
        infinite_scale, "", ("layer 0", "numbers pass what floats can hold")
    ),
}
assert len(CASES) >= 24
