"""Path ablation by order against the algorithm of the paper, run by run, as it is written."""

import numpy as np
import pytest
import torch

from circuitview.core.ablation.by_order import ablate_orders
from circuitview.core.ablation.cases import case_of, window_case
from circuitview.core.checkpoint import open_model
from circuitview.core.edits import Edits
from circuitview.core.frozen import run_frozen
from circuitview.core.names import Head
from circuitview.core.orders import order_sums
from circuitview.core.target import Target
from tests.core.finishing import finish, result_of
from tests.tiny_models import KINDS, MLP_KINDS, Tiny, record, tiny_model


def runs_of_the_paper(recording):
    """Run 1 with every head's output zero; run n + 1 puts in what the heads produced on run n. The
    constants, value biases among them, stay in each."""
    weights, config = recording.weights, recording.weights.config
    bias = weights.b_V.repeat_interleave(weights.group, 1).unsqueeze(2)  # [layer, head, 1, d_head]
    produced, logits = torch.zeros_like(recording.z), []
    for _ in range(config.n_layers + 1):
        put = produced + bias
        z = {
            Head(la, he): put[la, he] for la in range(config.n_layers) for he in range(put.shape[1])
        }
        run = run_frozen(recording, Edits(z=z))
        logits.append(run.logits)
        for layer in range(config.n_layers):
            read = run.stream[layer] / recording.ln_scale[layer].unsqueeze(-1)
            values = (read @ weights.W_V[layer]).repeat_interleave(weights.group, 0)
            produced[layer] = recording.pattern[layer] @ values
    return torch.stack(logits)


def loss_of(logits, dests, tokens):
    """Nats a token, in numpy's float64."""
    values = logits.double().numpy()[np.asarray(dests)]
    top = values.max(-1, keepdims=True)
    total = np.log(np.exp(values - top).sum(-1)) + top[:, 0]
    return float((total - values[np.arange(len(values)), np.asarray(tokens)]).mean())


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_loss_by_order_is_that_of_the_papers_runs(tiny):
    model, windows = tiny_model(tiny), [[1, 7, 3, 3, 5, 8], [2, 2, 4, 1, 0, 6], [8, 1, 8, 1, 8, 1]]
    cases = [window_case(model, window) for window in windows]
    steps, table = finish(ablate_orders(model, cases, dtype="float64"))
    expected = np.empty((tiny.n_layers + 1, len(cases)))
    shares = np.empty_like(expected)
    for place, case in enumerate(cases):
        recording = model.run(case.prompt, "float64")
        runs = runs_of_the_paper(recording)
        # The last run is the model.
        assert torch.allclose(runs[-1], recording.logits, rtol=0, atol=1e-11 * 200)
        for order, logits in enumerate(runs):
            expected[order, place] = loss_of(logits, case.dests, case.tokens)
            before = recording.weights.constants() if order == 0 else runs[order - 1, case.dests]
            gained = (logits[case.dests] - before).gather(1, case.tokens.unsqueeze(1))
            shares[order, place] = float(gained.mean())
    assert np.allclose(table.values, expected, rtol=1e-11, atol=1e-11)
    assert np.allclose(table.values[-1], table.clean_values, rtol=1e-11, atol=1e-11)
    for order, row in enumerate(table.rows):
        assert (row.order, row.n) == (order, 3)
        assert row.contribution == pytest.approx(shares[order].mean(), abs=1e-11 * 200)
        assert row.value == pytest.approx(expected[order].mean(), rel=1e-11)
        effects = expected[order] - expected[-1]
        assert row.effect == pytest.approx(effects.mean(), abs=1e-10)
        assert row.stderr == pytest.approx(effects.std(ddof=1) / 3**0.5, rel=1e-8, abs=1e-10)
        if order:
            gained = expected[order] - expected[order - 1]
            assert row.marginal == pytest.approx(gained.mean(), abs=1e-10)
            assert row.marginal_stderr == pytest.approx(gained.std(ddof=1) / 3**0.5, abs=1e-10)
    assert table.rows[0].marginal is None
    dones = [step.done for step in steps]
    assert dones == sorted(dones)
    assert set(dones) == set(range(1, steps[-1].total + 1))
    assert steps[-1].partial == table.rows


@pytest.mark.parametrize("metric", ["logit", "difference"])
@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_a_logit_by_order_is_the_running_sum_of_the_orders(tiny, metric):
    model, target = tiny_model(tiny), Target(4, 2, "w2", 5, "w5")
    recording = record(model, [1, 7, 3, 3, 5, 8])
    table = result_of(
        ablate_orders(model, [case_of(recording.prompt, target)], metric=metric, dtype="float64")
    )
    target = target if metric == "difference" else Target(4, 2, "w2")
    sums = order_sums(recording, target).by_order()
    running = sums.cumsum() + target.constant(recording.weights)
    scale = max(1.0, np.abs(running).max(), float(recording.logits.abs().max()))
    for row, value, own in zip(table.rows, running, sums, strict=True):
        assert abs(row.value - value) <= 1e-11 * scale
        assert row.contribution == pytest.approx(own, abs=1e-11 * scale)
        assert row.stderr is None


def test_the_trained_model_follows_the_paper_in_float32():
    model = open_model("attn-only-2l")
    prompt = model.prompt("I like green tea, so I drink green")
    case = window_case(model, prompt.token_ids)
    table = result_of(ablate_orders(model, [case]))
    runs = runs_of_the_paper(model.run(prompt, "float64"))
    expected = [loss_of(logits, case.dests, case.tokens) for logits in runs]
    # Nats: float32 logits of order 10 are right to 1e-5.
    assert np.allclose([row.value for row in table.rows], expected, rtol=0, atol=1e-4)
    assert table.clean == pytest.approx(expected[-1], abs=1e-4)


def test_stopping_between_two_orders_leaves_nothing_behind():
    model = tiny_model(Tiny())
    case = window_case(model, [1, 2, 3])
    first = model.run(case.prompt)
    for stop in range(1, 7):  # in the layers that all orders share, and between two orders
        run = ablate_orders(model, [case])
        for _ in range(stop):
            next(run)
        run.close()
        assert not torch.is_inference_mode_enabled()
        assert torch.equal(model.run(case.prompt).logits, first.logits)
