"""Frozen, taking away is exactly minus the contribution; free, it need not be. Forwards (the run)
and backwards (the bookkeeping) share no step."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from circuitview.core.ablation.bookkeeping import Bookkeeping, path_contribution
from circuitview.core.ablation.by_order import ablate_orders
from circuitview.core.ablation.cases import case_of, window_case
from circuitview.core.ablation.kinds import kind_named
from circuitview.core.ablation.lab import ablate
from circuitview.core.ablation.sites import Site, each_head, each_mlp, each_order, each_pair
from circuitview.core.checkpoint import open_model
from circuitview.core.edits import Edits
from circuitview.core.expansion import expand
from circuitview.core.frozen import run_frozen
from circuitview.core.names import CircuitviewError, Head
from circuitview.core.path import Path
from circuitview.core.path_vectors import path_vector
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.core.finishing import finish, result_of
from tests.core.strategies import steady, targets, tinies_and_tokens
from tests.tiny_models import KINDS, MLP_KINDS, Tiny, record, tiny_model

ZERO = kind_named("zero")()
# Of the largest absolute term, as theory asks of every sum.
EXACT = {"float32": 1e-4, "float64": 1e-11}
N_PROMPTS = 20


def frozen_rows(model, recording, target, sites, dtype="float64"):
    """The table of zeroing each site with everything else held."""
    case = case_of(recording.prompt, target)
    metric = "logit" if target.versus is None else "difference"
    steps = ablate(model, [case], sites, ZERO, frozen=True, dtype=dtype, metric=metric)
    return result_of(steps)


def random_prompt(model, seed, longest=24):
    """BOS and random tokens."""
    random = np.random.default_rng(seed)
    ids = random.integers(1, model.config.d_vocab, int(random.integers(1, longest)))
    tokens = (0, *ids.tolist())
    return Prompt(model.name, tokens, tuple(map(str, tokens)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["attn-only-1l", "attn-only-2l"])
def test_removing_any_path_of_the_trained_models_changes_the_logit_by_minus_its_share(name, dtype):
    model = open_model(name)
    for seed in range(N_PROMPTS):
        recording = model.run(random_prompt(model, seed), dtype)
        random = np.random.default_rng((7, seed))
        dest = int(random.integers(len(recording.tokens)))
        token, other = (int(one) for one in random.choice(model.config.d_vocab, 2, replace=False))
        target = Target(dest, token, "a", *((other, "b") if seed % 2 else ()))
        found = expand(recording, target)
        assert not found.remainder
        assert len(found.terms) == found.n_paths
        sites = [Site(paths=(term.path,)) for term in found.terms]
        table = frozen_rows(model, recording, target, sites, dtype)
        close = EXACT[dtype] * found.scale
        for term, row in zip(found.terms, table.rows, strict=True):
            # Forwards in the run, backwards twice: alone, and in the list of all paths.
            assert abs(row.effect + row.contribution) <= close, (seed, term.path)
            assert abs(row.effect + term.contribution) <= close, (seed, term.path)


@steady
@given(data=st.data())
def test_a_path_forwards_is_the_path_backwards(data):
    tiny, tokens = data.draw(tinies_and_tokens())
    recording = record(tiny_model(tiny), tokens)
    target = data.draw(targets(tiny, len(tokens)))
    found = expand(recording, target)
    clean = target.of(recording.logits[target.dest])
    for term in found.terms:
        written = path_vector(recording, term.path)
        changed = run_frozen(recording, Edits(added=-written))
        effect = target.of(changed.logits[target.dest]) - clean
        backwards = path_contribution(recording, target, term.path)
        assert abs(effect + backwards) <= 1e-11 * found.scale
        assert abs(term.contribution - backwards) <= 1e-11 * found.scale


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_frozen_rows_are_minus_their_contribution(tiny):
    """Heads, pairs, MLPs, orders, and three heads of three layers at once."""
    model, target = tiny_model(tiny), Target(4, 2, "w2", 5, "w5")
    recording = record(model, [1, 7, 3, 3, 5, 8])
    scale = expand(recording, target).scale
    config = model.config
    sites = [*each_pair(Head(la, he) for la in range(config.n_layers) for he in range(2))]
    sites += [*each_mlp(config), *each_order(config)]
    sites.append(Site(heads=tuple(Head(layer, 1) for layer in range(config.n_layers))))
    table = frozen_rows(model, recording, target, sites)
    for row in table.rows:
        assert abs(row.effect + row.contribution) <= 1e-11 * scale, row.site
    orders = [row.contribution for row in table.rows if row.site.orders]
    constant = target.constant(recording.weights)
    assert sum(orders) + constant == pytest.approx(table.clean, abs=1e-11 * scale)


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_zeroing_a_head_frozen_takes_its_paths_and_its_value_bias_constant(tiny):
    """The constant that its value bias writes counts with what later heads made of it."""
    model, target = tiny_model(tiny), Target(4, 2, "w2")
    recording = record(model, [1, 7, 3, 3, 5, 8])
    found = expand(recording, target)
    weights, config = recording.weights, model.config
    table = frozen_rows(model, recording, target, each_head(config))
    for row in table.rows:
        (head,) = row.site.heads
        paths = sum(term.contribution for term in found.terms if head in term.path.heads)
        # Pushed forwards from the head to the final stream.
        stream = weights.head_bias()[head.layer, head.head].expand_as(recording.stream[0])
        for layer in range(head.layer + 1, config.n_layers):
            read = stream / recording.ln_scale[layer].unsqueeze(-1)
            values = read @ weights.head_W_V(layer)
            moved = (recording.pattern[layer] @ values) @ weights.W_O[layer]
            stream = stream + moved.sum(0)
        sent = stream[4] @ target.direction(weights) / recording.final_scale[4]
        assert row.effect == pytest.approx(-paths - float(sent), abs=1e-11 * found.scale)


def test_rows_come_one_by_one_and_progress_counts_every_run():
    model = tiny_model(Tiny(n_layers=2, n_heads=3))
    prompts = [record(model, tokens).prompt for tokens in ([1, 2, 3], [4, 5, 6])]
    cases = [case_of(prompt, Target(2, 1, "w1")) for prompt in prompts]
    steps, table = finish(ablate(model, cases, each_head(model.config), ZERO, dtype="float64"))
    assert [str(row.site) for row in table.rows] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    assert {step.total for step in steps} == {2 * (1 + 6)}
    counted = [step.done for step in steps]
    assert counted == sorted(counted)  # some stand between two runs, to be stopped there
    assert len(set(counted)) > 6
    assert steps[-1].done == steps[-1].total
    partial = {}
    for step in steps:
        partial |= {row.site: row for row in step.partial or ()}
    assert tuple(partial.values()) == table.rows
    assert {row.n for row in table.rows} == {2}


def test_means_and_standard_errors_are_those_of_the_prompts():
    model = tiny_model(Tiny(n_layers=2, n_heads=2))
    prompts = [record(model, tokens).prompt for tokens in ([1, 2, 3], [4, 5, 6], [7, 7, 1])]
    cases = [case_of(prompt, Target(2, token, "w")) for token, prompt in enumerate(prompts)]
    sites = each_head(model.config)
    alone = [result_of(ablate(model, [case], sites, ZERO, dtype="float64")) for case in cases]
    table = result_of(ablate(model, cases, sites, ZERO, dtype="float64"))
    assert table.clean == np.mean([one.clean for one in alone])
    for place, row in enumerate(table.rows):
        effects = np.array([one.rows[place].effect for one in alone])
        # s / √n with s² = Σ (x − mean)² / (n − 1).
        spread = (((effects - effects.mean()) ** 2).sum() / 2) ** 0.5
        assert row.effect == pytest.approx(effects.mean(), abs=1e-12)
        assert row.stderr == pytest.approx(spread / 3**0.5, rel=1e-12)
        shares = [one.rows[place].contribution for one in alone]
        assert row.contribution == pytest.approx(np.mean(shares), abs=1e-12)
        assert row.value == pytest.approx(table.clean + row.effect, abs=1e-12)
        assert alone[0].rows[place].stderr is None


@pytest.mark.parametrize("tiny", [*KINDS, *MLP_KINDS], ids=str)
def test_in_a_text_zeroing_takes_the_mean_of_its_contributions_to_the_next_tokens(tiny):
    """Forwards by the run, backwards in one sweep from all dests, and backwards dest by dest."""
    model, tokens = tiny_model(tiny), [1, 7, 3, 3, 5, 8]
    case, recording = window_case(model, tokens), record(model, tokens)
    config, paths = model.config, [Path.parse("token"), Path.parse("token > 0.1 > 1.0")]
    sites = [*each_head(config), *each_mlp(config), *each_order(config)]
    sites += [*each_pair([Head(0, 0), Head(1, 1), Head(1, 0)])]
    sites += [Site(paths=(path,)) for path in paths]
    steps = ablate(model, [case], sites, ZERO, frozen=True, dtype="float64")
    table = result_of(steps)
    targets = [Target(dest, token, "") for dest, token in enumerate(tokens[1:])]
    books = [Bookkeeping(recording, target) for target in targets]
    largest = max(abs(row.contribution) for row in table.rows) + abs(table.clean)
    for row in table.rows:
        assert abs(row.effect + row.contribution) <= 1e-11 * largest, row.site
        singly = np.mean([one.of(row.site) for one in books])
        assert abs(row.contribution - singly) <= 1e-12 * largest, row.site
    constant = np.mean([target.constant(recording.weights) for target in targets])
    by_order = result_of(ablate_orders(model, [case], metric="logit", dtype="float64"))
    total = sum(row.contribution for row in by_order.rows)
    assert total + constant == pytest.approx(table.clean, abs=1e-11 * largest)


def test_free_ablation_lets_later_layers_react():
    """In the induction model 1.0 finds its key through 0.0; contribution and effect part."""
    model = open_model("induction-by-hand")
    prompt = model.prompt("I like green tea , so I drink green")
    tea = model.tokenizer.token_id("tea")
    case = case_of(prompt, Target(len(prompt) - 1, tea, "tea"))
    sites = each_head(model.config)
    free = result_of(ablate(model, [case], sites, ZERO, dtype="float64"))
    frozen = result_of(ablate(model, [case], sites, ZERO, dtype="float64", frozen=True))
    # What leaks past a match is below 1e-6 of a few logits.
    assert free.rows[0].value == pytest.approx(2.3, abs=1e-5)
    assert free.rows[0].contribution == pytest.approx(1.0, abs=1e-5)
    assert frozen.rows[0].effect == pytest.approx(-1.0, abs=1e-5)
    assert (free.frozen, frozen.frozen) == (False, True)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", ["zero", "mean", "resample", "pattern"])
def test_after_a_stop_at_any_step_the_next_clean_run_is_bit_equal(name, frozen):
    model = open_model("attn-only-2l")
    prompts = [random_prompt(model, seed, 9) for seed in (3, 3)]
    prompts.append(Prompt(model.name, prompts[0].token_ids[::-1], prompts[0].labels))
    cases = [case_of(prompt, Target(1, 5, "5")) for prompt in prompts[1:]]
    first = model.run(prompts[0])

    def start():
        kind = kind_named(name)()
        return ablate(model, cases, each_head(model.config), kind, frozen=frozen)

    steps, whole = finish(start())
    for stop in range(len(steps)):
        run = start()
        for _ in range(stop + 1):
            next(run)
        run.close()
        assert not torch.is_inference_mode_enabled()
        again = model.run(prompts[0])
        assert torch.equal(again.logits, first.logits)
        assert torch.equal(again.pattern, first.pattern)
        assert torch.equal(again.stream, first.stream)
    assert np.array_equal(result_of(start()).values, whole.values)


def test_an_error_in_the_middle_leaves_the_model_as_it_was(monkeypatch):
    model = open_model("induction-by-hand")
    prompt = model.prompt("I like green tea , so I drink green")
    case = case_of(prompt, Target(3, 5, "5"))
    first = model.run(prompt)
    run = ablate(model, [case], each_head(model.config), ZERO)
    next(run)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr("circuitview.core.ablation.lab.measure", fail)
        with pytest.raises(MemoryError):
            finish(run)
    assert not torch.is_inference_mode_enabled()
    assert torch.equal(model.run(prompt).logits, first.logits)


@pytest.mark.parametrize(
    ("site", "why"),
    [
        ("2.0", "there is no head 2.0"),
        ("0.2", "there is no head 0.2"),
        ("mlp 0", "no MLPs"),
        ("order 3", "at most 2 heads"),
        ("token > 1.7", "there is no head 1.7"),
        ("bias 5", "layers 0 to 1"),
        ("token > mlp 0", "MLP"),
        ("mlp bias 0", "MLP"),
        ("position > 1.0", "position"),
    ],
)
def test_what_the_model_has_not_is_refused_in_one_line(site, why):
    model = tiny_model(Tiny(biases=False, positional_embedding_type="none", n_heads=2))
    case = case_of(record(model, [1, 2]).prompt, Target(1, 1, "w1"))
    with pytest.raises(CircuitviewError, match=why) as caught:
        finish(ablate(model, [case], [Site.parse(site)], ZERO))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tiny", "site"),
    [
        (Tiny(act_fn="solu_ln"), "token > mlp 0"),
        (Tiny(act_fn="gelu"), "token > mlp 2 > 1.0"),
        (Tiny(act_fn="gelu"), "token > 0.0 > mlp 7"),
    ],
    ids=["MLP that mixes neurons", "layers that don't rise", "no such layer"],
)
def test_a_path_that_can_not_run_through_an_mlp_is_refused(tiny, site):
    model = tiny_model(tiny)
    case = case_of(record(model, [1, 2]).prompt, Target(1, 1, "w1"))
    with pytest.raises(CircuitviewError):
        finish(ablate(model, [case], [Site.parse(site)], ZERO))


@pytest.mark.parametrize("tiny", [tiny for tiny in MLP_KINDS if tiny.act_fn == "gelu"], ids=str)
def test_paths_through_mlps_are_taken_away_too(tiny):
    model, target = tiny_model(tiny), Target(3, 2, "w2")
    recording = record(model, [1, 7, 3, 3])
    found = expand(recording, target, through_mlps=True)
    through = [term for term in found.terms if term.path.kind == "through MLPs"][:20]
    assert through
    sites = [Site(paths=(term.path,)) for term in through]
    table = frozen_rows(model, recording, target, sites)
    for term, row in zip(through, table.rows, strict=True):
        assert abs(row.effect + row.contribution) <= 1e-11 * found.scale
        assert abs(row.contribution - term.contribution) <= 1e-11 * found.scale


@pytest.mark.parametrize("metric", ["logit", "difference", "loss"])
def test_contributions_are_to_what_is_measured(metric):
    """A second token that is not measured is no part of the contribution."""
    model, both = tiny_model(Tiny()), Target(3, 2, "w2", 5, "w5")
    recording = record(model, [1, 7, 3, 3])
    case, sites = case_of(recording.prompt, both), each_head(model.config)
    steps = ablate(model, [case], sites, ZERO, metric=metric, frozen=True, dtype="float64")
    books = Bookkeeping(recording, both if metric == "difference" else Target(3, 2, "w2"))
    for row in result_of(steps).rows:
        assert row.contribution == books.of(row.site)
        if metric != "loss":
            assert row.effect == pytest.approx(-row.contribution, abs=1e-11)


def test_a_site_of_two_kinds_has_no_contribution():
    model = tiny_model(Tiny(act_fn="gelu"))
    recording = record(model, [1, 2, 3])
    books = Bookkeeping(recording, Target(2, 1, "w1"))
    assert books.of(Site.parse("0.0 + mlp 0")) is None
    assert books.of(Site.parse("0.0 + 1.1")) is not None


def test_nothing_to_do_is_refused():
    model = tiny_model(Tiny())
    case = case_of(record(model, [1, 2]).prompt, Target(1, 1, "w1"))
    with pytest.raises(CircuitviewError, match="nothing to take away"):
        finish(ablate(model, [case], [], ZERO))
    with pytest.raises(CircuitviewError, match="nothing to run"):
        finish(ablate(model, [], each_head(model.config), ZERO))
    with pytest.raises(CircuitviewError, match="needs two tokens"):
        finish(ablate(model, [case], each_head(model.config), ZERO, metric="difference"))


def test_zeroed_head_writes_nothing_and_its_neighbours_are_untouched():
    model = tiny_model(Tiny(n_layers=1, n_heads=3))
    clean = record(model, [1, 2, 3])
    cut = record(model, [1, 2, 3], edits=Edits(zeroed=frozenset({Head(0, 1)})))
    assert not cut.z[0, 1].any()
    assert (cut.z[0, [0, 2]] == clean.z[0, [0, 2]]).all()
    assert (cut.pattern == clean.pattern).all()


@steady
@given(data=st.data())
def test_frozen_run_without_edits_repeats_the_clean_run(data):
    tiny, tokens = data.draw(tinies_and_tokens())
    model = tiny_model(tiny)
    clean = record(model, tokens)
    again = record(model, tokens, edits=Edits(frozen=clean))
    # The same sums in the same order but for the norm of no width.
    assert (again.logits - clean.logits).abs().max() <= 1e-13 * clean.logits.abs().max()
