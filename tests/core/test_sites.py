"""What is taken away has a name that reads back as itself."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from circuitview.core.ablation.sites import (
    Site,
    all_heads,
    each_head,
    each_mlp,
    each_order,
    each_pair,
)
from circuitview.core.names import TOKEN, CircuitviewError, Head, Mlp, Source
from circuitview.core.path import Path
from tests.tiny_models import Tiny, tiny_model

HEADS = st.tuples(st.integers(0, 3), st.integers(0, 11))
SOURCES = st.sampled_from([TOKEN, Source("position"), Source("bias", 0), Source("mlp", 0)])
# A source and the heads of the layers from 1 on.
CHAINS = st.tuples(SOURCES, st.lists(st.integers(0, 11), max_size=3).map(tuple))


@given(
    heads=st.sets(HEADS, max_size=3),
    mlps=st.sets(st.integers(0, 3), max_size=2),
    chains=st.lists(CHAINS, max_size=2, unique=True),
    orders=st.sets(st.integers(0, 4), max_size=2),
)
def test_a_name_reads_back(heads, mlps, chains, orders):
    paths = [
        Path(source, tuple(Head(1 + place, head) for place, head in enumerate(chain)))
        for source, chain in chains
        # An MLP's output alone is written as the MLP is.
        if chain or source.kind != "mlp"
    ]
    heads = [Head(*head) for head in heads]
    site = Site(tuple(sorted(heads)), tuple(sorted(mlps)), tuple(paths), tuple(sorted(orders)))
    assume(str(site))
    assert Site.parse(str(site)) == site


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("1.4", Site(heads=(Head(1, 4),))),
        ("L1H4", Site(heads=(Head(1, 4),))),
        ("1.4 + 0.7", Site(heads=(Head(0, 7), Head(1, 4)))),
        ("mlp 0", Site(mlps=(0,))),
        ("mlp 0 > 1.4", Site(paths=(Path(Source("mlp", 0), (Head(1, 4),)),))),
        ("direct", Site(paths=(Path(TOKEN),))),
        ("token", Site(paths=(Path(TOKEN),))),
        ("token > mlp 0 > 1.4", Site(paths=(Path(TOKEN, (Mlp(0), Head(1, 4))),))),
        ("order 2", Site(orders=(2,))),
        (
            "bias 0 > 1.4 + order 1",
            Site(paths=(Path(Source("bias", 0), (Head(1, 4),)),), orders=(1,)),
        ),
    ],
)
def test_names_people_write(text, site):
    assert Site.parse(text) == site


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "1.4 +",
        "head 3",
        "1.4.2",
        "order",
        "order -1",
        "mlp",
        "token > 1.4 > 0.3",
        "1.4 + 1.4",
        "mlp 0 + mlp 0",
        "order 1 + order 1",
        "direct + token",
        "token > 1.4 + token > L1H4",
        # More digits than Python turns into a number.
        f"order {'9' * 5000}",
        f"mlp {'9' * 5000}",
        f"bias {'9' * 5000}",
        f"token > mlp {'9' * 5000}",
    ],
)
def test_what_names_nothing_or_one_thing_twice_is_refused(text):
    with pytest.raises(CircuitviewError) as caught:
        Site.parse(text)
    assert "\n" not in str(caught.value)


def test_a_path_whose_layers_fall_is_told_why():
    with pytest.raises(CircuitviewError, match="layers must rise"):
        Site.parse("token > 1.4 > 0.3")


def test_every_site_of_a_model_is_there_once():
    config = tiny_model(Tiny(n_layers=3, n_heads=2, act_fn="gelu")).config
    assert [str(site) for site in each_head(config)] == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
    pairs = each_pair(all_heads(config))
    assert len(pairs) == len(set(pairs)) == 6 + 15
    assert [str(site) for site in each_mlp(config)] == ["mlp 0", "mlp 1", "mlp 2"]
    orders = each_order(config)
    assert [str(site) for site in orders] == [f"order {order}" for order in range(4)]
    for site in (*each_head(config), *pairs, *each_mlp(config), *orders):
        site.require_in(config)
    assert each_mlp(tiny_model(Tiny()).config) == ()
