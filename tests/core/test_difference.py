"""B − A: path by path the difference of what each is worth, and a sum that must balance too."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.attention import attention_values
from circuitview.core.difference import attention_of, chain_of, difference, joint_prompt
from circuitview.core.expansion import Expansion, expand
from circuitview.core.names import CircuitviewError, Head, ImbalanceError, IncomparableError
from circuitview.core.ov import head_totals
from circuitview.core.path_vectors import path_vector
from circuitview.core.target import Target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import MLP_KINDS, Tiny, record, tiny_model

# float64: the same products summed in another order, of sums that are larger than they are.
CLOSE = 1e-11
TINY = Tiny(n_layers=3, n_heads=2)
TARGET = Target(4, 3, "3")


@st.composite
def cases(draw, most_layers: int = 4) -> tuple[Tiny, list[int], list[int], Target]:
    """A model, two prompts of one length, and one target for both."""
    tiny, tokens = draw(tinies_and_tokens(most_layers=most_layers))
    token = st.integers(0, tiny.d_vocab - 1)
    others = draw(st.lists(token, min_size=len(tokens), max_size=len(tokens)))
    return tiny, tokens, others, draw(targets(tiny, len(tokens)))


def expanded(case, **expansion) -> tuple[Expansion, Expansion]:
    tiny, tokens, others, target = case
    model = tiny_model(tiny)
    a, b = (expand(record(model, ids), target, **expansion) for ids in (tokens, others))
    return a, b


def of(tokens: list[int], tiny: Tiny = TINY, target: Target = TARGET, **expansion) -> Expansion:
    return expand(record(tiny_model(tiny), tokens), target, **expansion)


def forwards(expansion: Expansion, path) -> float:
    """What a path is worth, its source pushed through the model step by step [logits]."""
    recording, target = expansion.recording, expansion.target
    written = path_vector(recording, path)[target.dest].double()  # [d_model]
    direction = target.direction(recording.weights).double()
    return float(written @ direction / recording.final_scale[target.dest])


def require_sums(made: Expansion, a: Expansion, b: Expansion) -> None:
    """Every path is the difference of the two, and everything adds up without the logit's help."""
    made.require_balance()
    near = CLOSE * made.scale
    assert made.scale == max(a.scale, b.scale)
    assert made.logit == b.logit - a.logit
    assert made.constant == 0.0
    for path, contribution in zip(made.paths, made.contributions, strict=True):
        assert abs(contribution - forwards(b, path) + forwards(a, path)) <= near, str(path)
    assert made.by_source.sum(1) == pytest.approx(made.contributions, abs=near)
    total = made.contributions.sum() + made.remainder
    assert abs(total - made.logit) <= near
    assert abs(made.orders.by_order().sum() - made.logit) <= near
    assert abs(sum(made.groups.values()) - made.total) <= near
    assert made.n_paths == a.n_paths == b.n_paths


@steady
@given(case=cases())
def test_each_path_is_what_it_brings_on_b_minus_on_a(case):
    pair = expanded(case)
    made = difference(*pair)
    require_sums(made, *pair)
    assert made.between == pair


@steady
@given(case=cases(most_layers=5))
def test_paths_that_one_prompt_does_not_list_are_worked_out_for_it(case):
    a, b = expanded(case, listed=12, few=0)
    made = difference(a, b)
    assert set(made.paths) == {*a.paths, *b.paths}
    require_sums(made, a, b)
    short = sum(len(path.steps) <= 2 for path in made.paths)
    assert made.n_smaller == a.n_smaller + sum(len(path.steps) <= 2 for path in a.paths) - short
    assert made.n_unlisted == made.n_paths - len(made.paths) >= made.n_smaller >= 0


