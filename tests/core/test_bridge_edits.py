"""Changes in models of every Hugging Face family take effect where the model's own code reads them:
against what must follow from them, and against transformer_lens' hooks."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from circuitview.core.ablation.by_order import ablate_orders
from circuitview.core.ablation.cases import case_of, window_case
from circuitview.core.ablation.kinds import kind_named
from circuitview.core.ablation.lab import ablate
from circuitview.core.ablation.sites import Site, each_head, each_mlp, each_order
from circuitview.core.checkpoint import open_model
from circuitview.core.edits import Edits
from circuitview.core.names import CircuitviewError, Head, Source
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.core.finishing import finish, result_of
from tests.hf_families import FAMILIES, TOKENS, save_family

# Relative to the largest entry, float32: sums of a few hundred numbers, three layers of them.
CLOSE = 2e-5
N = len(TOKENS)
OTHER = tuple(reversed(TOKENS))
DESTS = torch.tensor([0, 5, N - 1])


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    """(the open model, its clean run, the run of another prompt)"""
    model = open_model(save_family(request.param, tmp_path_factory.mktemp("family")))
    return model, model.run(prompt_of(model)), model.run(prompt_of(model, OTHER))


def prompt_of(model, tokens=TOKENS):
    return Prompt(model.name, tokens, tuple(model.tokenizer.label(token) for token in tokens))


def relative(ours, theirs):
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-9))


def n_hooks(model):
    """All hooks of all modules, the bridge's own points and the model's modules alike."""
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in model.bridge.modules()
    )


def noise(*shape, seed=3):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_what_stands_in_for_an_mlp_is_what_is_added_to_the_stream(family):
    """Behind a norm after it and behind residual multipliers."""
    model, clean, _ = family
    put = noise(N, model.config.d_model)
    for layer in range(model.config.n_layers):
        for written in (put, torch.zeros_like(put)):
            run = clean.rerun(Edits(mlp_out={layer: written}))
            assert torch.equal(run.mlp_out[layer], written)
            assert torch.equal(run.stream[: layer + 1], clean.stream[: layer + 1])
            without = clean.stream[layer + 1] - clean.mlp_out[layer]
            assert relative(run.stream[layer + 1], without + written) <= CLOSE
            assert relative(run.logits, clean.logits) > CLOSE


def test_another_prompts_embedding_makes_it_that_prompt(family):
    _, clean, other = family
    run = clean.rerun(Edits(embedding=other.embedding))
    assert relative(run.stream, other.stream) <= CLOSE
    assert relative(run.pattern, other.pattern) <= CLOSE
    assert relative(run.logits, other.logits) <= CLOSE
    assert relative(run.logits, clean.logits) > 0.1


def test_every_part_of_another_run_makes_it_that_run(family):
    """Nothing is read past the points where things are put in."""
    model, clean, other = family
    heads = [site.heads[0] for site in each_head(model.config)]
    z = {head: other.z[head.layer, head.head] for head in heads}
    mlp_out = {layer: other.mlp_out[layer] for layer in range(model.config.n_layers)}
    run = clean.rerun(Edits(z=z, mlp_out=mlp_out, embedding=other.embedding))
    assert relative(run.stream, other.stream) <= CLOSE
    assert relative(run.logits, other.logits) <= CLOSE


def test_with_nothing_in_every_place_the_embedding_and_biases_are_left(family):
    model, clean, _ = family
    weights, config = model.weights(), model.config
    put = torch.zeros(N, config.d_model)
    run = clean.rerun(
        Edits(
            zeroed=frozenset(site.heads[0] for site in each_head(config)),
            mlp_out=dict.fromkeys(range(config.n_layers), put),
        )
    )
    stream = clean.stream[0]
    for layer in range(config.n_layers):
        bias = weights.b_O[layer].expand(N, -1)
        if run.post_scale is not None:
            bias = bias / run.post_scale[layer].unsqueeze(-1)
        if weights.b_post is not None:
            bias = bias + weights.b_post[layer]
        stream = stream + bias
    assert relative(run.stream[-1], stream) <= CLOSE


def test_what_is_added_behind_the_last_layer_meets_the_final_norm(family):
    model, clean, _ = family
    added = noise(N, model.config.d_model)
    run = clean.rerun(Edits(added=added))
    last = clean.stream[-1] + added
    assert relative(run.stream[-1], last) <= CLOSE
    assert torch.equal(run.stream[:-1], clean.stream[:-1])
    if model.final is not None:
        last = last / model.final.scale(last).float().unsqueeze(-1)
    expected = model.weights().read_out(last) + model.weights().constants()
    assert relative(run.logits, expected) <= CLOSE


def test_a_pattern_moves_the_values_of_its_own_run(family):
    """The values as the model's own value projection hands them on, of a run in which an earlier
    head is changed as well."""
    model, clean, other = family
    head = Head(2, 2)
    pattern = noise(N, N).tril().softmax(-1).tril()
    pattern = pattern / pattern.sum(-1, keepdim=True)
    edits = Edits(patterns={head: pattern}, z={Head(0, 1): other.z[0, 1]})
    seen = []
    hooks = [("blocks.2.attn.v.hook_out", lambda tensor, **_: seen.append(tensor.clone()))]
    with model.bridge.hooks(fwd_hooks=hooks):
        run = clean.rerun(edits)
    kv = model.config.n_kv_heads
    values = seen[-1].reshape(N, -1, model.config.d_head)
    place = head.head // (model.config.n_heads // kv) if values.shape[1] == kv else head.head
    assert relative(run.z[2, 2], pattern @ values[:, place]) <= CLOSE
    assert torch.equal(run.pattern[2, 2], pattern)
    assert relative(run.z[2, 2], clean.z[2, 2]) > CLOSE


def every_kind_of_edit(model, clean, other):
    stream = noise(N, model.config.d_model, seed=9)
    return [
        Edits(z={Head(1, 1): other.z[1, 1]}),
        Edits(zeroed=frozenset({Head(0, 0), Head(2, 3)})),
        Edits(patterns={Head(0, 1): other.pattern[0, 1], Head(2, 2): other.pattern[2, 2]}),
        Edits(mlp_out={1: other.mlp_out[1]}),
        Edits(embedding=other.embedding, patterns={Head(1, 0): clean.pattern[1, 0]}),
        Edits(added=stream),
        Edits(
            z={Head(1, 1): other.z[1, 1]},
            zeroed=frozenset({Head(0, 2)}),
            patterns={Head(2, 0): other.pattern[2, 0]},
            mlp_out={0: other.mlp_out[0]},
            added=stream,
        ),
    ]


@pytest.mark.parametrize("frozen", [False, True])
def test_logits_after_are_those_of_a_recorded_run(family, frozen):
    model, clean, other = family
    edits, seen = every_kind_of_edit(model, clean, other), []
    for places, logits in model.logits_after(clean, edits, DESTS, frozen):
        seen += places
        for place, found in zip(places, logits, strict=True):
            held = clean if frozen else None
            whole = model.run(clean.prompt, edits=replace(edits[place], frozen=held))
            assert relative(found, whole.logits[DESTS]) <= CLOSE, place
    assert sorted(seen) == list(range(len(edits)))


def test_own_values_change_nothing(family):
    model, clean, _ = family
    edits = [
        Edits(z={Head(1, 1): clean.z[1, 1], Head(0, 0): clean.z[0, 0]}),
        Edits(patterns={Head(0, 1): clean.pattern[0, 1], Head(2, 2): clean.pattern[2, 2]}),
        Edits(mlp_out={layer: clean.mlp_out[layer] for layer in range(3)}),
        Edits(embedding=clean.embedding),
        Edits(added=torch.zeros_like(clean.stream[-1])),
    ]
    # Logits of order 10 must stay within 1e-5.
    close = 1e-6 * max(10.0, float(clean.logits.abs().max()))
    for frozen in (False, True):
        for places, logits in model.logits_after(clean, edits, torch.arange(N), frozen):
            assert float((logits[0] - clean.logits).abs().max()) < close, places


def test_frozen_rows_are_minus_their_contribution(family):
    model, clean, _ = family
    config = model.config
    paths = ["direct", "token > 1.2", "token > 0.1 > 2.3", "mlp 0 > 1.1", "mlp 1"]
    paths += ["bias 0 > 2.0"] if Source("bias", 0) in clean.weights.sources else []
    sites = [*each_head(config), *each_mlp(config), *each_order(config), *map(Site.parse, paths)]
    if model.carries_mlps:
        sites += [Site.parse("token > mlp 0 > 2.1"), Site.parse("token > 0.1 > mlp 1")]
    case = case_of(clean.prompt, Target(7, 11, "11"))
    run = ablate(model, [case], sites, kind_named("zero")(), frozen=True)
    table = result_of(run)
    scale = max(abs(table.clean), *(abs(row.contribution) for row in table.rows))
    for row in table.rows:
        assert abs(row.effect + row.contribution) <= 1e-4 * scale, row.site


def test_frozen_rows_of_a_text_are_minus_their_mean_contribution(family):
    """To the logits of the next tokens, at every position of the window."""
    model, _, _ = family
    config, case = model.config, window_case(model, TOKENS)
    sites = (*each_head(config), *each_mlp(config), *each_order(config))
    table = result_of(ablate(model, [case], sites, kind_named("zero")(), frozen=True))
    largest = max(*(abs(row.contribution) for row in table.rows), abs(table.clean))
    assert max(abs(row.contribution) for row in table.rows) > 1e-3 * largest
    for row in table.rows:
        assert abs(row.effect + row.contribution) <= 1e-4 * largest, row.site


def test_the_last_order_is_the_model(family):
    model, _, _ = family
    table = result_of(ablate_orders(model, [window_case(model, TOKENS)]))
    assert len(table.rows) == model.config.n_layers + 1
    assert abs(table.rows[-1].effect) < 1e-4  # nats; float32 logits are right to 1e-5
    assert abs(table.rows[0].effect) > 1e-4


@pytest.mark.parametrize("metric", ["loss", "probability", "kl"])
def test_what_is_measured_is_of_the_models_own_output(family, metric):
    """Soft caps and logit scales counted in, as the model's own code hands its logits out."""
    model, _, other = family
    put = other.z[1, 2]
    tokens = torch.tensor(TOKENS)
    with torch.inference_mode():
        before = model.logits(tokens)[:-1].double().log_softmax(-1)
        hooks = [("blocks.1.attn.o.hook_in", partial(put_z, 2, put))]
        after = model.logits(tokens, hooks)[:-1].double().log_softmax(-1)
    places = (torch.arange(N - 1), tokens[1:])
    expected = {
        "loss": -after[places].mean(),
        "probability": after[places].exp().mean(),
        "kl": (before.exp() * (before - after)).sum(-1).mean(),
    }[metric]
    cases = [window_case(model, one) for one in (TOKENS, OTHER)]
    run = ablate(model, cases, [Site.parse("1.2")], kind_named("resample")(), metric=metric)
    found = result_of(run).values[0, 0]
    assert found == pytest.approx(float(expected), abs=1e-5)


