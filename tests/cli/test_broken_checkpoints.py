"""Broken checkpoints on the command line: one line with file and remedy, and nothing is run."""

import socket

import pytest

from tests.broken_checkpoints import CASES, TRACE
from tests.hf_families import save_family
from tests.tiny_models import Tiny, build_bundle, build_legacy


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("name", CASES)
def test_broken_checkpoint_gets_one_line_with_file_and_remedy(name, call, tmp_path):
    broken = CASES[name]
    path = broken.build(tmp_path)
    code, out, err = call("check", path)
    assert (code, out) == (1 if out else 2, out), err
    said = err or out.splitlines()[-1]
    assert said.rstrip("\n").count("\n") == 0, said
    assert "defect of this program" not in said
    for word in (broken.file, *broken.words):
        assert word in said
    assert len(said) < 700
    assert not (tmp_path / TRACE).exists()


def test_whole_ones_open(call, tmp_path):
    """Or everything above would pass for a program that opens nothing."""
    whole = (
        build_bundle(tmp_path / "bundle", Tiny()),
        build_legacy(tmp_path / "legacy", Tiny()),
        save_family("llama", tmp_path / "llama"),
    )
    for path in whole:
        code, out, err = call("check", path)
        assert (code, err) == (0, ""), path
        assert "passed: the largest relative error is" in out
