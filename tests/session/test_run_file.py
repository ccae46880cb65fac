"""Runs on disk: equal bit by bit when read, written whole or not at all, and never believed."""

import hashlib
import json
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from circuitview.core.ablation.sites import Site
from circuitview.core.ablation.table import AblationTable, Row
from circuitview.core.names import CircuitviewError, Source
from circuitview.core.path import Path as ModelPath
from circuitview.session import run_file
from circuitview.session.lab import Question, Run, located
from circuitview.session.run_file import open_run, save_run
from tests.session.lab_runs import MODEL, found, prompts

QUESTIONS = {
    "heads": Question(model=MODEL, prompts=prompts(MODEL)),
    "one prompt": Question(model=MODEL, prompts=prompts(MODEL, 1)),
    "paths": Question(model=MODEL, what="paths", most=4, frozen=True, prompts=prompts(MODEL)),
    "orders": Question(model=MODEL, what="orders", metric="loss", prompts=prompts(MODEL, 3)),
    "resampled": Question(
        model=MODEL,
        kind="resample",
        parameters=(("prompt", prompts(MODEL, 3)[2]),),
        prompts=prompts(MODEL, 1),
        seed=2**70,
    ),
}


@pytest.fixture(scope="module")
def run():
    return found(QUESTIONS["heads"])


@pytest.fixture
def saved(run, tmp_path):
    save_run(run, tmp_path / "run")
    return tmp_path / "run"


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
    odd = replace(run, table=table, n_cases=1, n_tokens=1)
    save_run(odd, tmp_path / "run")
    require_same(odd, open_run(tmp_path / "run"))


def test_output_of_an_mlp_stays_a_path(run, tmp_path):
    """Both print as "mlp 0"."""
    sites = (Site(mlps=(0,)), Site(paths=(ModelPath(Source("mlp", 0)),)))
    assert str(sites[0]) == str(sites[1])
    rows = tuple(Row(site, None, 1.0, 1.0, None, 1) for site in sites)
    table = AblationTable("logit", False, 0.0, rows, np.zeros(1), np.ones((2, 1)))
    save_run(replace(run, table=table, n_cases=1), tmp_path / "run")
    assert tuple(row.site for row in open_run(tmp_path / "run").table.rows) == sites


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


def edited(change):
    """A change of run.json's fields."""

    def hurt(folder):
        path = folder / "run.json"
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))

    return hurt


def written(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def cut(name, length):
    def hurt(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:length])

    return hurt


def arrays(change):
    """Other arrays, and run.json made to expect that file."""

    def hurt(folder):
        path = folder / "values.safetensors"
        raw = change(load_file(path))
        path.write_bytes(raw)
        digest = hashlib.sha256(raw).hexdigest()
        edited(lambda found: found.update(values_sha256=digest))(folder)

    return hurt


def flipped(folder):
    path = folder / "values.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(bytes(raw))


def a_folder_instead(folder):
    (folder / "run.json").unlink()
    (folder / "run.json").mkdir()


def a_pipe_instead(folder):
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")


def row(**values):
    return edited(lambda found: found["rows"][1].update(values))


def field(**values):
    return edited(lambda found: found.update(values))


def question(**values):
    return edited(lambda found: found["question"].update(values))