# --- Against transformer_lens' hooks, written out.


def put_z(head, put, tensor, **_):
    changed = tensor.clone()
    changed.view(N, 4, 8)[:, head] = put
    return changed


@pytest.mark.parametrize("kind", ["zero", "mean", "resample"])
def test_heads_and_mlps_are_those_of_transformer_lens_hooks(family, kind):
    model, clean, other = family
    tokens = torch.tensor([TOKENS])
    cases = [case_of(run.prompt, Target(7, 11, "11")) for run in (clean, other)]
    sites = [Site.parse(text) for text in ("0.1", "1.2", "2.3", "mlp 0", "mlp 2")]
    found = result_of(ablate(model, cases, sites, kind_named(kind)())).values[:, 0]

    def put_for(ours, theirs):
        mean = (ours.mean(0) + theirs.mean(0)) / 2
        # Of two prompts each stands in for the other.
        return {"zero": 0 * ours, "mean": mean.expand_as(ours), "resample": theirs}[kind]

    for value, site in zip(found, sites, strict=True):
        if site.heads:
            (head,) = site.heads
            put = put_for(*(run.z[head.layer, head.head] for run in (clean, other)))
            hook = (f"blocks.{head.layer}.attn.o.hook_in", partial(put_z, head.head, put))
        else:
            (layer,) = site.mlps
            put = put_for(*(run.mlp_out[layer] for run in (clean, other)))
            hook = (
                f"blocks.{layer}.hook_mlp_out",
                lambda tensor, put=put, **_: put.reshape(tensor.shape),
            )
        with torch.inference_mode():
            theirs = float(model.bridge.run_with_hooks(tokens, fwd_hooks=[hook])[0, 7, 11])
        cap = model.config.output_logits_soft_cap
        ours = value if cap is None else cap * torch.tanh(torch.tensor(value / cap)).item()
        assert ours == pytest.approx(theirs, abs=1e-4), site  # logits


