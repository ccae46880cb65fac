"""Questions to the ablation lab: what is asked is what is run, and it can be asked again."""

import hashlib
from dataclasses import replace
from pathlib import Path as FilePath

import pytest

import circuitview
from circuitview.core import fingerprint
from circuitview.core.bundled import bundled_folder
from circuitview.core.fingerprint import hash_of_model, hash_of_text, hash_of_tokens
from circuitview.core.names import CircuitviewError
from circuitview.core.progress import Progress, finished
from circuitview.session.lab import Question, located, run_question
from circuitview.session.run_difference import difference
from tests.session.lab_runs import MODEL, found, opened, prompts

ASKED = Question(model=MODEL, prompts=prompts(MODEL, 1))
HEADS = ["0.0", "0.1", "1.0", "1.1"]
PAIR = replace(ASKED, prompts=prompts(MODEL, 2))


def sites(run):
    return [str(row.site) for row in run.table.rows]


@pytest.fixture
def text(tmp_path):
    """A text in the model's own words."""
    path = tmp_path / "words.txt"
    path.write_text(" ".join(prompts(MODEL, 30)), encoding="utf-8")
    return str(path)


def test_run_says_what_was_run():
    run = found(PAIR)
    prompt_ids = [opened(MODEL).prompt(prompt).token_ids for prompt in PAIR.prompts]
    weights = bundled_folder(MODEL) / "model.safetensors"
    assert run.model_name == MODEL
    assert run.model_hash == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert run.data_hash == hash_of_tokens(prompt_ids)
    assert (run.n_cases, run.n_tokens) == (2, sum(map(len, prompt_ids)))
    assert run.version == circuitview.__version__
    assert run.seconds > 0


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({}, HEADS),
        ({"chosen": ("1.0",)}, ["1.0"]),
        ({"what": "pairs", "chosen": ("1.1", "0.0")}, ["0.0", "1.1", "0.0 + 1.1"]),
        ({"what": "orders"}, ["order 0", "order 1", "order 2"]),
        ({"what": "each-order"}, ["order 0", "order 1", "order 2"]),
        ({"what": "chosen", "chosen": ("direct", "0.0 + order 1")}, ["token", "0.0 + order 1"]),
        ({"what": "paths", "chosen": ("position > 0.0 + direct",)}, ["position > 0.0 + token"]),
    ],
    ids=str,
)  # fmt: skip
def test_each_question_has_its_rows(asked, rows):
    assert sites(found(replace(ASKED, **asked))) == rows


def test_largest_paths_are_the_first_prompts():
    run = found(replace(PAIR, what="paths", most=3, frozen=True))
    expansion = circuitview.analyse(MODEL, PAIR.prompts[0])
    assert sites(run) == [str(term.path) for term in expansion.terms[:3]]


def test_versus_counts_in_a_difference_only():
    """The contribution beside a logit was that to the difference."""
    plain = found(replace(ASKED, frozen=True))
    other = found(replace(ASKED, frozen=True, versus=prompts(MODEL)[1].split()[0]))
    assert difference(plain, other) is None


def test_without_bos_the_other_prompt_has_none_either():
    """It had one, and was then one token longer than what it stood in for."""
    asked = replace(ASKED, kind="resample", parameters=(("prompt", prompts(MODEL, 2)[1]),))
    assert found(asked).n_tokens == 7
    bare = found(replace(asked, prepend_bos=False))
    assert bare.n_tokens == 6


@pytest.mark.parametrize("kind", ["mean", "resample"])
def test_without_bos_a_text_has_none_either(text, kind):
    asked = replace(ASKED, prompts=(), text=text, length=6, windows=3, metric="loss", kind=kind)
    with_bos = found(replace(asked, parameters=(("text", text),)))
    bare = found(replace(asked, parameters=(("text", text),), prepend_bos=False))
    assert with_bos.data_hash != bare.data_hash
    assert with_bos.n_tokens == bare.n_tokens == 18


def test_window_ends_as_in_the_whole_text(tmp_path):
    """A text that was cut for speed ended in tokens that are not its own."""
    model = opened("attn-only-2l")
    text = "extraordinarily " * 3000
    path = tmp_path / "long.txt"
    path.write_text(text, encoding="utf-8")
    whole = model.tokenizer.encode(text, prepend_bos=False)
    for length in range(20, 28):
        asked = Question(model="attn-only-2l", text=str(path), length=length, windows=1)
        run = found(replace(asked, metric="loss", chosen=("0.0",)))
        bos = model.tokenizer.bos_token_id
        assert run.data_hash == hash_of_tokens([(bos, *whole[: length - 1])]), length


def test_same_question_gives_the_same_numbers(text):
    asked = replace(PAIR, kind="resample", parameters=(("text", text),), seed=3)
    first = found(asked)
    assert difference(first, found(asked)) is None
    seeds = {found(replace(asked, seed=seed)).table.values.tobytes() for seed in range(8)}
    assert len(seeds) > 1


@pytest.mark.parametrize("kind", ["mean", "resample"])
def test_text_that_a_kind_reads_is_told_from_another(text, kind):
    asked = replace(PAIR, kind=kind, parameters=(("text", text),))
    first = found(asked)
    assert found(PAIR).donor_hash == ""
    path = FilePath(text)
    assert first.donor_hash == hash_of_text(path.read_text(encoding="utf-8"))
    path.write_text(" ".join(reversed(prompts(MODEL, 40))), encoding="utf-8")
    assert f"the text that {kind} reads changed" in difference(first, found(asked))


