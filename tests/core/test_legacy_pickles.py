"""Weights in pickles: only tensors are made, nothing is run, and what is refused is told why."""

import argparse
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from circuitview.core.checkpoint.pickles import read_pickle
from circuitview.core.names import CircuitviewError

STATE = {"embed.W_E": torch.arange(6.0).view(2, 3), "unembed.b_U": torch.ones(2)}


class Program:
    """Writes a file when it is unpickled by a reader that lets it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def refusal(path) -> str:
    with pytest.raises(CircuitviewError) as caught:
        read_pickle(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert caught.value.__cause__ is None
    return message


@pytest.mark.parametrize("newer", [True, False])
def test_a_state_dict_is_read(tmp_path, newer):
    torch.save(STATE, tmp_path / "a.pth", _use_new_zipfile_serialization=newer)
    reader = read_pickle(tmp_path / "a.pth")
    assert set(reader.arrays) == set(STATE)
    assert all(torch.equal(reader.arrays[name], STATE[name]) for name in STATE)
    assert (reader.loaded is None) == newer


@pytest.mark.parametrize(
    "content",
    [
        {"state_dict": STATE, "epoch": 3},
        {"model": STATE, "optimizer": {"lr": 0.1}},
        {"model_state_dict": STATE},
        {"state_dict": {f"module.{name}": value for name, value in STATE.items()}},
        {f"_orig_mod.{name}": value for name, value in STATE.items()},
        {"model": {f"model.{name}": torch.nn.Parameter(value) for name, value in STATE.items()}},
    ],
)
def test_what_training_programs_put_around_it_is_taken_off(tmp_path, content):
    torch.save(content, tmp_path / "a.pt")
    assert set(read_pickle(tmp_path / "a.pt").arrays) == set(STATE)


@pytest.mark.parametrize("form", ["newer", "older", "plain"])
def test_code_in_a_pickle_is_named_and_not_run(tmp_path, form):
    path, mark = tmp_path / "evil.pth", tmp_path / "executed"
    content = {**STATE, "more": Program(mark)}
    if form == "plain":
        path.write_bytes(pickle.dumps(content["more"]))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "newer")
    message = refusal(path)
    assert not mark.exists()
    assert "could run code" in message
    assert "torch.save(model.state_dict())" in message
    assert form == "plain" or "mkdir" in message
    pickle.loads(pickle.dumps(content["more"]))  # the trap does snap where it is let
    assert mark.exists()


def test_an_object_in_a_pickle_is_named(tmp_path):
    torch.save({"state_dict": STATE, "args": argparse.Namespace(a=1)}, tmp_path / "a.pth")
    assert "(argparse.Namespace)" in refusal(tmp_path / "a.pth")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "b.pth")
    assert "(torch.nn.modules.linear.Linear)" in refusal(tmp_path / "b.pth")


@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.parametrize("kept", [5, 0.5, 0.99])
def test_a_file_that_is_cut_off(tmp_path, newer, kept):
    path = tmp_path / "a.pth"
    torch.save(STATE, path, _use_new_zipfile_serialization=newer)
    raw = path.read_bytes()
    path.write_bytes(raw[: kept if isinstance(kept, int) else int(kept * len(raw))])
    assert "copy or save it again" in refusal(path)


def test_files_that_are_something_else(tmp_path):
    (tmp_path / "text.pth").write_text("some words about a model")
    assert "no file that torch.save wrote" in refusal(tmp_path / "text.pth")
    (tmp_path / "empty.pth").write_bytes(b"")
    assert "is empty" in refusal(tmp_path / "empty.pth")
    with zipfile.ZipFile(tmp_path / "zip.pth", "w") as archive:
        archive.writestr("letter.txt", "hello")
    assert "a zip file that torch.save did not write" in refusal(tmp_path / "zip.pth")
    (tmp_path / "folder.pth").mkdir()
    assert "directory" in refusal(tmp_path / "folder.pth").lower()
    (tmp_path / "link.pth").symlink_to(tmp_path / "gone")
    assert "name a file that torch.save wrote" in refusal(tmp_path / "link.pth")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (torch.ones(2), "holds a Tensor, no state dict"),
        ([torch.ones(2)], "holds a list, no state dict"),
        ({"epoch": 3}, "holds no tensors"),
        ({}, "holds no tensors"),
    ],
)
def test_content_that_is_no_state_dict(tmp_path, content, words):
    torch.save(content, tmp_path / "a.pth")
    assert words in refusal(tmp_path / "a.pth")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_torchscript_program_is_refused(tmp_path):
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(tmp_path / "a.pt"))
    assert "TorchScript" in refusal(tmp_path / "a.pt")


def test_a_zip_that_would_fill_the_memory_is_not_read(tmp_path):
    torch.save(STATE, tmp_path / "a.pth")
    bomb = tmp_path / "bomb.pth"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", b"N" * 10**8)
        archive.writestr("bomb/version", "3")
    assert bomb.stat().st_size < 10**6
    message = refusal(bomb)
    assert "100 MB once it is unpacked" in message
    assert read_pickle(tmp_path / "a.pth").arrays.keys() == STATE.keys()


def test_arrays_that_are_packed_are_not_read_as_they_are(tmp_path):
    torch.save(STATE, tmp_path / "a.pth")
    with (
        zipfile.ZipFile(tmp_path / "a.pth") as plain,
        zipfile.ZipFile(tmp_path / "packed.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    assert "a packed zip file" in refusal(tmp_path / "packed.pth")


def test_arrays_without_numbers_are_named(tmp_path):
    torch.save({name: array.to("meta") for name, array in STATE.items()}, tmp_path / "a.pth")
    assert "embed.W_E has a shape and no numbers (a meta tensor)" in refusal(tmp_path / "a.pth")
