"""Core results as figures: the ledger adds up, and each figure says what it is of."""

import math
from dataclasses import replace

import numpy as np
import pytest

from circuitview.core.analysis import analyse
from circuitview.core.attention import attention_values
from circuitview.core.difference import difference
from circuitview.core.names import CircuitviewError, Head, ImbalanceError
from circuitview.core.ov import ov_breakdown, strongest_head
from circuitview.figures import compose
from circuitview.figures.diagram import diagram_figure
from circuitview.figures.figure import Image, groups, texts, walk
from circuitview.figures.ledger import ledger
from circuitview.figures.theme import LIGHT
from circuitview.session.numbers import logits

SENTENCE = "the cat sat on the mat . the"
SIZE = {"theme": LIGHT, "width": 900.0, "height": 640.0}


@pytest.fixture(scope="module")
def induction():
    """A two-layer model with positions and biases of its own kind."""
    return analyse("induction-by-hand", "we like green tea so we like")


@pytest.fixture(scope="module")
def cat():
    return analyse("cat-on-the-mat", SENTENCE, target="cat")


@pytest.mark.parametrize("top", [None, 0, 1, 5, 1000])
def test_ledger_adds_up_whatever_is_listed(induction, top):
    book = ledger(induction, top)
    assert math.fsum(group.total for group in book.groups) == pytest.approx(induction.total)
    for group in book.groups:
        parts = math.fsum(term.contribution for term in group.terms)
        assert parts + (group.constant or 0) + group.rest == pytest.approx(group.total, abs=1e-9)
    assert len(book.listed) + book.n_rest == induction.n_paths
    assert sum(len(group.terms) + group.n_rest for group in book.groups) == induction.n_paths
    listed = math.fsum(term.contribution for term in book.listed)
    assert listed + induction.constant + book.remainder == pytest.approx(induction.total, abs=1e-9)


def test_provenance_holds_what_is_needed_to_repeat_the_run(cat):
    about = compose.provenance(cat)
    for part in ("cat-on-the-mat", "float32", "the(0) cat(1)", "target cat", "dest 7", "held"):
        assert part in about
    assert repr(cat.logit) in about


def test_attention_figure_outlines_dest_and_names_the_head(cat):
    figure = compose.attention_figure(cat, (Head(0, 0),), **SIZE)
    assert texts(figure)[0] == "Head 0.0: attention pattern"
    assert "0.60" in texts(figure)
    assert any(isinstance(item, Image) for item in walk(figure))


def test_attention_values_of_a_virtual_head_are_the_product_of_patterns(induction):
    first, second = Head(0, 1), Head(1, 0)
    pattern = induction.recording.pattern.double().numpy()
    values = attention_values(induction.recording, (first, second), "pattern")
    np.testing.assert_allclose(values, pattern[1, 0] @ pattern[0, 1], atol=1e-6)
    weighted = attention_values(induction.recording, (first, second), "value-weighted")
    assert (weighted >= 0).all()


def test_scores_of_a_virtual_head_are_refused(induction):
    with pytest.raises(CircuitviewError, match="no scores of its own"):
        compose.attention_figure(induction, (Head(0, 0), Head(1, 0)), "scores", **SIZE)


def test_ov_figure_shows_weight_value_and_contribution(cat):
    breakdown = ov_breakdown(cat.recording, cat.target, (Head(0, 0),))
    figure = compose.ov_figure(cat, breakdown, ("the", "cat", "sat", "on", "mat", "."), **SIZE)
    shown = texts(figure)
    assert {"0.60", "+5.00", "+3.00", "+3.06"} <= set(shown)
    assert shown[0].startswith("Head 0.0 by source")


@pytest.mark.parametrize("height", [240.0, 420.0, 640.0, 2000.0])
def test_paths_figure_fits_and_ends_with_the_balance(induction, height):
    figure = compose.paths_figure(induction, 50, theme=LIGHT, width=700, height=height)
    shown = texts(figure)
    assert [name for name in ("sum", "model's logit", "error") if name not in shown] == []
    lowest = max(item.y for item in walk(figure) if hasattr(item, "text"))
    assert lowest < height


def test_nothing_unbalanced_is_drawn(induction):
    wrong = replace(induction, logit=induction.logit + 1)
    heads = (strongest_head(induction.recording, induction.target),)
    breakdown = ov_breakdown(induction.recording, induction.target, heads)
    with pytest.raises(ImbalanceError):
        compose.attention_figure(wrong, heads, **SIZE)
    with pytest.raises(ImbalanceError):
        compose.ov_figure(wrong, breakdown, (), **SIZE)
    with pytest.raises(ImbalanceError):
        compose.paths_figure(wrong, 50, **SIZE)


# --- two prompts ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def between():
    """B − A, target "tea"."""
    a = analyse("induction-by-hand", "we like green tea so we like", target="tea")
    return difference(a, analyse("induction-by-hand", "we like tea tea so we like", target="tea"))


def test_diagram_of_a_difference_draws_the_signed_differences_and_says_both_prompts(between):
    figure = diagram_figure(between, captioned=True, **SIZE)
    a, b = between.between
    titles = {group.id: group.title for group in groups(figure)}
    terms = [term for term in between.terms if abs(term.contribution) > 0.01]
    assert terms
    for term in terms:
        amount = b.term(term.path).contribution - a.term(term.path).contribution
        assert logits(amount, signed=True) in titles[str(term.path)]
    words = texts(figure)
    assert "tea, B − A" in words
    assert any("green → tea" in text for text in words)
    total = logits(b.logit - a.logit)
    assert any(f"= {total}; model's B − A {total}; error " in text for text in words)
    assert figure.title == "Paths to tea, B − A"


@pytest.mark.parametrize(
    "draw", [diagram_figure, lambda e, **size: compose.paths_figure(e, 5, **size)]
)
def test_difference_that_does_not_add_up_is_not_drawn(between, draw):
    with pytest.raises(ImbalanceError):
        draw(replace(between, logit=between.logit + 0.01), **SIZE)


def test_provenance_of_a_difference_holds_both_runs(between):
    about = compose.provenance(between)
    for name, one in zip("AB", between.between, strict=True):
        assert f"{name}: {len(one.recording.prompt)} tokens" in about
        assert repr(one.logit) in about
    assert "B minus that of prompt A" in about
    assert "model's logit, B − A" in about


def test_table_of_a_difference_closes_with_the_difference_of_logits(between):
    words = texts(compose.paths_figure(between, 5, **SIZE))
    assert "Paths to tea, B − A" in words
    assert "model's logit, B − A" in words
    assert logits(between.logit) in words or logits(between.logit, signed=True) in words