@pytest.mark.parametrize("tiny", [tiny for tiny in MLP_KINDS if tiny.act_fn == "gelu"], ids=str)
@pytest.mark.parametrize("few", [0, 10**6])
def test_paths_through_mlps_are_subtracted_too(tiny, few):
    wanted = {"through_mlps": True, "listed": 25, "few": few}
    a, b = (of(ids, tiny, **wanted) for ids in ([0, 3, 2, 5, 1], [0, 4, 4, 5, 2]))
    if few == 0:
        assert set(a.paths) != set(b.paths)  # or nothing has to be worked out
    require_sums(difference(a, b), a, b)


@steady
@given(case=cases())
def test_a_prompt_minus_itself_is_nothing(case):
    tiny, tokens, _, target = case
    a, b = expanded((tiny, tokens, tokens, target))
    made = difference(a, b)
    assert not made.contributions.any()
    assert not made.by_source.any()
    assert not made.orders.sums.any()
    assert (made.logit, made.remainder, made.error, made.probability) == (0.0, 0.0, 0.0, 0.0)
    assert set(made.nets.values()) == {0.0}


def test_the_other_way_round_every_sign_turns():
    a, b = of([0, 1, 2, 3, 4]), of([0, 1, 5, 3, 4])
    there, back = difference(a, b), difference(b, a)
    assert np.array_equal(there.contributions, -back.contributions)
    assert there.logit == -back.logit != 0.0


def test_difference_that_does_not_add_up_is_refused():
    a, b = of([0, 1, 2, 3, 4]), of([0, 1, 5, 3, 4])
    wrong = replace(b, logit=b.logit + 1e-3)
    with pytest.raises(ImbalanceError, match="don't add up"):
        difference(a, wrong).require_balance()


def test_tokens_that_differ_are_labelled_before_and_after():
    a, b = of([0, 1, 2, 3, 4]).recording.prompt, of([0, 1, 5, 3, 4]).recording.prompt
    labels = joint_prompt(a, b).labels
    assert labels[2] == f"{a.labels[2]} → {b.labels[2]}"
    assert labels[:2] + labels[3:] == a.labels[:2] + a.labels[3:]


def test_prompts_of_different_lengths_are_refused_with_both_lengths():
    with pytest.raises(IncomparableError, match=r"^A has 5 tokens, B has 6: .*equally long"):
        difference(of([0, 1, 2, 3, 4]), of([0, 1, 2, 3, 4, 5]))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: of([0, 1, 2, 3, 4], replace(TINY, n_heads=1)), "two prompts to one model"),
        (lambda: of([0, 1, 2, 3, 4], target=Target(4, 2, "2")), "one target and dest"),
        (lambda: of([0, 1, 2, 3, 4], target=Target(3, 3, "3")), "one target and dest"),
    ],
)
def test_what_is_not_alike_is_refused(other, words):
    with pytest.raises(CircuitviewError, match=words):
        difference(of([0, 1, 2, 3, 4]), other())


def test_attention_of_a_difference_is_b_minus_a():
    a, b = of([0, 1, 2, 3, 4]), of([0, 1, 5, 3, 4])
    made, chain = difference(a, b), (Head(0, 1), Head(2, 0))
    for mode in ("pattern", "value-weighted"):
        there, here = (attention_values(one.recording, chain, mode) for one in (a, b))
        assert np.array_equal(attention_of(made, chain, mode), here - there)
        assert np.array_equal(attention_of(a, chain, mode), there)
    assert not attention_of(made, chain, "pattern")[:2].any()  # nothing differs before token 2


def test_chain_of_a_difference_is_the_head_that_changed_most():
    a, b = of([0, 1, 2, 3, 4]), of([0, 1, 5, 3, 4])
    moved = head_totals(b.recording, TARGET) - head_totals(a.recording, TARGET)
    layer, head = np.unravel_index(int(moved.abs().argmax()), moved.shape)
    assert chain_of(difference(a, b), None) == (Head(int(layer), int(head)),)
    assert chain_of(difference(a, b), (Head(1, 1),)) == (Head(1, 1),)