HURTS = {
    "no run.json": (lambda folder: (folder / "run.json").unlink(), "run.json: no such file"),
    "no values": (lambda folder: (folder / "values.safetensors").unlink(), ".safetensors: no"),
    "folder for a file": (a_folder_instead, "run.json: no such file"),
    "empty": (written("run.json", b""), "no run of this program"),
    "truncated": (cut("run.json", -40), "run.json: "),
    "cut in half": (cut("run.json", 700), "run.json: "),
    "not text": (written("run.json", bytes(range(128, 256))), "no run of this program"),
    "no JSON": (written("run.json", b"a run"), "no run of this program"),
    "a list": (written("run.json", b"[1]"), "no run of this program"),
    "nested without end": (written("run.json", b"[" * 200_000), "no run of this program"),
    "deep in a field": (
        written("run.json", b'{"circuitview_run":1,"question":' + b"[" * 200_000), "run.json: ",
    ),
    "other JSON": (written("run.json", b'{"d_model": 8}'), "no run of this program"),
    "later format": (field(circuitview_run=2), "written in format 2, this program reads 1"),
    "format no number": (field(circuitview_run="1"), "no run of this program"),
    "unknown field": (field(more=1), "damaged"),
    "field missing": (edited(lambda found: found.pop("data_hash")), "data_hash"),
    "number as text": (field(clean="4.1"), "damaged"),
    "number as NaN text": (field(clean="nan"), "clean nan is not the mean"),
    "no rows": (field(rows=[]), "run.json says float64 [0, 2]"),
    "row missing": (edited(lambda found: found["rows"].pop()), "values is float64"),
    "cases too many": (field(n_cases=3), "clean_values is float64 [2]"),
    "cases negative": (field(n_cases=-2), "clean_values is float64 [2]"),
    "unknown metric": (field(metric="accuracy"), "damaged"),
    "metric not asked for": (field(metric="loss"), "measured loss, asked for logit"),
    "frozen not asked for": (field(frozen=True), "frozen is not what was asked for"),
    "another clean value": (field(clean=4.0), "clean 4.0 is not the mean"),
    "another value": (row(value=1e300), "value 1e+300 is not the mean"),
    "another effect": (row(effect=0.125), "effect 0.125 is not the mean"),
    "too large a number": (row(contribution=10**400), "run.json: "),
    "effect true": (row(effect=True), "damaged"),
    "row of other cases": (row(n=7), "a row of 7 cases among 2"),
    "marginal of a head": (row(marginal=1.0), "only orders have a marginal"),
    "head no head": (row(what={"heads": ["first"]}), "'first' is not a head"),
    "path falls": (row(what={"paths": ["token > 1.0 > 0.0"]}), "layers must rise"),
    "layer negative": (row(what={"mlps": [-1]}), "there is no mlp -1"),
    "nothing taken": (row(what={}), "takes nothing away"),
    "site as text": (row(what="1.4"), "damaged"),
    "no question": (field(question={}), "question: "),
    "question of more": (question(size=1), "question: "),
    "question of a type": (question(seed="1"), "question: "),
    "question true": (question(most=True), "question: "),
    "question of a kind": (question(what="neurons"), "question: "),
    "orders that are heads": (question(what="orders"), "frozen is not what was asked for"),
    "orders that are heads, frozen": (
        lambda folder: (question(what="orders")(folder), field(frozen=True)(folder)),
        "row 0 is not order 0",
    ),
    "values truncated": (cut("values.safetensors", -8), "not the numbers that run.json was saved"),
    "values empty": (written("values.safetensors", b""), "not the numbers that run.json was saved"),
    "one bit flipped": (flipped, "not the numbers that run.json was saved with"),
    "values garbled": (arrays(lambda _found: b"\xff" * 64), "not a whole safetensors file"),
    "values missing": (
        arrays(lambda found: save({"values": found["values"]})), "holds values, not clean_values",
    ),
    "values float32": (
        arrays(lambda found: save({**found, "values": found["values"].astype(np.float32)})),
        "values is float32",
    ),
    "values flat": (
        arrays(lambda found: save({**found, "values": found["values"].ravel()})),
        "values is float64 [",
    ),
    "values changed": (
        arrays(lambda found: save({**found, "values": found["values"] + 1})),
        "is not the mean of its numbers",
    ),
}  # fmt: skip

if hasattr(os, "mkfifo"):
    HURTS["pipe for a file"] = (a_pipe_instead, "run.json: no such file")


@pytest.mark.parametrize("name", HURTS)
def test_damaged_run_is_one_line_that_names_the_file(saved, name):
    hurt, needle = HURTS[name]
    open_run(saved)
    hurt(saved)
    with pytest.raises(CircuitviewError) as caught:
        open_run(saved)
    message = str(caught.value)
    assert needle in message
    assert str(saved) in message
    assert "\n" not in message
    assert len(message) < len(str(saved)) + 350


@pytest.mark.parametrize("place", ["nothing", "file", "n\0l"])
def test_place_without_a_run_is_one_line(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(CircuitviewError, match="name the folder of a saved run"):
        open_run(tmp_path / place)
