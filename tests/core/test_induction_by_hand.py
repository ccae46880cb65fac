"""The hand-built induction model does what its card says, in closed form."""

import math

import numpy as np
import pytest

import circuitview
from circuitview.core.checkpoint import open_model
from circuitview.core.hand_built import (
    BOS_BIAS,
    BRAKE,
    CARRIED_BEFORE,
    CARRIED_BRAKE,
    FOLLOWERS,
    FOLLOWS,
    INDUCTION_WORDS,
    LOOKED_UP,
    MATCH,
    NOUN_BIAS,
    NOUNS,
    OWN_WORD,
    REST,
    SKIP_FOLLOWERS,
    SKIPS,
    hand_built,
)
from circuitview.core.hand_built_cards import INDUCTION_CARD
from circuitview.core.names import Head
from circuitview.core.ov import strongest_head
from tests.reference import Oracle

PROMPT = "I like green tea, so I drink green"
# Past a match leaks e^-15 of a few logits: 3e-7 x 6.
LEAK = 5e-6


@pytest.fixture(scope="module")
def model():
    return open_model("induction-by-hand")


def contributions(found) -> dict[str, float]:
    return {str(term.path): term.contribution for term in found.terms}


def test_bos_stands_in_front_and_punctuation_is_split_off(model):
    labels = model.prompt(PROMPT).labels
    assert labels == ("BOS", "I", "like", "green", "tea", ",", "so", "I", "drink", "green")
    assert model.prompt("I like green tea , so I drink green").labels == labels


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_of_tea_are_those_of_the_card(dtype):
    found = circuitview.analyse("induction-by-hand", PROMPT, "tea", dtype=dtype)
    expected = {
        "token > 1.0": 6.0,
        "token": 2.0,
        "token > 0.0": 1.0,
        "token > 0.1 > 1.0": -0.6,
        "token > 0.1": -0.2,
    }
    terms = contributions(found)
    for path, value in terms.items():
        assert value == pytest.approx(expected.get(path, 0.0), abs=LEAK), path
    assert [str(term.path) for term in found.terms[:5]] == list(expected)
    assert found.constant == 0.5
    assert found.logit == pytest.approx(8.7, abs=LEAK)


def test_logit_of_the_word_looked_up_is_known_in_closed_form(model):
    """With every leak counted: nothing is left but rounding."""
    n, tea, last = 10, 4, 9
    words = ["BOS", "I", "like", "green", "tea", ",", "so", "I", "drink", "green"]
    found = circuitview.analyse(model, PROMPT, "tea", dtype="float64")

    def softmax(scores: list[float]) -> list[float]:
        weights = [math.exp(score - max(scores)) for score in scores]
        return [weight / sum(weights) for weight in weights]

    back = [softmax([MATCH * (src == dest - 1) for src in range(dest + 1)]) for dest in range(n)]
    before = [
        {word: sum(w for w, at in zip(row, words, strict=False) if at == word) for word in words}
        for row in back
    ]
    look = softmax(
        [MATCH * before[src]["green"] + REST * (words[src] == "BOS") for src in range(n)]
    )
    own = softmax([MATCH * (word == "green") for word in words])
    brake = [BRAKE * words[: src + 1].count("tea") / (src + 1) for src in range(n)]
    looked_up = sum(
        weight
        * LOOKED_UP
        * ((words[src] == "tea") + CARRIED_BEFORE * before[src]["tea"] + CARRIED_BRAKE * brake[src])
        for src, weight in enumerate(look)
    )
    skips = SKIPS * sum(before[last].get(word, 0.0) for word in {"drink"})
    logit = NOUN_BIAS + FOLLOWS + skips + brake[last] + looked_up + OWN_WORD * own[tea]
    assert found.logit == pytest.approx(logit, abs=1e-9)


def test_card_states_the_logit(model):
    assert "**8.7**" in INDUCTION_CARD
    folder_card = (model.folder / "README.md").read_text()
    assert folder_card == INDUCTION_CARD


