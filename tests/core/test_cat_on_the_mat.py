"""Every fact of the hand-worked sentence, through the bundled model. Positions count from 0 here;
the worked sentence counts from 1."""

import numpy as np
import pytest
import torch

import circuitview
from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.hand_built_cards import CAT_CARD
from circuitview.core.names import TOKEN, CircuitviewError, Head
from circuitview.core.ov import ov_breakdown
from circuitview.core.path import Path
from circuitview.core.target import resolve_target

SENTENCE = "the cat sat on the mat . the cat"
WORDS = ["the", "cat", "sat", "on", "mat", "."]
DIRECT = """
the 0.0 3.7 0.2 0.1 4.1 0.0
cat 0.3 0.0 3.9 0.4 0.1 1.2
sat 1.1 0.1 0.0 4.2 0.2 0.9
on 4.4 0.2 0.0 0.0 0.6 0.1
mat 0.5 0.1 0.1 0.2 0.0 3.8
. 3.5 0.2 0.0 0.1 0.1 0.0
"""
OV = """
the 0.9 0.1 0.0 0.1 0.1 0.0
cat 0.1 5.0 0.2 0.0 0.0 0.0
sat 0.2 0.1 4.1 0.1 0.1 0.0
on 0.1 0.0 0.1 3.4 0.2 0.0
mat 0.1 0.2 0.1 0.0 2.0 0.1
. 0.0 0.1 0.0 0.0 0.0 1.8
"""
SCORES = """
the .4
cat .5 .3
sat .6 1.2 .3
on .7 1.0 .5 .3
the .4 3.4 .7 .6 .4
mat .5 .9 .4 .6 .5 .3
. .4 .8 .5 .4 .4 .9 .3
the .4 3.4 .7 .6 .4 2.3 .5 .4
cat .5 .3 .6 .4 .5 .8 .3 .5 .3
"""


def rows(text: str) -> dict[int, tuple[str, list[float]]]:
    lines = [line.split() for line in text.strip().splitlines()]
    return {
        place: (word, [float(x) for x in numbers]) for place, (word, *numbers) in enumerate(lines)
    }


@pytest.fixture(scope="module")
def model():
    return open_model("cat-on-the-mat")


@pytest.fixture(scope="module")
def recording(model):
    return model.run(model.prompt(SENTENCE))


def float32(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def test_vocabulary_is_the_six_words_in_order(model):
    assert model.tokenizer.labels == tuple(WORDS)
    assert model.tokenizer.bos_token_id is None


def test_direct_table_is_exact(model):
    weights = model.weights()
    table = weights.W_E @ weights.W_U
    for place, (word, numbers) in rows(DIRECT).items():
        assert word == WORDS[place]
        assert torch.equal(table[place], float32(numbers))


def test_ov_table_is_exact(model):
    weights = model.weights()
    table = weights.W_E @ weights.W_V[0, 0] @ weights.W_O[0, 0] @ weights.W_U
    for place, (word, numbers) in rows(OV).items():
        assert word == WORDS[place]
        assert torch.equal(table[place], float32(numbers))


def test_scores_are_exact_for_every_pair_of_the_sentence(model, recording):
    scores = model.scores(recording, Head(0, 0))
    for dest, (word, numbers) in rows(SCORES).items():
        assert word == recording.prompt.labels[dest]
        assert torch.equal(scores[dest, : dest + 1], float32(numbers))


def test_pairs_that_the_sentence_does_not_have_score_point_three(model):
    seen = set()
    words = SENTENCE.split()
    for dest, word in enumerate(words):
        seen |= {(word, other) for other in words[: dest + 1]}
    weights = model.weights()
    queries, keys = weights.W_E @ weights.W_Q[0, 0], weights.W_E @ weights.W_K[0, 0]
    table = queries @ keys.T / weights.config.score_scale
    unseen = [
        table[WORDS.index(dest), WORDS.index(src)]
        for dest in WORDS
        for src in WORDS
        if (dest, src) not in seen
    ]
    assert len(unseen) == 6
    assert all(score == np.float32(0.3) for score in unseen)


def test_position_eight_has_the_printed_weights(recording):
    percent = [round(100 * float(weight)) for weight in recording.pattern[0, 0, 7, :8]]
    assert percent == [3, 60, 4, 4, 3, 20, 3, 3]


def test_position_five_puts_81_46_percent_on_cat(recording):
    assert round(100 * float(recording.pattern[0, 0, 4, 1]), 2) == 81.46


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("word", "logit"), [("cat", 6.7588), ("mat", 4.5201)])
def test_logits_at_position_eight_to_four_places(word, logit, dtype):
    found = circuitview.analyse("cat-on-the-mat", SENTENCE, word, dest=7, dtype=dtype)
    assert round(found.logit, 4) == logit
    assert found.balanced


