"""Every kind of ablation against a hand computation on induction-by-hand, in plain numpy; and what
each draws, takes and refuses."""

import sys
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from safetensors.numpy import load_file

from circuitview.core.ablation.cases import case_of, text_cases
from circuitview.core.ablation.kinds import kind_named, kinds
from circuitview.core.ablation.kinds.kind import shuffled
from circuitview.core.ablation.lab import ablate
from circuitview.core.ablation.sites import Site, each_head, each_mlp
from circuitview.core.bundled import bundled_folder
from circuitview.core.checkpoint import open_model
from circuitview.core.names import CircuitviewError
from circuitview.core.prompt import Prompt
from circuitview.core.target import Target
from tests.core.finishing import result_of
from tests.tiny_models import Tiny, record, tiny_model

PROMPT = "I like green tea , so I drink green"
OTHER = "so I drink tea , I like so green"
# float64 throughout, logits up to 10: the same few sums in another order.
CLOSE = 1e-11


@cache
def arrays():
    stored = load_file(bundled_folder("induction-by-hand") / "model.safetensors")
    return {name: array.astype(np.float64) for name, array in stored.items()}


class Hand:
    """The model's two layers of two heads in numpy: no norm, no attention biases.

    z and pattern are [layer, head, ...]; `out[layer][head]` is what a head writes.
    """

    def __init__(self, ids, z=None, patterns=None, frozen=None, added=0.0):
        a, n = arrays(), len(ids)
        stream = a["embed.W_E"][list(ids)] + a["pos_embed.W_pos"][:n]
        self.embedding, self.positions = a["embed.W_E"][list(ids)], a["pos_embed.W_pos"][:n]
        self.pattern, self.z = np.zeros((2, 2, n, n)), np.zeros((2, 2, n, 36))
        for layer in range(2):
            written = np.zeros_like(stream)
            for head in range(2):
                Q, K, V, out = (a[f"blocks.{layer}.attn.W_{kind}"][head] for kind in "QKVO")
                scores = (stream @ Q) @ (stream @ K).T / 6.0
                weights = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(n)
                pattern = weights / weights.sum(-1, keepdims=True)
                if frozen is not None:
                    pattern = frozen.pattern[layer, head]
                pattern = (patterns or {}).get((layer, head), pattern)
                mixed = (z or {}).get((layer, head), pattern @ (stream @ V))
                self.pattern[layer, head], self.z[layer, head] = pattern, mixed
                written += mixed @ out
            stream = stream + written
        self.stream = stream + added
        self.logits = self.stream @ a["unembed.W_U"] + a["unembed.b_U"]

    def through(self, written, *heads):
        """What is left in the final stream of something written before layer 0."""
        a = arrays()
        for layer, head in heads:
            V, out = (a[f"blocks.{layer}.attn.W_{kind}"][head] for kind in "VO")
            written = self.pattern[layer, head] @ (written @ V @ out)
        return written

    def order(self, order):
        """What all paths with so many heads write."""
        start = self.embedding + self.positions
        one = [self.through(start, (layer, head)) for layer in range(2) for head in range(2)]
        pairs = [(first, last) for first in range(2) for last in range(2)]
        two = [self.through(start, (0, first), (1, last)) for first, last in pairs]
        return [start, sum(one), sum(two)][order]


@pytest.fixture(scope="module")
def model():
    return open_model("induction-by-hand")


def values_of(model, kind, sites, frozen, prompts=(PROMPT,), dest=9, **settings):
    """[site, prompt], the logit of tea at dest; and the token ids."""
    tea = model.tokenizer.token_id("tea")
    read = [model.prompt(prompt) for prompt in prompts]
    cases = [case_of(prompt, Target(dest, tea, "tea")) for prompt in read]
    run = ablate(
        model,
        cases,
        [Site.parse(site) for site in sites],
        kind_named(kind)(**settings),
        frozen=frozen,
        dtype="float64",
        seed=3,
    )
    return result_of(run).values, tea, [prompt.token_ids for prompt in read]