def test_top_prediction_is_tea_and_the_runner_up_apples_at_two_and_a_half(model):
    found = circuitview.analyse(model, PROMPT)
    assert found.target.label == "tea"
    assert found.probability > 0.99
    logits = found.recording.logits[-1]
    second = logits.topk(2).indices[1]
    assert model.tokenizer.label(int(second)) == "apples"
    assert float(logits[second]) == pytest.approx(2.5, abs=LEAK)


def test_induction_head_is_the_strongest_and_finds_its_key_through_the_other(model):
    found = circuitview.analyse(model, PROMPT, "tea", dtype="float64")
    recording = found.recording
    assert str(strongest_head(recording, found.target)) == "1.0"
    # K-composition alone: what head 0.0 wrote at tea, read by the key of 1.0.
    weights = recording.weights
    wrote = recording.z[0, 0, 4] @ weights.W_O[0, 0]
    key = wrote @ weights.W_K[1, 0]
    query = weights.W_E[recording.tokens[9]] @ weights.W_Q[1, 0]
    assert float(query @ key) / weights.config.score_scale == pytest.approx(MATCH, abs=1e-6)
    assert float(model.scores(recording, Head(1, 0))[9, 4]) == pytest.approx(MATCH, abs=1e-6)
    assert float(recording.pattern[1, 0, 9, 4]) == pytest.approx(1.0, abs=LEAK)


@pytest.mark.parametrize("first", [word for word in INDUCTION_WORDS[1:] if word not in ",."])
def test_after_a_b_and_a_it_says_b(model, first):
    """For every word, and a second word that may not follow it: only the copy tells."""
    others = [word for word in INDUCTION_WORDS[1:] if word not in FOLLOWERS.get(first, "").split()]
    second = next(word for word in others if word not in (first, ",", "."))
    found = circuitview.analyse(model, f"{first} {second} . {first}")
    assert found.target.label == second
    assert str(found.terms[0].path) == "token > 1.0"


def test_positions_never_reach_a_logit(model):
    found = circuitview.analyse(model, PROMPT, "tea", "green")
    values = [term.contribution for term in found.terms if term.path.source.kind == "position"]
    assert values == [0.0] * 9


def test_against_green_two_more_paths_speak(model):
    terms = contributions(circuitview.analyse(model, PROMPT, "tea", "green"))
    assert terms["token > 1.1"] == pytest.approx(3.0, abs=LEAK)
    assert terms["token > 0.0 > 1.0"] == pytest.approx(1.5, abs=LEAK)


def test_two_earlier_copies_share_the_attention(model):
    prompt = model.prompt("green tea , green tea , so I drink green")
    pattern = model.run(prompt).pattern[1, 0, -1]
    tea = [place for place, label in enumerate(prompt.labels) if label == "tea"]
    assert pattern[tea].tolist() == pytest.approx([0.5, 0.5], abs=LEAK)


def test_without_a_copy_the_head_rests_on_bos(model):
    prompt = model.prompt("I like green")
    recording = model.run(prompt)
    assert float(recording.pattern[1, 0, -1, 0]) == pytest.approx(1.0, abs=LEAK)


def test_oracle_reads_the_same_bundle(model):
    tokens = list(model.prompt(PROMPT).token_ids)
    run = Oracle(model.folder).run(tokens)
    recording = model.run(model.prompt(PROMPT), "float64")
    assert np.abs(recording.logits.numpy() - run.logits).max() < 1e-11


@pytest.mark.parametrize("built", hand_built(), ids=lambda built: built.name)
def test_bundled_files_are_what_the_source_writes(built, tmp_path):
    folder = built.write(tmp_path)
    bundled = open_model(built.name).folder
    for file in folder.iterdir():
        assert file.read_bytes() == (bundled / file.name).read_bytes(), file.name


def test_tables_name_only_words_of_the_vocabulary():
    for table in (FOLLOWERS, SKIP_FOLLOWERS):
        for word, followers in table.items():
            assert {word, *followers.split()} <= set(INDUCTION_WORDS)
    assert set(NOUNS) <= set(INDUCTION_WORDS)
    assert BOS_BIAS < 0
    assert len(set(INDUCTION_WORDS)) == len(INDUCTION_WORDS) == 25
