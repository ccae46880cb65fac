"""`circuitview models`: a line for each bundled model."""

import json

from circuitview.core.bundled import bundled_names
from circuitview.core.checkpoint import open_model


def test_models_lists_every_bundled_model_on_a_line(call):
    code, out, err = call("models")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == list(bundled_names())
    line = next(line for line in out.splitlines() if line.startswith("cat-on-the-mat"))
    assert "1 layer of 1 head" in line
    assert "no BOS" in line
    assert "vocabulary 6" in line


def test_models_as_json_agree_with_the_models_themselves(call):
    _, out, _ = call("models", "--format", "json")
    rows = json.loads(out)
    assert [row["model"] for row in rows] == list(bundled_names())
    for row in rows:
        config = open_model(row["model"]).config
        for name in ("n_layers", "n_heads", "d_model", "d_head", "n_ctx", "d_vocab"):
            assert row[name] == getattr(config, name)
        assert row["bos_token_id"] == config.bos_token_id
        assert row["bytes"] > 0
        assert row["about"]
    by_name = {row["model"]: row for row in rows}
    assert by_name["cat-on-the-mat"]["n_token_paths"] == 2


def test_bundled_name_and_its_folder_are_the_same_model(call):
    _, out, _ = call("models", "--format", "json")
    row = next(row for row in json.loads(out) if row["model"] == "cat-on-the-mat")
    answers = [
        call("paths", model, "--prompt", "the cat", "--format", "json")
        for model in (row["model"], row["folder"])
    ]
    assert answers[0] == answers[1]