def test_cat_is_direct_plus_what_position_two_sends(model, recording):
    target = resolve_target(recording, model.tokenizer, "cat", dest=7)
    found = expand(recording, target)
    assert [str(path) for path in found.paths] == ["token", "token > 0.0"]
    assert found.term(Path(TOKEN)).contribution == np.float32(3.7)
    through = found.term(Path(TOKEN, (Head(0, 0),)))
    # 0.6005 x 5.0; the worked sentence rounds the weight to 0.60.
    assert through.by_source[1] == pytest.approx(3.0025, abs=5e-5)
    assert round(through.by_source[1], 1) == 3.0
    breakdown = ov_breakdown(recording, target, (Head(0, 0),), "token")
    assert breakdown.value[1] == 5.0
    assert round(breakdown.weight[1], 2) == 0.60


def test_mat_is_direct_plus_what_position_six_sends(model, recording):
    target = resolve_target(recording, model.tokenizer, "mat", dest=7)
    found = expand(recording, target)
    assert found.term(Path(TOKEN)).contribution == np.float32(4.1)
    breakdown = ov_breakdown(recording, target, (Head(0, 0),), "token")
    assert breakdown.value[5] == 2.0
    assert round(breakdown.weight[5], 2) == 0.20
    assert round(breakdown.contribution[5], 1) == 0.4


def test_totals_printed_in_the_source_count_one_position_each():
    """6.7 and 4.5 leave out what the seven other positions add."""
    cat = circuitview.analyse("cat-on-the-mat", SENTENCE, "cat", dest=7)
    mat = circuitview.analyse("cat-on-the-mat", SENTENCE, "mat", dest=7)
    assert round(3.7 + cat.terms[1].by_source[1], 1) == 6.7
    assert round(4.1 + mat.terms[1].by_source[5], 1) == 4.5


def test_head_decides_between_the_two(model):
    found = circuitview.analyse("cat-on-the-mat", SENTENCE, None, dest=7)
    assert found.target.label == "cat"
    gap = circuitview.analyse("cat-on-the-mat", SENTENCE, "cat", "mat", dest=7)
    assert gap.groups["direct"] < 0 < gap.groups["layer-0 heads"]


def test_a_model_without_bos_takes_no_bos(model):
    assert model.prompt(SENTENCE).token_ids == model.prompt(SENTENCE, False).token_ids
    with pytest.raises(CircuitviewError, match="no BOS"):
        model.prompt(SENTENCE, True)


def test_text_survives_a_round_trip(model):
    ids = list(model.prompt(SENTENCE).token_ids)
    assert model.tokenizer.inner.decode(ids) == SENTENCE


def test_a_word_outside_the_vocabulary_is_named_with_the_words_there_are(model):
    with pytest.raises(CircuitviewError, match="'dog' is not in") as caught:
        model.prompt("the dog sat")
    assert all(word in str(caught.value) for word in WORDS)


@pytest.mark.parametrize("text", [DIRECT, OV])
def test_card_prints_the_tables_as_they_are(text):
    for word, numbers in rows(text).values():
        assert f"| {word} | " + " | ".join(f"{x:.1f}" for x in numbers) + " |" in CAT_CARD


def test_card_states_what_the_model_does(recording):
    for fact in ("6.7588", "4.5201", "81.46", "3, 60, 4, 4, 3, 20, 3 and 3 percent", "0.3"):
        assert fact in CAT_CARD