def test_progress_comes_with_rows():
    partials = []
    for progress in run_question(opened(MODEL), PAIR):
        assert isinstance(progress, Progress)
        assert 0 <= progress.done <= progress.total
        if isinstance(progress.partial, tuple):
            partials += [str(row.site) for row in progress.partial]
    assert partials == HEADS * 2


ALONE = {"prompts": (), "metric": "loss"}
REFUSED = {
    "nothing to run": ({"prompts": ()}, "nothing to run"),
    "no such kind": ({"kind": "noise"}, "there is no kind 'noise'"),
    "no such setting": ({"parameters": (("text", "a"),)}, "no setting 'text'; it has none"),
    "setting twice": (
        {"kind": "mean", "parameters": (("length", 4), ("length", 5))}, "given twice",
    ),
    "setting no number": (
        {"kind": "mean", "parameters": (("length", "4"),)}, "length is a whole number, not '4'",
    ),
    "setting no text": ({"kind": "mean", "parameters": (("text", 4),)}, "text is a text, not 4"),
    "setting too small": (
        {"kind": "mean", "parameters": (("windows", 0),)}, "windows is 1 to 100,000, not 0",
    ),
    "negative seed": ({"seed": -1}, "seed -1: choose 0 or more"),
    "seed of too many bits": ({"seed": 2**63}, "choose 9223372036854775807 or less"),
    "text and prompts": ({"text": "a.txt", "metric": "loss"}, "leave out prompts"),
    "text and a target": (
        {**ALONE, "text": "a.txt", "target": "a", "dest": 0}, "leave out target, dest",
    ),
    "no paths": ({"what": "paths", "most": 0}, "0 paths: choose 1 or more"),
    "nothing chosen": ({"what": "chosen"}, "nothing to take away"),
    "a path among heads": ({"chosen": ("token > 1.0",)}, "not among the heads"),
    "a path among pairs": ({"what": "pairs", "chosen": ("token > 1.0",)}, "is not one head"),
    "one head in pairs": ({"what": "pairs", "chosen": ("1.0",)}, "a pair needs two heads"),
    "a head twice": ({"chosen": ("1.0", "1.0")}, "1.0 is named twice"),
    "two heads twice": (
        {"what": "chosen", "chosen": ("1.0 + 0.1", "0.1 + 1.0")}, "0.1 + 1.0 is named twice",
    ),
    "a path twice": ({"what": "paths", "chosen": ("direct", "token")}, "token is named twice"),
    "no MLPs": ({"what": "mlps"}, "has no MLPs"),
    "no bias source": (
        {"what": "paths", "chosen": ("bias 0 > 1.0",)},
        "bias 0 > 1.0: the attention of layer 0 has no biases in induction-by-hand; choose another",
    ),
    "no such head": ({"chosen": ("2.0",)}, "there is no head 2.0"),
    "no such order": ({"what": "chosen", "chosen": ("order 3",)}, "at most 2 heads"),
    "orders resampled": ({"what": "orders", "kind": "mean"}, "left out, not replaced"),
    "difference of one": ({"metric": "difference"}, "needs two tokens"),
    "one row shuffled": ({"kind": "resample"}, "nothing to resample from"),
    "unknown word": ({"prompts": ("zebra",)}, "'zebra'"),
    "dest out of range": ({"dest": 40}, "dest 40 is out of range"),
    "no such text": ({**ALONE, "text": "none.txt"}, "none.txt: No such file"),
    "text no name": ({**ALONE, "text": "n\0l"}, "is no name of a file"),
    "text a folder": ({**ALONE, "text": "."}, "is a folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_asked_is_one_line(name):
    asked, needle = REFUSED[name]
    with pytest.raises(CircuitviewError) as caught:
        found(replace(ASKED, **asked))
    assert needle in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "needle"),
    [
        (b" \n", "the file is empty"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"the cat", "the text has"),
    ],
)
def test_text_that_can_not_be_read_is_one_line(tmp_path, content, needle):
    path = tmp_path / "t.txt"
    path.write_bytes(content)
    with pytest.raises(CircuitviewError, match=needle):
        found(replace(ASKED, prompts=(), text=str(path), metric="loss"))


def test_model_that_moved_away_is_refused_before_anything_runs(tmp_path):
    asked = replace(ASKED, model=str(tmp_path / "gone"))
    with pytest.raises(CircuitviewError, match="gone"):
        next(run_question(opened(MODEL), asked))


def test_hash_follows_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"one")
    assert finished(hash_of_model(str(path))) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"other")
    assert finished(hash_of_model(str(path))) == hashlib.sha256(b"other").hexdigest()


def test_hashing_can_be_stopped_between_blocks_and_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "_BLOCK", 4)
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"one, two, three")
    steps = run_question(opened(MODEL), replace(ASKED, model=str(path)))
    first = next(steps)
    assert (first.done, first.total) == (1, 4)  # 15 bytes in blocks of 4
    assert "weight files" in first.partial
    steps.close()
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    assert finished(hash_of_model(str(path))) == known
    assert list(hash_of_model(str(path))) == []  # read once


def test_hash_of_tokens_tells_prompts_apart():
    assert hash_of_tokens([(1, 2), (3,)]) != hash_of_tokens([(1,), (2, 3)])
    assert hash_of_tokens([(12,)]) != hash_of_tokens([(1, 2)])


def test_names_are_no_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = Question(model=MODEL, text="a.txt", tokenizer="numbers")
    assert located(asked) == replace(asked, text=str(tmp_path / "a.txt"))
    assert located(replace(asked, tokenizer="t.json")).tokenizer == str(tmp_path / "t.json")
    assert located(replace(asked, text="", model="no/such")).model == "no/such"
