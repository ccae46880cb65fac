"""Bundles with random weights, and the program called in this process."""

import os

import pytest

from circuitview.cli.app import run
from tests.cli.calling import random_bundle

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two layers of two heads: every path is listed."""
    return str(random_bundle(tmp_path_factory.mktemp("bundles") / "two-layers", n_layers=2))


@pytest.fixture(scope="session")
def deep_bundle(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four layers of eight heads: too many paths to list them all."""
    folder = tmp_path_factory.mktemp("bundles") / "four-layers"
    return str(random_bundle(folder, n_layers=4, n_heads=8))


@pytest.fixture
def call(capsys):
    """Calls the program in this process; gives exit code, stdout and stderr."""

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call
