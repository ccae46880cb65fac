"""Runs on disk: equal bit by bit when read, and written whole or not at all."""

import json
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from circuitview.core.ablation.sites import Site
from circuitview.core.ablation.table import AblationTable, Row
from circuitview.core.names import CircuitviewError, Source
from circuitview.core.path import Path as ModelPath
from circuitview.session import run_file
from circuitview.session.lab import Run, located
from circuitview.session.run_file import open_run, save_run
from tests.session.lab_runs import MODEL, QUESTIONS, found


def require_same(run, again):
    assert again.question == located(run.question)
    for name in ("metric", "frozen", "clean"):
        assert getattr(again.table, name) == getattr(run.table, name)
    # By their text: what is no number is not equal to itself.
    assert repr(again.table.rows) == repr(run.table.rows)
    assert again.table.values.tobytes() == run.table.values.tobytes()
    assert again.table.values.shape == run.table.values.shape
    assert again.table.clean_values.tobytes() == run.table.clean_values.tobytes()
    for field in fields(Run):
        if field.name not in ("table", "question"):
            assert getattr(again, field.name) == getattr(run, field.name), field.name


@pytest.mark.parametrize("name", QUESTIONS)
def test_run_is_read_back_equal_bit_by_bit(name, tmp_path):
    run = found(QUESTIONS[name])
    save_run(run, tmp_path / "run")
    require_same(run, open_run(tmp_path / "run"))
    require_same(run, open_run(tmp_path / "run" / "run.json"))


def test_a_run_whose_windows_were_cut_says_how_long_they_are(run, tmp_path):
    """Once a length beyond the context was cut without a word; now repeating would refuse it."""
    asked = replace(run.question, prompts=(), text="a.txt", length=128)
    save_run(replace(run, question=asked), tmp_path / "run")
    assert (run.n_tokens, run.n_cases) == (14, 2)
    assert open_run(tmp_path / "run").question.length == 7
    usual = replace(run, question=replace(asked, length=None))
    save_run(usual, tmp_path / "usual")
    assert open_run(tmp_path / "usual").question.length is None


def test_a_run_that_knows_nothing_of_threads_still_opens(saved):
    written = json.loads((saved / "run.json").read_text())
    del written["threads"]
    (saved / "run.json").write_text(json.dumps(written))
    assert open_run(saved).threads is None
    (saved / "run.json").write_text(json.dumps(written | {"threads": 0}))
    with pytest.raises(CircuitviewError, match="0 threads"):
        open_run(saved)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 5e-324, 0.1 + 0.2, -0.0])
def test_any_number_is_read_back(run, tmp_path, value):
    values = np.array([[value]])
    row = Row(Site(orders=(1,)), value, value, value, None, 1)
    table = AblationTable("logit", False, 0.0, (row,), np.array([0.0]), values)
    asked = replace(QUESTIONS["one prompt"], what="chosen", chosen=("order 1",))
    odd = replace(run, question=asked, table=table, n_cases=1, n_tokens=1)
    save_run(odd, tmp_path / "run")
    require_same(odd, open_run(tmp_path / "run"))


@pytest.mark.parametrize(
    ("what", "site"),
    [("mlps", Site(mlps=(0,))), ("paths", Site(paths=(ModelPath(Source("mlp", 0)),)))],
)
def test_output_of_an_mlp_stays_a_path(run, tmp_path, what, site):
    """Both print as "mlp 0"."""
    assert str(site) == "mlp 0"
    table = AblationTable(
        "logit", False, 0.0, (Row(site, None, 1.0, 1.0, None, 1),), np.zeros(1), np.ones((1, 1))
    )
    asked = replace(QUESTIONS["one prompt"], what=what, chosen=("mlp 0",))
    save_run(replace(run, question=asked, table=table, n_cases=1), tmp_path / "run")
    assert [row.site for row in open_run(tmp_path / "run").table.rows] == [site]


def test_files_are_named_by_their_whole_path(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parents[2] / "resources/models" / MODEL, "here")
    asked = replace(
        run.question, model="here", parameters=(("text", "a.txt"), ("length", 4)), kind="mean"
    )
    save_run(replace(run, question=asked), "run")
    question = open_run("run").question
    assert question.model == str(tmp_path / "here")
    assert question.parameters == (("text", str(tmp_path / "a.txt")), ("length", 4))


def test_folder_is_as_open_as_the_umask_says(run, tmp_path):
    before = os.umask(0o027)
    try:
        save_run(run, tmp_path / "run")
    finally:
        os.umask(before)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("there", ["run", "file", "empty folder", "link to nothing"])
def test_what_is_there_is_never_overwritten(run, tmp_path, there):
    place = tmp_path / "place"
    if there == "run":
        save_run(run, place)
    elif there == "file":
        place.write_text("mine")
    elif there == "empty folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / "nowhere")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(CircuitviewError, match="is there already; name a new folder"):
        save_run(run, place)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "place", ["none/run", "file/run", "n\0l", "l" * 300], ids=["no folder", "file", "nul", "long"]
)
def test_place_that_can_not_be_is_one_line(run, tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(CircuitviewError) as caught:
        save_run(run, tmp_path / place)
    assert "\n" not in str(caught.value)
    assert "can't save to" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), OSError(28, "disk full")])
@pytest.mark.parametrize("at", ["values.safetensors", "run.json", "rename"])
def test_interrupted_saving_leaves_nothing(run, tmp_path, monkeypatch, error, at):
    write = run_file._write

    def fail(path, content):
        if path.name == at:
            path.write_bytes(content[: len(content) // 2])
            raise error
        write(path, content)

    def stopped(*_):
        raise error

    monkeypatch.setattr(run_file, "_write", fail)
    if at == "rename":
        monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(CircuitviewError if isinstance(error, OSError) else type(error)):
        save_run(run, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


MORE = {
    "pairs": {"what": "pairs"},
    "some pairs": {"what": "pairs", "chosen": ("1.1", "0.0")},
    "each order": {"what": "each-order"},
    "chosen heads": {"chosen": ("1.1", "0.0 + 0.1")},
    "chosen paths": {"what": "paths", "chosen": ("position > 0.0 + direct", "token > 1.0")},
    "a selection": {"what": "chosen", "chosen": ("order 1 + 1.1 + 0.0", "direct")},
}


@pytest.mark.parametrize("name", MORE)
def test_rows_of_every_question_are_those_asked_for(tmp_path, name):
    run = found(replace(QUESTIONS["heads"], **MORE[name]))
    save_run(run, tmp_path / "run")
    require_same(run, open_run(tmp_path / "run"))


def test_a_run_that_measured_nothing_finite_still_opens(run, tmp_path):
    """Where the model itself gives no numbers, neither has a contribution one."""
    nothing = Row(Site(orders=(1,)), np.nan, np.nan, np.nan, None, 1)
    table = AblationTable(
        "logit", False, np.nan, (nothing,), np.array([np.nan]), np.array([[np.nan]])
    )
    asked = replace(QUESTIONS["one prompt"], what="chosen", chosen=("order 1",))
    save_run(replace(run, question=asked, table=table, n_cases=1), tmp_path / "run")
    assert np.isnan(open_run(tmp_path / "run").table.clean)


def test_model_in_a_folder_whose_name_has_two_lines_is_read_back(run, tmp_path):
    save_run(replace(run, model_name="a\nb"), tmp_path / "run")
    assert open_run(tmp_path / "run").model_name == "a\ufffdb"
