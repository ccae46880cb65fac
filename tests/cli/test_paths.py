"""`circuitview paths`: its numbers, its three formats, and what each option changes."""

import csv
import io
import json
import math

import pytest

import circuitview
from tests.cli.calling import PROMPT
from tests.hf_families import save_family

SENTENCE = "the cat sat on the mat . the cat"
FIELDS = [
    "model", "tokens", "token_ids", "dest", "target", "target_id", "versus", "versus_id", "dtype",
    "device", "expansion", "soft_cap", "logit", "probability", "constant", "remainder", "error",
    "n_paths", "not_listed", "terms", "groups",
]  # fmt: skip


def facts(call, *arguments: object) -> dict:
    code, out, err = call("paths", *arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def balance(answer: dict) -> float:
    listed = math.fsum(term["contribution"] for term in answer["terms"])
    return listed + answer["constant"] + answer["remainder"] + answer["error"]


def test_hand_worked_model_gives_the_printed_numbers(call):
    answer = facts(call, "cat-on-the-mat", "--prompt", SENTENCE, "--dest", 7, "--target", "cat")
    values = {term["path"]: term["contribution"] for term in answer["terms"]}
    assert answer["logit"] == pytest.approx(6.7588, abs=5e-5)
    assert values["token"] == pytest.approx(3.7, abs=1e-5)
    assert values["token > 0.0"] == pytest.approx(6.7588 - 3.7, abs=5e-5)
    assert answer["n_paths"] == 2
    mat = facts(call, "cat-on-the-mat", "--prompt", SENTENCE, "--dest", 7, "--target", "mat")
    assert mat["logit"] == pytest.approx(4.5201, abs=5e-5)


def test_hand_worked_difference_subtracts_every_number(call):
    options = ["cat-on-the-mat", "--prompt", SENTENCE, "--dest", "7", "--by-source"]
    cat, mat = (facts(call, *options, "--target", word) for word in ("cat", "mat"))
    both = facts(call, *options, "--target", "cat", "--versus", "mat")
    assert (both["versus"], both["versus_id"]) == ("mat", mat["target_id"])
    for name in ("logit", "probability", "constant"):
        assert both[name] == pytest.approx(cat[name] - mat[name], abs=1e-6)
    for name, value in both["groups"].items():
        assert value == pytest.approx(cat["groups"][name] - mat["groups"][name], abs=1e-6)
    by_path = [{term["path"]: term for term in each["terms"]} for each in (both, cat, mat)]
    for path, term in by_path[0].items():
        parts = (each[path]["by_source"] for each in by_path[1:])
        expected = [a - b for a, b in zip(*parts, strict=True)]
        assert term["by_source"] == pytest.approx(expected, abs=1e-6)


def test_no_bos_changes_nothing_where_the_model_has_none(call):
    options = ["cat-on-the-mat", "--prompt", SENTENCE]
    assert facts(call, *options) == facts(call, *options, "--no-bos")


def test_no_bos_leaves_bos_out(call, bundle):
    plain = facts(call, bundle, "--prompt", PROMPT)
    bare = facts(call, bundle, "--prompt", PROMPT, "--no-bos")
    assert plain["tokens"] == ["<|BOS|>", *bare["tokens"]]
    assert "".join(bare["tokens"]) == PROMPT


def test_bos_is_put_in_front_where_it_is_asked_for(call, tmp_path):
    """Qwen2 has a BOS token and was trained without it in front."""
    folder = save_family("qwen2", tmp_path / "qwen2")
    plain = facts(call, folder, "--prompt", "a b")
    assert plain == facts(call, folder, "--prompt", "a b", "--no-bos")
    asked = facts(call, folder, "--prompt", "a b", "--bos")
    assert asked["tokens"] == ["<s>", *plain["tokens"]]
    code, _, err = call("paths", "cat-on-the-mat", "--prompt", SENTENCE, "--bos")
    assert code == 2
    assert "no BOS token" in err


def test_json_has_the_documented_fields_in_order(call, bundle):
    answer = facts(call, bundle, "--prompt", PROMPT)
    assert list(answer) == FIELDS
    term = answer["terms"][0]
    assert list(term) == ["path", "source", "heads", "steps", "kind", "contribution"]
    groups = ["direct", "layer-0 heads", "layer-1 heads", "virtual heads", "positions and biases"]
    assert list(answer["groups"]) == groups
    assert answer["model"] == "two-layers"
    assert answer["dest"] == len(answer["tokens"]) - 1
    assert (answer["versus"], answer["versus_id"], answer["dtype"]) == (None, None, "float32")


def test_json_of_one_layer_has_the_group_of_virtual_heads_too(call):
    answer = facts(call, "cat-on-the-mat", "--prompt", "the cat sat on the mat . the")
    groups = ["direct", "layer-0 heads", "virtual heads", "positions and biases"]
    assert list(answer["groups"]) == groups
    assert answer["groups"]["virtual heads"] == 0.0
    _, table, _ = call("paths", "cat-on-the-mat", "--prompt", "the cat sat on the mat . the")
    assert "virtual" not in table


@pytest.mark.parametrize("top", [0, 1, 7, 50])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_constant_remainder_and_error_add_up_to_the_logit(call, bundle, top, dtype):
    answer = facts(call, bundle, "--prompt", PROMPT, "--top", top, "--dtype", dtype)
    # Sources: token, position, bias 0 (direct and through layer 1), bias 1; two heads a layer.
    assert answer["n_paths"] == 9 + 9 + 3 + 1
    assert len(answer["terms"]) == min(top, answer["n_paths"])
    assert balance(answer) == pytest.approx(answer["logit"], abs=1e-12)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    assert abs(answer["error"]) < tolerance
    assert math.fsum(answer["groups"].values()) == pytest.approx(answer["logit"], abs=tolerance)


def test_groups_hold_every_path_whatever_is_listed(call, bundle):
    whole = facts(call, bundle, "--prompt", PROMPT)
    assert whole["remainder"] == 0
    sums = dict.fromkeys(whole["groups"], 0.0)
    for term in whole["terms"]:
        kinds = {"direct": "direct", "virtual head": "virtual heads"}
        layer = term["heads"][0].split(".")[0] if term["heads"] else ""
        group = kinds.get(term["kind"], f"layer-{layer} heads")
        sums[group if term["source"] == "token" else "positions and biases"] += term["contribution"]
    sums["positions and biases"] += whole["constant"]
    assert whole["groups"] == pytest.approx(sums, abs=1e-12)
    assert facts(call, bundle, "--prompt", PROMPT, "--top", 3)["groups"] == whole["groups"]


def test_listed_terms_are_the_largest_first(call, bundle):
    whole = facts(call, bundle, "--prompt", PROMPT)["terms"]
    sizes = [abs(term["contribution"]) for term in whole]
    assert sizes == sorted(sizes, reverse=True)
    assert facts(call, bundle, "--prompt", PROMPT, "--top", 4)["terms"] == whole[:4]


def test_list_below_what_is_listed_anyway_is_told(call, bundle):
    """It did nothing, and said nothing, on a model whose paths are all listed."""
    asked = ["paths", bundle, "--prompt", PROMPT]
    _, out, err = call(*asked, "--list", 3)
    assert out == call(*asked)[1]
    assert "--list 3 changes nothing: where there are no more than 5,000 paths all are" in err
    assert len(err.splitlines()) == 1
    assert call(*asked, "--list", 3000)[2] == ""


def test_deep_model_counts_what_it_does_not_list(call, deep_bundle):
    answer = facts(call, deep_bundle, "--prompt", PROMPT, "--top", 1000)
    # From token and position 9^4 chains each; from the bias of layer l, 9^(3 − l).
    assert answer["n_paths"] == 2 * 9**4 + 9**3 + 81 + 9 + 1
    assert len(answer["terms"]) == 1000
    worked_out, summed = answer["not_listed"]
    assert (worked_out["which"], summed["which"]) == ("worked out", "summed only")
    assert worked_out["n_paths"] + summed["n_paths"] == answer["n_paths"] - 1000
    parts = worked_out["contribution"] + summed["contribution"]
    assert parts == pytest.approx(answer["remainder"], abs=1e-12)
    assert answer["remainder"] != 0
    assert balance(answer) == pytest.approx(answer["logit"], abs=1e-12)
    assert math.fsum(answer["groups"].values()) == pytest.approx(answer["logit"], abs=1e-3)


def test_list_says_how_many_paths_are_found(call, deep_bundle):
    few = facts(call, deep_bundle, "--prompt", PROMPT, "--top", 1000, "--list", 60)
    assert len(few["terms"]) == 60
    assert balance(few) == pytest.approx(few["logit"], abs=1e-12)


def test_table_tells_small_paths_from_longer_ones(call, deep_bundle):
    _, out, _ = call("paths", deep_bundle, "--prompt", PROMPT, "--top", 9)
    lines = out.splitlines()
    assert lines[3].startswith("9 of 13,942 paths listed; the other 13,933 bring ")
    assert "are worked out and smaller: " in lines[4]
    assert "are longer, known by their exact sum: " in lines[5]
    counts = [int(line.split()[0].replace(",", "")) for line in lines[4:6]]
    assert sum(counts) == 13_933


def test_by_source_sums_to_its_term(call, bundle):
    answer = facts(call, bundle, "--prompt", PROMPT, "--by-source")
    for term in answer["terms"]:
        assert len(term["by_source"]) == len(answer["tokens"])
        assert math.fsum(term["by_source"]) == pytest.approx(term["contribution"], abs=1e-9)


def test_json_numbers_are_those_of_three_lines_of_python(call, bundle):
    answer = facts(call, bundle, "--prompt", PROMPT, "--target", " tea", "--dest", "-2")
    expansion = circuitview.analyse(bundle, PROMPT, target=" tea", dest=-2)
    assert answer["logit"] == expansion.logit
    listed = [(term["path"], term["contribution"]) for term in answer["terms"]]
    assert listed == [(term.path.label, term.contribution) for term in expansion.terms]


def test_negative_dest_counts_from_the_end(call, bundle):
    last = facts(call, bundle, "--prompt", PROMPT)
    count = len(last["tokens"])
    assert facts(call, bundle, "--prompt", PROMPT, "--dest", -1) == last
    assert facts(call, bundle, "--prompt", PROMPT, "--dest", -count)["dest"] == 0


def test_default_target_is_the_top_prediction_at_dest(call, bundle):
    for dest in (0, 3):
        answer = facts(call, bundle, "--prompt", PROMPT, "--dest", dest)
        logits = circuitview.analyse(bundle, PROMPT, dest=dest).recording.logits[dest]
        assert answer["target_id"] == int(logits.argmax())


def test_target_from_json_can_be_asked_for_again(call, bundle):
    for dest in range(5):
        answer = facts(call, bundle, "--prompt", PROMPT, "--dest", dest)
        options = ["--dest", dest, "--target", answer["target"]]
        assert facts(call, bundle, "--prompt", PROMPT, *options) == answer


def test_csv_reads_back_and_adds_up(call, bundle):
    code, out, _ = call("paths", bundle, "--prompt", PROMPT, "--top", 5, "--format", "csv")
    assert code == 0
    answer = facts(call, bundle, "--prompt", PROMPT, "--top", 5)
    rows = list(csv.DictReader(io.StringIO(out)))
    *terms, constant, remainder = rows
    for row, term in zip(terms, answer["terms"], strict=True):
        assert float(row["contribution"]) == term["contribution"]
        assert (row["path"], row["source"], row["kind"]) == (
            term["path"], term["source"], term["kind"],
        )  # fmt: skip
        assert [head for head in row["heads"].split(" > ") if head] == term["heads"]
    assert (constant["kind"], float(constant["contribution"])) == ("constant", answer["constant"])
    assert (remainder["kind"], float(remainder["contribution"])) == (
        "remainder", answer["remainder"],
    )  # fmt: skip
    total = math.fsum(float(row["contribution"]) for row in rows)
    assert total + answer["error"] == pytest.approx(answer["logit"], abs=1e-12)


def test_csv_by_source_has_a_column_for_each_token(call, bundle):
    options = ["--prompt", 'I, "tea"', "--by-source"]
    code, out, _ = call("paths", bundle, *options, "--format", "csv")
    assert code == 0
    rows = list(csv.reader(io.StringIO(out)))
    answer = facts(call, bundle, *options)
    columns = rows[0][6:]
    assert len(columns) == len(answer["tokens"])
    assert columns[:3] == ["from 0 BOS", "from 1 I", "from 2 ,"]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [float(cell) for cell in rows[1][6:]] == answer["terms"][0]["by_source"]


def test_table_groups_add_up_and_end_with_the_balance(call, bundle):
    code, out, _ = call("paths", bundle, "--prompt", PROMPT, "--top", 6)
    assert code == 0
    lines = out.replace("−", "-").splitlines()
    rule = next(place for place, line in enumerate(lines) if line.startswith("───"))
    body, closing = lines[lines.index("") + 1 : rule], lines[rule + 1 :]
    outer = [float(line.split()[-1]) for line in body if not line.startswith(" ")]
    inner = [float(line.split()[-1]) for line in body if line.startswith(" ")]
    assert [line.split("  ")[0] for line in closing] == [
        "sum", "model's logit", "probability", "error",
    ]  # fmt: skip
    total = float(closing[0].split()[-1])
    assert sum(outer) == pytest.approx(total, abs=5e-4)
    assert sum(inner) == pytest.approx(total, abs=2e-3)
    assert lines[3].startswith("6 of 22 paths listed; the other 16 bring ")


def test_table_of_a_difference_says_so(call, bundle):
    _, out, _ = call("paths", bundle, "--prompt", PROMPT, "--target", " tea", "--versus", " green")
    assert "target ␣tea versus ␣green at dest" in out
    assert "model's difference" in out
    assert "probability difference" in out


def test_table_by_source_names_the_largest_positions(call):
    options = ["--prompt", SENTENCE, "--dest", 7, "--target", "cat", "--by-source"]
    _, out, _ = call("paths", "cat-on-the-mat", *options)
    line = next(line for line in out.splitlines() if "token > 0.0" in line)
    assert "cat@1 +3.00" in line


PAIR = ("induction-by-hand", "--prompt", "we like green tea so we like")


def test_second_prompt_gives_b_minus_a_path_by_path(call):
    other = "we like green cat so we like"
    answer = facts(call, *PAIR, "--prompt-b", other, "--by-source")
    a = facts(call, *PAIR)
    b = facts(call, PAIR[0], "--prompt", other, "--target", a["target"])
    assert answer["b_minus_a"]["a"]["logit"] == a["logit"]
    assert answer["b_minus_a"]["b"]["logit"] == b["logit"]
    assert answer["b_minus_a"]["b"]["tokens"] == b["tokens"] != answer["tokens"] == a["tokens"]
    assert answer["logit"] == b["logit"] - a["logit"] == pytest.approx(balance(answer), abs=1e-9)
    worth = [{term["path"]: term["contribution"] for term in one["terms"]} for one in (a, b)]
    for term in answer["terms"]:
        # Each is a sum over positions in float64; all terms of both are listed.
        brought = worth[1][term["path"]] - worth[0][term["path"]]
        assert term["contribution"] == pytest.approx(brought, abs=1e-9)
    assert set(answer) == {*FIELDS, "b_minus_a"}


def test_second_prompt_is_named_in_the_table(call):
    code, out, _ = call("paths", *PAIR, "--prompt-b", "we like green cat so we like")
    assert code == 0
    assert "B − A" in out.splitlines()[0]
    assert "tea → cat" in out
    assert "model's logit, B − A" in out


def test_second_prompt_of_another_length_is_refused_in_one_line(call):
    code, out, err = call("paths", *PAIR, "--prompt-b", "we like green cat")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "A has 8 tokens, B has 5" in err
