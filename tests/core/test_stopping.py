"""Between two steps of an ablation, where it can be stopped, lies one forward pass at most.

Counted in multiplications of matrices, as torch sees them go by, so that no clock is asked.
"""

from itertools import product

import numpy as np
import pytest
from torch.utils.flop_counter import FlopCounterMode

from circuitview.core.ablation.by_order import ablate_orders
from circuitview.core.ablation.cases import case_of, window_case
from circuitview.core.ablation.kinds import kind_named
from circuitview.core.ablation.lab import ablate
from circuitview.core.ablation.sites import (
    Site,
    all_heads,
    each_head,
    each_mlp,
    each_order,
    each_pair,
)
from circuitview.core.path import Path
from circuitview.core.target import Target
from tests.tiny_models import Tiny, tiny_model

# Large enough for no product to be a rounding of the whole; the second model's logits are most of
# what it computes, the first one's layers.
DEEP = Tiny(n_layers=5, n_heads=4, d_model=32, d_head=8, n_ctx=24, d_vocab=40)
BROAD = Tiny(
    n_layers=2, n_heads=4, d_model=32, d_head=8, n_ctx=24, d_vocab=900, act_fn="gelu", d_mlp=64
)
PATHS = ("token", "token > 0.1", "token > 0.1 > 1.0", "position > 1.3", "bias 0 > 1.2")
# A run that freezes the pattern of every head makes their values twice, its own and the changed.
TWICE = 1.5


def counted(step):
    with FlopCounterMode(display=False) as counter:
        made = step()
    return counter.get_total_flops(), made


def dearest(steps):
    """The multiplications of the dearest step of a generator, and how many steps it has."""
    most = n_steps = 0
    while True:
        cost, progress = counted(lambda: next(steps, None))
        most, n_steps = max(most, cost), n_steps + 1
        if progress is None:
            return most, n_steps


def sites_of(what, config):
    paths = [Path.parse(text) for text in PATHS]
    made = {
        "heads": each_head(config),
        "pairs": each_pair(all_heads(config)[::3]),
        "mlps": each_mlp(config),
        "orders": each_order(config),
        "paths": [Site(paths=(path,)) for path in 8 * paths],
        "many paths at once": [Site(paths=tuple(paths) * 8)],
        "all heads at once": [Site(heads=all_heads(config))],
    }
    return made[what]


HEADS = ("heads", "pairs", "all heads at once")
WHATS = (*HEADS, "orders", "paths", "many paths at once")
# Only heads have a pattern, and only one of the models has MLPs.
ASKED = [
    *product((DEEP, BROAD), ("zero", "mean", "resample"), WHATS),
    *product((DEEP, BROAD), ("pattern",), HEADS),
    *product((BROAD,), ("zero", "mean", "resample"), ("mlps",)),
]


@pytest.mark.parametrize("frozen", [False, True], ids=["free", "frozen"])
@pytest.mark.parametrize("on", ["prompts", "text"])
@pytest.mark.parametrize(("tiny", "kind", "what"), ASKED, ids=str)
def test_no_step_takes_more_than_a_forward_pass(tiny, kind, what, on, frozen):
    model = tiny_model(tiny)
    config = model.config
    random = np.random.default_rng(0)
    windows = [window_case(model, random.integers(1, 40, 20).tolist()) for _ in range(2)]
    cases = windows
    if on == "prompts":
        cases = [case_of(window.prompt, Target(19, 3, "3")) for window in windows]
    _ = model.weights().sources  # folded, and the constants looked through, once and for all
    whole, _ = counted(lambda: model.run(cases[0].prompt))
    steps = ablate(model, cases, sites_of(what, config), kind_named(kind)(), frozen=frozen)
    most, n_steps = dearest(steps)
    assert n_steps > 3
    assert most <= whole * (TWICE if kind == "pattern" else 1)


@pytest.mark.parametrize("tiny", [DEEP, BROAD], ids=["deep", "broad"])
def test_no_step_of_path_ablation_takes_more_than_a_forward_pass(tiny):
    model = tiny_model(tiny)
    case = window_case(model, np.random.default_rng(0).integers(1, 40, 20).tolist())
    _ = model.weights().sources
    whole, _ = counted(lambda: model.run(case.prompt))
    most, n_steps = dearest(ablate_orders(model, [case]))
    assert n_steps > 2 * model.config.n_layers
    assert most <= whole