HEADS = {"0.0": (0, 0), "0.1": (0, 1), "1.0": (1, 0), "1.1": (1, 1)}
PATHS = {
    "token": (),
    "token > 0.1": ((0, 1),),
    "token > 1.0": ((1, 0),),
    "token > 0.1 > 1.0": ((0, 1), (1, 0)),
}


def replaced_heads(ids, z_of, frozen):
    """The logits without each head, and without 0.0 and 1.0 at once."""
    clean = Hand(ids)
    held = clean if frozen else None
    puts = [(head,) for head in HEADS.values()] + [((0, 0), (1, 0))]
    return [
        Hand(ids, z={head: z_of(clean, head) for head in put}, frozen=held).logits for put in puts
    ]


HEAD_SITES = (*HEADS, "0.0 + 1.0")
END_SITES = (*PATHS, "order 0", "order 1", "order 2")


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kind", ["zero", "mean", "resample"])
def test_heads_by_hand(model, kind, frozen):
    settings = {"prompt": OTHER} if kind == "resample" else {}
    found, tea, (ids,) = values_of(model, kind, HEAD_SITES, frozen, **settings)
    other = Hand(model.prompt(OTHER).token_ids)

    def put(clean, head):
        z = clean.z[head]
        return {"zero": 0 * z, "mean": z.mean(0) + 0 * z, "resample": other.z[head]}[kind]

    expected = [logits[9, tea] for logits in replaced_heads(ids, put, frozen)]
    assert np.allclose(found[:, 0], expected, rtol=0, atol=CLOSE)
    clean = Hand(ids).logits[9, tea]
    assert np.abs(found[:, 0] - clean).max() > 1  # logits: something is at stake


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kind", ["zero", "mean", "resample"])
def test_paths_and_orders_by_hand(model, kind, frozen):
    """They leave the final stream alone, and this model has no final norm: frozen is free."""
    settings = {"prompt": OTHER} if kind == "resample" else {}
    found, tea, (ids,) = values_of(model, kind, END_SITES, frozen, **settings)
    clean, other = Hand(ids), Hand(model.prompt(OTHER).token_ids)

    def written(run, site):
        if site.startswith("order"):
            return run.order(int(site[-1]))
        return run.through(run.embedding, *PATHS[site])

    expected = []
    for site in END_SITES:
        own = written(clean, site)
        put = {"zero": 0 * own, "mean": own.mean(0), "resample": written(other, site)}[kind]
        expected.append(Hand(ids, added=put - own).logits[9, tea])
    assert np.allclose(found[:, 0], expected, rtol=0, atol=CLOSE)
    assert np.abs(found[:, 0] - clean.logits[9, tea]).max() > 1


@pytest.mark.parametrize("frozen", [False, True])
def test_the_pattern_of_another_prompt_by_hand(model, frozen):
    found, tea, (ids,) = values_of(model, "pattern", HEAD_SITES, frozen, prompt=OTHER)
    clean, other = Hand(ids), Hand(model.prompt(OTHER).token_ids)
    sites = [(head,) for head in HEADS.values()] + [((0, 0), (1, 0))]
    for value, heads in zip(found[:, 0], sites, strict=True):
        patterns = {head: other.pattern[head] for head in heads}
        run = Hand(ids, patterns=patterns, frozen=clean if frozen else None)
        assert value == pytest.approx(run.logits[9, tea], abs=CLOSE)
    assert np.abs(found[:, 0] - clean.logits[9, tea]).max() > 1


