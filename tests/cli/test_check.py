"""circuitview check: the identities of every layer, the dests, and the verdict."""

import json
from dataclasses import replace

import pytest

from circuitview.core import check as checking
from tests.cli.calling import PROMPT


def report(call, *arguments):
    code, out, err = call("check", *arguments, "--format", "json")
    assert err == ""
    return code, json.loads(out)


def test_bundle_passes_with_an_entry_for_every_layer_and_identity(call, bundle):
    code, found = report(call, bundle)
    assert code == 0
    assert found["passed"]
    assert found["failure"] is None
    layers = [entry["layer"] for entry in found["identities"] if entry["layer"] is not None]
    assert set(layers) == {0, 1}
    assert layers.count(0) == layers.count(1) == 5
    assert [dest["dest"] for dest in found["dests"]] == [0, 4, 8]  # BOS and 8 tokens
    assert all(entry["relative"] <= found["tolerance"] == 1e-4 for entry in found["identities"])


def test_float64_is_checked_to_its_own_tolerance(call, bundle):
    code, found = report(call, bundle, "--dtype", "float64")
    assert (code, found["dtype"], found["tolerance"]) == (0, "float64", 1e-11)


def test_prompt_is_what_is_checked(call, bundle):
    _, found = report(call, bundle, "--prompt", PROMPT)
    assert "".join(found["tokens"]) == "BOS" + PROMPT.replace(" ", "␣")


def test_same_call_gives_the_same_answer(call, bundle):
    assert report(call, bundle) == report(call, bundle)


def test_table_has_a_line_a_layer_and_a_verdict(call, bundle):
    code, out, _ = call("check", bundle)
    lines = out.splitlines()
    assert code == 0
    assert "2 layers of 2 heads" in lines[0]
    assert "run by this program's own runner" in lines[0]
    assert "both sides are this runner's own" in lines[2]
    assert "checked in float32 on cpu" in lines[0]
    assert [line.split()[0] for line in lines if line.strip()[:1] in "01" and "(" in line] == [
        "0", "1",
    ]  # fmt: skip
    assert sum("sum of paths = logit at dest" in line for line in lines) == 3
    assert lines[-1].startswith("passed: the largest relative error is ")


@pytest.fixture
def shifted(monkeypatch):
    """As if something stood behind attention in layer 1."""
    real = checking._heads

    def heads(weights, recording, layer, outputs):
        return real(weights, recording, layer, outputs) + (0.25 if layer == 1 else 0.0)

    monkeypatch.setattr(checking, "_heads", heads)


def test_failure_names_layer_identity_error_and_reason_and_leaves_with_1(call, bundle, shifted):
    code, found = report(call, bundle)
    assert code == 1
    assert found["failure"].startswith("layer 1: sum of heads + b_O = attention fails by 0.25")
    assert "something stands behind attention" in found["failure"]
    code, out, _ = call("check", bundle)
    assert code == 1
    assert out.splitlines()[-1].startswith("FAILED: layer 1: ")
    assert out.count(" !") == 1


@pytest.mark.parametrize("command", ["paths", "export"])
def test_model_that_fails_is_refused_by_every_other_command(
    call, bundle, shifted, tmp_path, command
):
    more = ["--figure", "diagram", "--out", tmp_path / "x.svg"] if command == "export" else []
    code, out, err = call(command, bundle, "--prompt", PROMPT, *more)
    assert (code, out) == (2, "")
    assert "two-layers: layer 1: sum of heads + b_O = attention fails by 0.25" in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_lost_logit_is_found_at_its_dest(call, bundle, monkeypatch):
    real = checking.order_sums

    def short(recording, target, most):
        sums = real(recording, target, most=most)
        return replace(sums, sums=sums.sums * (0.5 if target.dest == 4 else 1.0))

    monkeypatch.setattr(checking, "order_sums", short)
    code, found = report(call, bundle)
    assert code == 1
    assert [dest["passed"] for dest in found["dests"]] == [True, False, True]
    assert found["failure"].startswith("sum of paths = logit fails by ")
