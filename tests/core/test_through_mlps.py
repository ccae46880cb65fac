"""Both expansions of models with MLPs: recorded outputs as sources, and paths carried on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core import through_mlps
from circuitview.core.expansion import expand
from circuitview.core.mlp import MLP
from circuitview.core.names import CircuitviewError, Head, Mlp, Source
from circuitview.core.orders import order_sums, path_sources
from circuitview.core.path import Path, depth
from circuitview.core.path_vectors import path_vector, through_mlp
from circuitview.core.recording import Recording
from circuitview.core.target import Target
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import MLP_KINDS, Tiny, record, tiny_model

# float64: the same products summed in another order.
CLOSE = 1e-11
CARRIED = [tiny for tiny in MLP_KINDS if tiny.act_fn and tiny.act_fn not in ("solu", "solu_ln")]


@st.composite
def cases(draw, most_layers: int = 3) -> tuple[Tiny, list[int], Target]:
    tiny, tokens = draw(tinies_and_tokens(most_layers=most_layers))
    tiny = replace(
        tiny,
        act_fn=draw(st.sampled_from(["relu", "gelu", "gelu_new", "silu"])),
        d_mlp=draw(st.integers(1, 9)),
        gated_mlp=draw(st.booleans()),
        parallel_attn_mlp=draw(st.booleans()),
        output_logits_soft_cap=draw(st.sampled_from([None, 2.0])),
    )
    return tiny, tokens, draw(targets(tiny, len(tokens)))


def run(case: tuple[Tiny, list[int], Target]) -> tuple[Recording, Target]:
    tiny, tokens, target = case
    return record(tiny_model(tiny), tokens), target


def forwards(recording: Recording, path: Path, target: Target) -> float:
    """What a path is worth, its source pushed through the model step by step [logits]."""
    written = path_vector(recording, path)[target.dest].double()  # [d_model]
    direction = target.direction(recording.weights).double()
    return float(written @ direction / recording.final_scale[target.dest])


def every_path(recording: Recording, through_mlps: bool) -> list[Path]:
    """All paths, by a walk that knows nothing of how they are grown."""
    config = recording.weights.config
    steps: list[Head | Mlp] = []
    for layer in range(config.n_layers):
        steps += [Head(layer, head) for head in range(config.n_heads)]
        steps += [Mlp(layer)] if through_mlps else []

    def after(step, before) -> bool:
        if config.parallel_attn_mlp:
            return step.layer > before.layer
        return depth(step) > depth(before)

    found = [Path(source) for source in path_sources(recording, through_mlps)]
    for path in found:
        end = path.steps[-1] if path.steps else path.source
        found += [Path(path.source, (*path.steps, step)) for step in steps if after(step, end)]
    return found


@steady
@given(case=cases(), through_mlps=st.booleans())
def test_all_paths_are_listed_once_and_sum_to_the_logit(case, through_mlps):
    recording, target = run(case)
    found = expand(recording, target, through_mlps=through_mlps, few=10**6)
    assert sorted(map(str, found.paths)) == sorted(map(str, every_path(recording, through_mlps)))
    assert found.n_paths == len(found.paths)
    assert found.remainder == 0.0
    assert abs(found.error) <= CLOSE * found.scale


@steady
@given(case=cases(), through_mlps=st.booleans())
def test_every_term_is_what_its_path_writes_forwards(case, through_mlps):
    recording, target = run(case)
    found = expand(recording, target, through_mlps=through_mlps, few=10**6)
    for term in found.terms:
        worth = forwards(recording, term.path, target)
        assert abs(term.contribution - worth) <= CLOSE * found.scale, str(term.path)
        assert abs(term.by_source.sum() - term.contribution) <= 1e-13 * found.scale


def test_chains_come_to_the_neurons_a_few_at_a_time_with_the_same_result(monkeypatch):
    recording = record(tiny_model(replace(CARRIED[0], n_layers=3, n_heads=2)), [1, 2, 3, 4])
    target = Target(3, 2, "w2")
    whole = expand(recording, target, through_mlps=True)
    monkeypatch.setattr(through_mlps, "_ROOM", 1)
    parts = expand(recording, target, through_mlps=True)
    assert len(parts.paths) == len(set(parts.paths)) == whole.n_paths
    for path, contribution in zip(parts.paths, parts.contributions, strict=True):
        close = 1e-13 * whole.scale  # the same products, summed in another order
        assert abs(whole.term(path).contribution - contribution) <= close


@steady
@given(case=cases(most_layers=4), through_mlps=st.booleans())
def test_the_largest_paths_and_the_remainder_sum_to_the_logit(case, through_mlps):
    recording, target = run(case)
    found = expand(recording, target, through_mlps=through_mlps, listed=25, few=0)
    assert abs(found.error) <= CLOSE * max(found.scale, np.abs(found.orders.sums).max())
    assert len(found.paths) + found.n_smaller + found.n_beyond == found.n_paths
    for path, contribution in zip(found.paths, found.contributions, strict=True):
        worth = forwards(recording, path, target)
        assert abs(contribution - worth) <= CLOSE * found.scale, str(path)


@steady
@given(case=cases(), through_mlps=st.booleans())
def test_orders_and_nets_are_the_sums_of_the_paths(case, through_mlps):
    recording, target = run(case)
    found = expand(recording, target, through_mlps=through_mlps, few=10**6)
    close = CLOSE * max(found.scale, np.abs(found.contributions).max())
    nets: dict[Source | Head | Mlp, float] = dict.fromkeys(found.nets, 0.0)
    orders = np.zeros(found.orders.sums.shape[1])
    for path, contribution in zip(found.paths, found.contributions, strict=True):
        for what in (path.source, *path.steps):
            nets[what] += contribution
        orders[min(len(path.steps), len(orders) - 1)] += contribution
    for what, net in found.nets.items():
        assert abs(net - nets[what]) <= close, str(what)
    assert np.abs(orders - found.orders.by_order()).max() <= close
    for group, value in found.groups.items():
        listed = [
            contribution
            for path, contribution in zip(found.paths, found.contributions, strict=True)
            if found.grouping.of(path) == group
        ]
        constant = found.constant if group == "positions and biases" else 0.0
        assert abs(value - sum(listed) - constant) <= close


@pytest.mark.parametrize("tiny", CARRIED, ids=str)
def test_held_ratios_reproduce_what_the_mlp_wrote(tiny):
    recording = record(tiny_model(tiny), [1, 2, 3, 4, 5])
    assert recording.mlp_out is not None
    for layer in range(tiny.n_layers):
        carried = through_mlp(recording, layer, recording.into_mlp(layer))  # [pos, d_model]
        written = carried + recording.mlp_bias(layer)
        gap = (written - recording.mlp_out[layer]).abs().max()
        assert float(gap) <= 1e-12 * float(recording.mlp_out[layer].abs().max())


@pytest.mark.parametrize("gated", [False, True])
def test_a_neuron_at_zero_takes_the_limit_of_its_ratio(gated):
    one = torch.ones(1, 1, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    mlp = MLP(
        W_in=one,
        W_out=one,
        b_in=zero,
        b_out=zero,
        act=torch.nn.functional.gelu,
        W_gate=one if gated else None,
    )
    ratio = mlp.ratio(torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    # gelu(x)/x tends to Φ(0) = 1/2; a gate of gelu(0) = 0 shuts its neuron.
    assert float(ratio) == pytest.approx(0.0 if gated else 0.5, abs=1e-9)


def test_with_mlp_outputs_as_sources_each_mlp_is_one_source():
    recording = record(tiny_model(CARRIED[0]), [1, 2, 3])
    kinds = [str(source) for source in recording.weights.sources]
    assert kinds == ["token", "position", "bias 0", "mlp 0", "bias 1", "mlp 1"]
    assert [str(source) for source in path_sources(recording, through_mlps=True)] == [
        "token",
        "position",
        "bias 0",
        "mlp bias 0",
        "bias 1",
        "mlp bias 1",
    ]


def test_mlps_that_cannot_be_carried_through_are_named_and_stay_sources():
    tiny = next(tiny for tiny in MLP_KINDS if tiny.act_fn == "solu_ln")
    recording = record(tiny_model(tiny), [1, 2, 3])
    target = Target(2, 1, "w1")
    assert expand(recording, target).balanced
    with pytest.raises(CircuitviewError, match="can't be carried on through its MLPs") as caught:
        expand(recording, target, through_mlps=True)
    assert "\n" not in str(caught.value)


def test_a_model_without_mlps_has_the_same_paths_either_way():
    recording = record(tiny_model(Tiny()), [1, 2, 3])
    target = Target(2, 1, "w1")
    plain, carried = expand(recording, target), expand(recording, target, through_mlps=True)
    assert plain.paths == carried.paths
    assert not carried.through_mlps


def test_a_soft_cap_is_left_out_of_the_logit_and_kept_in_the_probability():
    tiny = replace(CARRIED[0], output_logits_soft_cap=0.5)
    recording = record(tiny_model(tiny), [1, 2, 3])
    plain = record(tiny_model(CARRIED[0]), [1, 2, 3])
    assert torch.equal(recording.logits, plain.logits)
    found = expand(recording, Target(2, 1, "w1"))
    capped = 0.5 * torch.tanh(recording.logits[2] / 0.5)
    assert found.probability == pytest.approx(float(capped.softmax(-1)[1]), rel=1e-12)
    assert found.balanced
    assert order_sums(recording, Target(2, 1, "w1")).mlps.size == 0
