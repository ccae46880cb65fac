"""What was done to a saved run, or can't be true of one: a line that names the file."""

import hashlib
import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from circuitview.core.names import CircuitviewError
from circuitview.session.run_file import open_run, save_run
from tests.session.lab_runs import QUESTIONS, found


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
    "another error": (row(stderr=0.125), "stderr 0.125 is not the standard error"),
    "no error": (row(stderr=None), "a row has no stderr"),
    "contribution infinite": (row(contribution="inf"), "contribution inf is no number"),
    "contribution undefined": (row(contribution="nan"), "contribution nan is no number"),
    "marginal of a head": (row(marginal=1.0), "only orders have a marginal"),
    "head no head": (row(what={"heads": ["first"]}), "'first' is not a head"),
    "path falls": (row(what={"paths": ["token > 1.0 > 0.0"]}), "layers must rise"),
    "layer negative": (row(what={"mlps": [-1]}), "there is no mlp -1"),
    "nothing taken": (row(what={}), "takes nothing away"),
    "two heads for one": (row(what={"heads": ["0.1", "1.0"]}), "row 1 is 0.1 + 1.0: not what"),
    "path for a head": (row(what={"paths": ["token"]}), "row 1 is token: not what was asked"),
    "head twice": (row(what={"heads": ["0.0"]}), "two rows take the same away"),
    "heads for a choice": (question(chosen=["0.0", "1.0"]), "row 1 is 0.1: not what was asked"),
    "rows not chosen": (question(chosen=["0.0", "0.1"]), "4 rows, asked for 2"),
    "nothing chosen": (question(what="chosen"), "4 rows, asked for 0"),
    "choice of nothing": (question(chosen=["first"]), "'first' names nothing"),
    "heads for pairs": (question(what="pairs"), "4 rows, asked for 10"),
    "heads for paths": (question(what="paths"), "row 0 is 0.0: not what was asked for (each path)"),
    "heads for MLPs": (question(what="mlps"), "row 0 is 0.0: not what was asked for (each MLP)"),
    "heads for orders": (question(what="each-order"), "row 0 is 0.0: not what was asked for"),
    "tokens negative": (field(n_tokens=-14), "2 cases of -14 tokens"),
    "tokens beyond counting": (field(n_tokens=2**63), "are no run"),
    "seconds negative": (field(seconds=-1.0), "can't have taken -1 seconds"),
    "seconds without end": (field(seconds="inf"), "can't have taken inf seconds"),
    "seconds undefined": (field(seconds="nan"), "can't have taken nan seconds"),
    "soft cap of nothing": (field(soft_cap=0.0), "there is no soft cap of 0"),
    "soft cap without end": (field(soft_cap="inf"), "there is no soft cap of inf"),
    "seed of too many bits": (question(seed=2**64), "there is no seed of 18446744073709551616"),
    "seed negative": (question(seed=-1), "there is no seed of -1"),
    "length negative": (question(length=-3), "there is no length of -3"),
    "windows negative": (question(windows=-3), "there is no windows of -3"),
    "most of too many bits": (question(most=2**63), "there is no most of"),
    "dest of too many bits": (question(dest=-(2**64)), "there is no dest of"),
    "setting of too many bits": (
        question(kind="mean", parameters=[["length", 2**63]]), "there is no length of",
    ),
    "other prompts": (question(prompts=["a"]), "2 cases of 1 prompts"),
    "a text and prompts": (question(text="a.txt"), "leave out prompts"),
    "a text and a target": (
        question(text="a.txt", prompts=[], target="a"), "leave out target",
    ),
    "windows too long": (
        question(text="a.txt", prompts=[], windows=1), "2 windows of 14 tokens are not those",
    ),
    "name of two lines": (field(model_name="a\nb"), "model_name has control characters"),
    "target with an escape": (field(target="\x1b[2J"), "target has control characters"),
    "hash of two lines": (field(model_hash="0\u2028"), "model_hash has control characters"),
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


ORDER_HURTS = {
    "another marginal": (2, {"marginal": 0.125}, "marginal 0.125 is not the mean"),
    "another error": (2, {"marginal_stderr": 9.0}, "marginal_stderr 9.0 is not the standard error"),
    "marginal missing": (1, {"marginal": None}, "a row has no marginal"),
    "marginal of the first": (0, {"marginal": 0.0}, "order 0 has a marginal value"),
}


@pytest.mark.parametrize("name", ORDER_HURTS)
def test_marginal_that_is_not_of_its_numbers_is_refused(tmp_path, name):
    place, change, needle = ORDER_HURTS[name]
    save_run(found(QUESTIONS["orders"]), tmp_path / "run")
    edited(lambda saved: saved["rows"][place].update(change))(tmp_path / "run")
    with pytest.raises(CircuitviewError, match=needle):
        open_run(tmp_path / "run")


def test_error_of_one_case_is_refused(tmp_path):
    save_run(found(QUESTIONS["one prompt"]), tmp_path / "run")
    row(stderr=0.0)(tmp_path / "run")
    with pytest.raises(CircuitviewError, match="stderr of one case"):
        open_run(tmp_path / "run")
