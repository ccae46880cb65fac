"""Windows of a text hold the text's own tokens, without a gap."""

import pytest

from circuitview.core.ablation.cases import case_of, text_cases
from circuitview.core.checkpoint import open_model
from circuitview.core.names import CircuitviewError
from circuitview.core.target import Target
from circuitview.resources import resource
from tests.tiny_models import Tiny, tiny_model

BOOK = resource("texts", "jekyll_and_hyde.txt")


@pytest.fixture(scope="module")
def model():
    return open_model("attn-only-2l")


@pytest.mark.parametrize(("length", "most"), [(256, 100), (17, 3), (2, 5), (256, 100_000)])
def test_windows_are_the_text_from_its_beginning(model, length, most):
    text = BOOK.read_text(encoding="utf-8")
    cases = text_cases(model, text, length, most)
    whole = model.tokenizer.encode(text, prepend_bos=False)
    step = length - 1  # BOS stands in front
    assert len(cases) == min(most, len(whole) // step)
    for place, case in enumerate(cases):
        ids = case.prompt.token_ids
        assert ids == (0, *whole[place * step : (place + 1) * step])
        assert case.dests.tolist() == list(range(length - 1))
        assert case.tokens.tolist() == list(ids[1:])
        assert (case.versus, case.target) == (None, None)
        if place < 3:
            assert case.prompt.labels == tuple(model.tokenizer.label(token) for token in ids)


def test_without_bos_nothing_stands_in_front(model):
    whole = model.tokenizer.encode(BOOK.read_text(encoding="utf-8")[:4000], prepend_bos=False)
    cases = text_cases(model, BOOK.read_text(encoding="utf-8"), 20, 4, prepend_bos=False)
    assert [case.prompt.token_ids for case in cases] == [
        tuple(whole[20 * place : 20 * (place + 1)]) for place in range(4)
    ]


def test_a_model_without_bos_gets_none():
    cat = open_model("cat-on-the-mat")
    cases = text_cases(cat, "the cat sat on the mat . the cat", 4, 9)
    assert [case.prompt.token_ids for case in cases] == [(0, 1, 2, 3), (0, 4, 5, 0)]
    with pytest.raises(CircuitviewError, match="BOS"):
        text_cases(cat, "the cat sat on the mat", 4, 9, prepend_bos=True)


@pytest.mark.parametrize(
    ("text", "length", "most", "why"),
    [
        ("w1 w2 w3", 1, 5, "choose 2 to 10"),
        ("w1 w2 w3", 11, 5, "choose 2 to 10"),
        ("w1 w2 w3", 4, 0, "choose 1 or more"),
        ("w1 w2", 4, 1, "has 2 tokens, a window 3"),
        (" \n", 4, 1, "empty"),
    ],
)
def test_what_gives_no_window_is_refused_in_one_line(text, length, most, why):
    with pytest.raises(CircuitviewError, match=why) as caught:
        text_cases(tiny_model(Tiny()), text, length, most)
    assert "\n" not in str(caught.value)


def test_a_prompt_is_measured_where_its_target_is():
    model = tiny_model(Tiny())
    case = case_of(model.prompt("w1 w2 w3"), Target(2, 5, "w5", 6, "w6"))
    assert (case.dests.tolist(), case.tokens.tolist()) == ([2], [5])
    assert case.versus.tolist() == [6]
    assert case_of(model.prompt("w1"), Target(0, 5, "w5")).versus is None
