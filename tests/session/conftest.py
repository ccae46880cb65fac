"""A run of the lab, and the folder in which it is saved."""

import pytest

from circuitview.session.run_file import save_run
from tests.session.lab_runs import QUESTIONS, found


@pytest.fixture(scope="module")
def run():
    return found(QUESTIONS["heads"])


@pytest.fixture
def saved(run, tmp_path):
    save_run(run, tmp_path / "run")
    return tmp_path / "run"