def test_a_pattern_is_that_of_transformer_lens_hooks(tmp_path):
    """In a family whose pattern can be replaced by a hook: what the model makes of it is ours."""
    model = open_model(save_family("gpt2", tmp_path))
    clean, other = model.run(prompt_of(model)), model.run(prompt_of(model, OTHER))

    def put_pattern(tensor, **_):
        changed = tensor.clone()
        changed[0, 2] = other.pattern[1, 2]
        return changed

    with torch.inference_mode():
        theirs = model.bridge.run_with_hooks(
            torch.tensor([TOKENS]), fwd_hooks=[("blocks.1.attn.hook_pattern", put_pattern)]
        )[0]
    ours = clean.rerun(Edits(patterns={Head(1, 2): other.pattern[1, 2]}))
    assert relative(ours.logits, theirs) <= CLOSE
    assert relative(ours.logits, clean.logits) > CLOSE


# --- Nothing is left behind.


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return open_model(save_family("llama", tmp_path_factory.mktemp("family")))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", ["zero", "mean", "resample", "pattern"])
def test_a_stop_at_any_step_leaves_no_hook_and_the_same_clean_run(llama, name, frozen):
    model = llama
    first, before = model.run(prompt_of(model)), n_hooks(model)
    cases = [
        case_of(prompt_of(model, tokens), Target(4, 7, "7")) for tokens in (TOKENS[:6], OTHER[:6])
    ]
    sites = [Site.parse(text) for text in ("0.1", "2.3")]
    sites += [] if name == "pattern" else [Site.parse("mlp 1"), Site.parse("direct")]

    def start():
        return ablate(model, cases, sites, kind_named(name)(), frozen=frozen)

    for stop in range(1, len(finish(start())[0]) + 1):
        run = start()
        for _ in range(stop):
            next(run)
        assert n_hooks(model) == before  # none even while it waits
        run.close()
        assert n_hooks(model) == before
        assert not torch.is_inference_mode_enabled()
        assert torch.equal(model.run(prompt_of(model)).logits, first.logits)


@pytest.mark.parametrize("point", ["hook", "block"])
def test_no_hook_outlives_an_error_in_the_middle_of_a_run(llama, point, monkeypatch):
    model = llama
    first, before = model.run(prompt_of(model)), n_hooks(model)

    def fail(*_, **__):
        raise RuntimeError("in the middle")

    case = case_of(prompt_of(model), Target(4, 7, "7"))
    run = ablate(model, [case], [Site.parse("0.1"), Site.parse("mlp 1")], kind_named("zero")())
    next(run)
    with monkeypatch.context() as broken:
        if point == "hook":
            broken.setattr("circuitview.core.checkpoint.bridge_edits.EditHooks._put", fail)
        else:
            broken.setattr(model.bridge.blocks[1].original_component, "forward", fail)
        with pytest.raises(CircuitviewError, match="in the middle"):
            finish(run)
    assert n_hooks(model) == before
    assert not torch.is_inference_mode_enabled()
    assert torch.equal(model.run(prompt_of(model)).logits, first.logits)