@pytest.mark.parametrize("frozen", [False, True])
def test_its_own_pattern_changes_nothing(model, frozen):
    found, tea, (ids,) = values_of(model, "pattern", HEAD_SITES, frozen)
    assert np.allclose(found, Hand(ids).logits[9, tea], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", ["attn-only-1l", "attn-only-2l"])
def test_controls_of_the_trained_models_change_logits_by_nothing(name, frozen):
    """Resampled from the same prompt, and with its own pattern; float32."""
    model = open_model(name)
    text = "I like green tea, so I drink green"
    case = case_of(model.prompt(text), Target(9, 5, "5"))
    sites = [*each_head(model.config), *map(Site.parse, ("direct", "token > 0.3", "order 1"))]
    resample = result_of(
        ablate(model, [case], sites, kind_named("resample")(prompt=text), frozen=frozen)
    )
    heads = each_head(model.config)
    own = result_of(ablate(model, [case], heads, kind_named("pattern")(), frozen=frozen))
    for row in (*resample.rows, *own.rows):
        assert abs(row.effect) < 1e-5, row.site


def test_the_mean_is_over_all_positions_of_all_that_is_run(model):
    prompts = (PROMPT, "tea , so green")
    found, tea, ids = values_of(model, "mean", ["1.0"], False, prompts, dest=4)
    every = np.concatenate([Hand(one).z[1, 0].mean(0, keepdims=True) for one in ids])
    # Each prompt counts once, however long it is.
    for place, one in enumerate(ids):
        expected = Hand(one, z={(1, 0): every.mean(0) + np.zeros((len(one), 36))})
        assert found[0, place] == pytest.approx(expected.logits[4, tea], abs=CLOSE)


def test_the_mean_over_a_text_is_that_of_its_windows(model, tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("tea , so I drink green tea , I like green so I like tea")
    given = {"text": str(file), "length": 6, "windows": 2}
    found, tea, (ids,) = values_of(model, "mean", ["1.0", "0.0"], True, **given)
    windows = text_cases(model, file.read_text(), 6, 2)
    runs = [Hand(window.prompt.token_ids) for window in windows]
    assert len(runs) == 2
    for value, head in zip(found[:, 0], [(1, 0), (0, 0)], strict=True):
        mean = np.concatenate([run.z[head] for run in runs]).mean(0)
        z = {head: mean + np.zeros((10, 36))}
        expected = Hand(ids, z=z, frozen=Hand(ids)).logits[9, tea]
        assert value == pytest.approx(expected, abs=CLOSE)


def test_prompts_stand_in_for_each_other_as_shuffled(model):
    prompts = (PROMPT, OTHER, "green tea so I like tea , I drink")
    found, tea, ids = values_of(model, "resample", ["1.0"], False, prompts)
    for place, other in enumerate(shuffled(3, 3)):
        put = {(1, 0): Hand(ids[other]).z[1, 0]}
        expected = Hand(ids[place], z=put).logits[9, tea]
        assert found[0, place] == pytest.approx(expected, abs=CLOSE)


def test_rows_of_a_text_are_drawn_with_the_seed(model, tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("tea , so I drink green tea , I like green so I like tea drink so " * 20)
    found, tea, (ids,) = values_of(model, "resample", ["1.0"], False, text=str(file))
    again, _, _ = values_of(model, "resample", ["1.0"], False, text=str(file))
    assert np.array_equal(found, again)
    windows = text_cases(model, file.read_text(), 10, 64)
    possible = [
        Hand(ids, z={(1, 0): Hand(window.prompt.token_ids).z[1, 0]}).logits[9, tea]
        for window in windows
    ]
    assert np.abs(np.array(possible) - found[0, 0]).min() < CLOSE


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [2, 3, 5, 40])
def test_a_shuffle_leaves_nothing_in_its_place_and_is_the_same_for_a_seed(count, seed):
    order = shuffled(count, seed)
    assert sorted(order) == list(range(count))
    assert all(place != other for place, other in enumerate(order))
    assert shuffled(count, seed) == order


def test_other_seeds_shuffle_otherwise():
    assert len({tuple(shuffled(8, seed)) for seed in range(50)}) > 45


@pytest.mark.parametrize("frozen", [False, True])
def test_mlps_by_hand(frozen):
    """Nothing, the mean and another prompt's output in place of an MLP's: whole runs say so."""
    from circuitview.core.edits import Edits
    from circuitview.core.frozen import run_frozen

    model = tiny_model(Tiny(act_fn="gelu", n_layers=3))
    clean, other = record(model, [0, 2, 3, 4]), record(model, [0, 1, 8, 2])
    case = case_of(clean.prompt, Target(3, 2, "w2"))
    for kind, settings in (("zero", {}), ("mean", {}), ("resample", {"prompt": "w1 w8 w2"})):
        run = ablate(
            model,
            [case],
            each_mlp(model.config),
            kind_named(kind)(**settings),
            frozen=frozen,
            dtype="float64",
        )
        for layer, row in enumerate(result_of(run).rows):
            own = clean.mlp_out[layer]
            put = {
                "zero": own * 0,
                "mean": own.mean(0).expand_as(own),
                "resample": other.mlp_out[layer],
            }[kind]
            edits = Edits(mlp_out={layer: put})
            whole = run_frozen(clean, edits) if frozen else clean.rerun(edits)
            assert row.value == pytest.approx(float(whole.logits[3, 2]), abs=1e-10)
            assert abs(row.effect) > 1e-3


def test_refusals_are_one_line(model):
    def refused(kind, sites, why, prompts=(PROMPT,), **settings):
        with pytest.raises(CircuitviewError, match=why) as caught:
            values_of(model, kind, sites, False, prompts, dest=1, **settings)
        assert "\n" not in str(caught.value)

    refused("pattern", ["order 1"], "only heads have a pattern")
    refused("pattern", ["token > 1.0"], "only heads have a pattern")
    refused("pattern", ["1.0"], "has 3 tokens, the one that is run 10", prompt="tea so")
    refused("resample", ["1.0"], "has 3 tokens, the one that is run 10", prompt="tea so")
    refused("resample", ["1.0"], "nothing to resample from")
    refused("resample", ["1.0"], "equally long", prompts=(PROMPT, "tea so"))
    with pytest.raises(CircuitviewError, match="choose one of zero, mean, resample, pattern"):
        kind_named("noise")


def test_every_kind_has_its_words_and_its_settings_a_unit():
    assert [kind.NAME for kind in kinds().values()] == list(kinds())
    for kind in kinds().values():
        assert kind.TITLE
        assert kind.HELP.endswith(".")
        for field in fields(kind):
            assert {"unit", "help", "low", "high"} <= set(field.metadata)
            assert field.type in (int, str)


def test_taking_the_previous_token_head_away_blinds_the_induction_heads():
    """On the bundled 2-layer model: what a free run does to those that read through it."""
    from circuitview.core.edits import Edits
    from circuitview.core.head_kinds import head_kinds
    from circuitview.core.names import Head

    model = open_model("attn-only-2l")
    scores = head_kinds(model.weights())
    previous = Head(0, int(scores.previous_token[0].argmax()))
    induction = Head(1, int(scores.induction[1].argmax()))
    random = np.random.default_rng(0)
    half = 60
    drawn = random.integers(1, model.config.d_vocab, half).tolist()
    ids = (0, *drawn, *drawn)
    prompt = Prompt(model.name, ids, tuple(map(str, ids)))

    def score(edits):
        pattern = model.run(prompt, edits=edits).pattern[induction.layer, induction.head]
        return float(pattern.diagonal(-(half - 1))[2:].mean())  # dests of the second copy

    before, after = score(None), score(Edits(zeroed=frozenset({previous})))
    sys.stdout.write(
        f"induction score of {induction}: {before:.3f}, without {previous}: {after:.3f}"
    )
    assert before > 0.3
    assert after < 0.2 * before
    # Any other head of layer 0 leaves most of it.
    others = [Head(0, head) for head in range(8) if head != previous.head]
    assert min(score(Edits(zeroed=frozenset({head}))) for head in others) > after
    case = case_of(prompt, Target(len(ids) - 1, drawn[0], "next"))
    run = ablate(model, [case], [Site(heads=(previous,))], kind_named("zero")())
    assert result_of(run).rows[0].effect < -1  # the next token's logit falls with it
