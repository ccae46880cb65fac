"""What two heads do together beyond what each does."""

import numpy as np
import pytest

from circuitview.core.ablation.cases import case_of, window_case
from circuitview.core.ablation.kinds import kind_named
from circuitview.core.ablation.lab import ablate
from circuitview.core.ablation.sites import each_pair
from circuitview.core.ablation.table import interactions
from circuitview.core.names import Head
from circuitview.core.target import Target
from tests.core.finishing import result_of
from tests.tiny_models import Tiny, record, tiny_model

ZERO = kind_named("zero")()


def test_pairs_interact_by_what_both_do_beyond_each():
    model, random = tiny_model(Tiny(n_layers=2, n_heads=2)), np.random.default_rng(2)
    windows = [random.integers(0, 9, 6).tolist() for _ in range(3)]
    cases = [window_case(model, window) for window in windows]
    sites = each_pair([Head(0, 0), Head(0, 1), Head(1, 0)])
    steps = ablate(model, cases, sites, ZERO, metric="loss", dtype="float64")
    table = result_of(steps)
    found = interactions(table)
    values = dict(zip(map(str, sites), table.values, strict=True))
    assert sorted(map(str, found)) == ["0.0 + 0.1", "0.0 + 1.0", "0.1 + 1.0"]
    for site, (mean, error) in found.items():
        first, second = map(str, site.heads)
        beyond = [
            (both - clean) - (one - clean) - (other - clean)
            for both, one, other, clean in zip(
                values[str(site)], values[first], values[second], table.clean_values, strict=True
            )
        ]
        assert mean == pytest.approx(sum(beyond) / 3, abs=1e-12)
        spread = sum((one - sum(beyond) / 3) ** 2 for one in beyond) / 2
        assert error == pytest.approx((spread / 3) ** 0.5, abs=1e-12)
    assert max(abs(mean) for mean, _ in found.values()) > 1e-6
    alone = result_of(ablate(model, cases[:1], sites, ZERO, dtype="float64"))
    assert {error for _, error in interactions(alone).values()} == {None}
    missing = result_of(ablate(model, cases, sites[-1:], ZERO, dtype="float64"))
    assert interactions(missing) == {}


def test_frozen_heads_of_one_layer_do_not_interact():
    """What is linear has no interaction; one head behind the other does."""
    model = tiny_model(Tiny(n_layers=2, n_heads=2))
    case = case_of(record(model, [1, 7, 3, 3]).prompt, Target(3, 2, "w2"))
    sites = each_pair([Head(0, 0), Head(0, 1), Head(1, 0)])
    table = result_of(ablate(model, [case], sites, ZERO, frozen=True, dtype="float64"))
    found = {str(site): mean for site, (mean, _) in interactions(table).items()}
    assert abs(found["0.0 + 0.1"]) <= 1e-12
    assert abs(found["0.0 + 1.0"]) > 1e-6
