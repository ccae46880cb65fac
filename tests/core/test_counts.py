"""How many paths a model has, from the formula and by listing them."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from circuitview.core.expansion import expand
from circuitview.core.groups import Grouping
from circuitview.core.names import POSITION, TOKEN, CircuitviewError, Head, Mlp, Source
from circuitview.core.path import Path, chain_table, count_chains
from circuitview.core.target import Target
from tests.tiny_models import Tiny, record, tiny_model


def test_two_layers_of_eight_heads_have_173_terms():
    """81 token paths, 81 position paths, 8 + 1 of bias 0, 1 of bias 1, and b_U."""
    tiny = Tiny(n_layers=2, n_heads=8, d_head=2, normalization_type="LN", biases=True)
    found = expand(record(tiny_model(tiny), [1, 2, 3]), Target(2, 1, "w1"))
    count = Counter(str(path.source) for path in found.paths)
    assert count == {"token": 81, "position": 81, "bias 0": 8 + 1, "bias 1": 1}
    assert found.n_paths == 172
    assert found.constant != 0.0
    by_length = Counter(len(path.heads) for path in found.paths if path.source == TOKEN)
    assert by_length == {0: 1, 1: 16, 2: 64}


def test_model_without_positions_and_biases_has_token_paths_only():
    tiny = Tiny(positional_embedding_type="none", normalization_type=None, biases=False)
    found = expand(record(tiny_model(tiny), [1, 2]), Target(1, 1, "w1"))
    assert {path.source for path in found.paths} == {TOKEN}
    assert found.n_paths == 9
    assert found.constant == 0.0


def test_layer_norm_bias_alone_makes_a_bias_source():
    tiny = Tiny(normalization_type="LN", biases=True)
    assert Source("bias", 0) in tiny_model(tiny).exact.sources


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "expected"), [(2, 8, 81), (2, 12, 169), (1, 1, 2), (12, 12, 13**12)]
)
def test_count_of_chains_is_one_plus_heads_to_the_layers(n_layers, n_heads, expected):
    assert count_chains(n_layers, n_heads) == expected


def test_count_of_chains_in_twelve_layers_of_twelve_by_length():
    """One head 144, two 9,504, three 380,160; in all 2.3e13, exactly."""
    upto = [count_chains(12, 12, most) for most in range(13)]
    assert [later - earlier for earlier, later in pairwise(upto[:4])] == [
        144,
        9_504,
        380_160,
    ]
    assert upto[12] == 23_298_085_122_481


def test_count_of_chains_passes_64_bits_exactly():
    assert count_chains(96, 96) == 97**96 > 2**64
    assert count_chains(96, 96, most=2) == 1 + 96 * 96 + math.comb(96, 2) * 96**2


def test_count_of_chains_above_a_layer_leaves_out_the_layers_below():
    assert [count_chains(4, 3, above=layer) for layer in range(-1, 4)] == [256, 64, 16, 4, 1]


@pytest.mark.parametrize("n_layers", [4, 6])
def test_models_of_many_paths_list_the_largest_and_count_the_rest(n_layers):
    tiny = Tiny(n_layers=n_layers, n_heads=2, biases=False, normalization_type=None)
    found = expand(record(tiny_model(tiny), [1, 2, 3]), Target(2, 1, "w1"), listed=20, few=50)
    assert len(found.paths) == 20
    short = [path for path in found.paths if len(path.heads) <= 2]
    assert found.n_smaller == 2 * count_chains(n_layers, 2, most=2) - len(short)
    assert found.n_paths == 2 * 3**n_layers
    assert found.n_unlisted == found.n_paths - len(found.paths)
    assert found.remainder != 0.0
    assert found.balanced


@pytest.mark.parametrize(("n_layers", "n_heads", "most"), [(3, 2, 3), (4, 3, 2), (2, 1, 5)])
def test_chain_table_lists_each_rising_chain_once(n_layers, n_heads, most):
    table = chain_table(n_layers, n_heads, most)
    assert len(set(table.chains)) == len(table.chains) == count_chains(n_layers, n_heads, most)
    for chain, first in zip(table.chains, table.first_layer, strict=True):
        layers = [head.layer for head in chain]
        assert layers == sorted(set(layers))
        assert first == (layers[0] if layers else n_layers)


def test_path_label_parses_back():
    for label in (
        "token",
        "position > 0.3",
        "bias 0 > 1.4",
        "token > 0.3 > 1.4",
        "mlp 0 > 1.2",
        "token > 0.1 > mlp 0 > 1.2",
        "mlp bias 0 > mlp 1",
    ):
        assert str(Path.parse(label)) == label
    assert Path.parse("token>L0H3") == Path(TOKEN, (Head(0, 3),))


@pytest.mark.parametrize(
    "text",
    [
        "token > 1.4 > 0.3",
        "bias 1 > 1.0",
        "token > 1.0 > 1.1",
        "mlp 1 > 1.0",
        "token > mlp 0 > 0.1",
    ],
)
def test_path_whose_layers_do_not_rise_is_refused(text):
    with pytest.raises(CircuitviewError, match="rise"):
        Path.parse(text)


@pytest.mark.parametrize("text", ["", "tokens", "bias", "bias -1", "token > 1,4", "token >"])
def test_what_is_no_path_is_refused_in_one_line(text):
    with pytest.raises(CircuitviewError) as caught:
        Path.parse(text)
    assert "\n" not in str(caught.value)


def test_kinds_and_groups_follow_source_and_length():
    head, later = Head(0, 1), Head(1, 0)
    assert Path(TOKEN).kind == "direct"
    assert Path(POSITION, (head,)).kind == "head"
    assert Path(TOKEN, (head, later)).kind == "virtual head"
    assert Path(TOKEN, (Mlp(0), later)).kind == "through MLPs"
    grouping = Grouping(2, 2, (TOKEN, POSITION, Source("bias", 0)))
    assert grouping.of(Path(TOKEN)) == "direct"
    assert grouping.of(Path(TOKEN, (later,))) == "layer-1 heads"
    assert grouping.of(Path(TOKEN, (head, later))) == "virtual heads"
    assert grouping.of(Path(POSITION)) == grouping.of(Path(Source("bias", 0), (later,)))


def test_groups_of_one_layer_show_no_virtual_heads_but_sum_them():
    grouping = Grouping(1, 2, (TOKEN,))
    assert grouping.names == ("direct", "layer-0 heads", "positions and biases")
    assert grouping.summed == ("direct", "layer-0 heads", "virtual heads", "positions and biases")
    deeper = Grouping(3, 2, (TOKEN,))
    assert deeper.names == deeper.summed


def test_groups_of_a_deep_model_do_not_tell_layers_apart():
    deep = Grouping(12, 12, (TOKEN, POSITION, Source("mlp", 3)), all_listed=False)
    names = ("direct", "heads", "virtual heads", "MLPs", "positions and biases")
    assert deep.names == deep.summed == names
    assert deep.counts["heads"] == 144
    assert deep.counts["virtual heads"] == 13**12 - 1 - 144
    assert deep.counts["MLPs"] == 13**8
    assert deep.n_paths == 2 * 13**12 + 13**8


@pytest.mark.parametrize("parallel", [False, True])
def test_count_of_paths_through_mlps_multiplies_the_choices_of_each_layer(parallel):
    grouping = Grouping(3, 4, (TOKEN, Source("bias", 1)), through_mlps=True, parallel=parallel)
    # Sequential: (1 + 4 heads) x (1 + 1 MLP) a layer, and bias 1 may still run through MLP 1.
    expected = (6**3, 6) if parallel else (10**3, 2 * 10)
    assert (sum(grouping.ways(TOKEN)), sum(grouping.ways(Source("bias", 1)))) == expected
    assert grouping.counts["direct"] == 1
    assert grouping.counts["one step"] == 3 * (4 + 1)


def test_terms_come_largest_first_and_through_finds_a_heads_paths():
    found = expand(record(tiny_model(Tiny()), [1, 2, 3]), Target(2, 1, "w1"))
    sizes = [abs(term.contribution) for term in found.terms]
    assert sizes == sorted(sizes, reverse=True)
    through = list(found.through(Head(1, 0)))
    assert len(through) == sum(Head(1, 0) in path.heads for path in found.paths)
    assert np.isfinite([term.contribution for term in through]).all()
    with pytest.raises(KeyError):
        found.term(Path(Source("mlp", 0)))
