"""Bare weights files: sizes by their shapes, questions for the rest, answers that are checked."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from circuitview.core.answers import KEYS
from circuitview.core.checkpoint import state_dict as bare
from circuitview.core.names import CircuitviewError, Head
from tests.reference import Oracle
from tests.tiny_models import (
    MLP_KINDS,
    Tiny,
    build_bundle,
    record,
    state_dict,
    word_tokenizer,
)


def save(folder, tiny, file="weights.pth", tokenizer=True):
    folder.mkdir(exist_ok=True)
    path = folder / file
    (save_file if path.suffix == ".safetensors" else torch.save)(state_dict(tiny), path)
    if tokenizer:
        word_tokenizer(tiny.d_vocab).save(str(folder / "tokenizer.json"))
    return path


def answers(tiny):
    """What a user would have to say of a model, and no more."""
    given = {}
    if not tiny.has_gains:
        given["normalization_type"] = tiny.normalization_type or "none"
    if tiny.act_fn not in (None, "solu_ln") or (tiny.act_fn and not tiny.has_gains):
        given["act_fn"] = tiny.act_fn
    if tiny.parallel_attn_mlp:
        given["parallel_attn_mlp"] = "true"
    if tiny.positional_embedding_type in ("shortformer", "none"):
        given["positional_embedding_type"] = tiny.positional_embedding_type
    return given


_KINDS = [Tiny(), Tiny(normalization_type="RMS"), Tiny(normalization_type="LNPre", biases=False)]
_KINDS += [replace(kind, seed=place) for place, kind in enumerate(MLP_KINDS)]


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
@pytest.mark.parametrize("file", ["weights.pth", "weights.safetensors"])
def test_shapes_and_answers_give_the_model(tiny, file, tmp_path):
    path = save(tmp_path, tiny, file)
    model = bare.open_state_dict(path, answers(tiny))
    for name in ("n_layers", "n_heads", "d_model", "d_head", "n_ctx", "d_vocab", "n_kv_heads"):
        asked = tiny.n_key_value_heads or tiny.n_heads if name == "n_kv_heads" else None
        assert getattr(model.config, name) == (asked or getattr(tiny, name, None))
    tokens = [1, 5, 2, 2, 7]
    theirs = Oracle(build_bundle(tmp_path / "same", tiny, np.float32)).run(tokens).logits
    ours = record(model, tokens).logits.numpy()
    # The same float32 numbers, run twice in float64; rotary bases are known to six digits.
    assert np.abs(ours - theirs).max() <= 1e-11 * max(1.0, np.abs(theirs).max())
    assert (model.name, model.folder) == ("weights", tmp_path)


def test_questions_are_those_that_the_file_leaves_open(tmp_path):
    described = bare.describe(save(tmp_path, Tiny()))
    assert described.known["normalization_type"] == "LN"
    assert described.known["n_ctx"] == 10
    names = [question.field for question in described.questions]
    assert names == [
        "positional_embedding_type",
        "eps",
        "attn_scale",
        "tokenizer",
        "bos_token_id",
    ]
    assert all(question.default is not None for question in described.questions)
    assert described.questions[0].choices == ("standard", "shortformer")


def test_what_nothing_tells_must_be_answered(tmp_path):
    tiny = Tiny(act_fn="relu", normalization_type="RMSPre", positional_embedding_type="none")
    path = tmp_path / "bare.safetensors"
    save_file(
        {name: array for name, array in state_dict(tiny).items() if "attn.mask" not in name}, path
    )
    described = bare.describe(path)
    needed = {question.field for question in described.questions if question.default is None}
    assert needed == {"normalization_type", "act_fn", "positional_embedding_type", "tokenizer"}
    assert "n_ctx" in {question.field for question in described.questions}
    with pytest.raises(CircuitviewError) as caught:
        bare.open_state_dict(path, {"normalization_type": "RMSPre"})
    assert "act_fn (relu, gelu" in str(caught.value)
    assert "positional_embedding_type (rotary, none)" in str(caught.value)
    assert "normalization_type" not in str(caught.value)
    assert "on the command line as in --config positional_embedding_type=rotary" in str(
        caught.value
    )
    given = {
        "normalization_type": "RMSPre",
        "act_fn": "relu",
        "positional_embedding_type": "none",
        "n_ctx": "7",
        "tokenizer": "numbers",
    }
    model = bare.open_state_dict(path, given)
    assert model.config.n_ctx == 7
    assert model.prompt("1 2").token_ids == (1, 2)
    assert model.prompt("1 2").labels == ("1", "2")


@pytest.mark.parametrize("tiny", _KINDS, ids=str)
def test_what_is_asked_is_among_the_keys_that_the_help_lists(tiny, tmp_path):
    described = bare.describe(save(tmp_path, tiny))
    assert {question.field for question in described.questions} <= {*KEYS, "tokenizer"}


def test_every_key_that_the_help_lists_is_taken(tmp_path):
    path = tmp_path / "bare.safetensors"
    tiny = Tiny(act_fn="relu", normalization_type="RMSPre", positional_embedding_type="none")
    save_file(
        {name: array for name, array in state_dict(tiny).items() if "attn.mask" not in name}, path
    )
    given = {
        "normalization_type": "RMSPre",
        "act_fn": "relu",
        "positional_embedding_type": "rotary",
    }
    given |= {"n_ctx": "7", "tokenizer": "numbers", "rotary_dim": "2", "rotary_base": "50"}
    given |= {"rotary_adjacent_pairs": "true", "eps": "0.1", "parallel_attn_mlp": "true"}
    given |= {"attn_scale": "2", "bos_token_id": "none", "use_attn_scale": "true"}
    given |= {"output_logits_soft_cap": "9"}
    assert set(given) == {*KEYS, "tokenizer"}
    config = bare.open_state_dict(path, given).config
    assert (config.n_rotated, config.output_logits_soft_cap, config.n_ctx) == (2, 9.0, 7)


@pytest.mark.parametrize("adjacent", [True, False])
@pytest.mark.parametrize("base", [10000.0, 500000.0, 50.0])
def test_rotary_tables_tell_their_base_and_pairs(tmp_path, adjacent, base):
    tiny = Tiny(
        d_head=6,
        positional_embedding_type="rotary",
        rotary_base=base,
        rotary_dim=4,
        rotary_adjacent_pairs=adjacent,
    )
    known = bare.describe(save(tmp_path, tiny)).known
    assert known["positional_embedding_type"] == "rotary"
    assert known["rotary_dim"] == 4
    assert known["rotary_base"] == base
    assert known["rotary_adjacent_pairs"] is adjacent


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_leyers": "2"}, ["'n_leyers' is no question", "n_layers"]),
        ({"n_layers": "3"}, ["n_layers is 2 by its arrays, 3 was given"]),
        ({"n_layers": "two"}, ["n_layers=two", "int"]),
        ({"eps": "small"}, ["eps=small", "float"]),
        ({"eps": "-1"}, ["eps is -1"]),
        ({"eps": "inf"}, ["eps is inf"]),
        ({"eps": "nan"}, ["eps is nan"]),
        ({"eps": "x" * 5000}, ["eps=xxx", "float", "…"]),
        ({"attn_scale": "0"}, ["attn_scale is 0", "above 0, or -1"]),
        ({"attn_scale": "nan"}, ["attn_scale is nan"]),
        ({"attn_scale": "inf"}, ["attn_scale is inf"]),
        ({"output_logits_soft_cap": "nan"}, ["output_logits_soft_cap is nan"]),
        ({"output_logits_soft_cap": "inf"}, ["output_logits_soft_cap is inf"]),
        ({"normalization_type": "RMS"}, ["normalization_type is LN by its arrays, RMS was given"]),
        ({"positional_embedding_type": "rotary"}, ["type=rotary", "standard, shortformer"]),
        ({"positional_embedding_type": "sideways"}, ["type=sideways", "standard, shortformer"]),
        ({"bos_token_id": "9"}, ["bos_token_id is 9", "vocabulary of 9"]),
        (
            {"tokenizer": "nowhere.json"},
            [
                "nowhere.json: missing",
                "--tokenizer FILE or --tokenizer numbers",
                "in the window, type FILE or numbers under 'tokenizer'",
            ],
        ),
    ],
)
def test_a_wrong_answer_is_named(tmp_path, given, words):
    with pytest.raises(CircuitviewError) as caught:
        bare.open_state_dict(save(tmp_path, Tiny()), given)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_what_is_known_may_be_repeated(tmp_path):
    given = {"n_layers": "2", "normalization_type": "LN", "attn_only": "true"}
    assert bare.open_state_dict(save(tmp_path, Tiny()), given).config.n_layers == 2


def test_answers_reach_the_forward_pass(tmp_path):
    path = save(tmp_path, Tiny())
    plain = bare.open_state_dict(path, {})
    assert plain.config.score_scale == 3**0.5
    other = bare.open_state_dict(path, {"attn_scale": "1", "eps": "0.5"})
    assert (other.config.score_scale, other.config.eps) == (1.0, 0.5)
    tokens = [1, 2, 3]
    first, second = (model.scores(record(model, tokens), Head(0, 1)) for model in (plain, other))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("given", "ids"),
    [({}, (0, 1)), ({"bos_token_id": "4"}, (4, 1)), ({"bos_token_id": "none"}, (1,))],
)
def test_bos_is_the_tokenizers_unless_it_is_said(tmp_path, given, ids):
    model = bare.open_state_dict(save(tmp_path, Tiny()), given)
    assert model.prompt("w1").token_ids == ids
    assert model.config.bos_token_id == (None if len(ids) == 1 else ids[0])


def test_a_given_tokenizer_wins(tmp_path):
    path = save(tmp_path, Tiny(), tokenizer=False)
    with pytest.raises(CircuitviewError, match=r"tokenizer.json: missing"):
        bare.open_state_dict(path, {})
    word_tokenizer(6).save(str(tmp_path / "words.json"))
    model = bare.open_state_dict(path, {"tokenizer": str(tmp_path / "words.json")})
    assert model.tokenizer.labels[4:7] == ("w4", "w5", "<6>")


def test_other_layouts_are_refused_with_what_to_do(tmp_path):
    path = tmp_path / "hf.pth"
    torch.save({"transformer.h.0.attn.c_attn.weight": torch.ones(2, 2)}, path)
    with pytest.raises(CircuitviewError) as caught:
        bare.describe(path)
    assert "transformer.h.0.attn.c_attn.weight" in str(caught.value)
    assert "Hugging Face model is opened by its folder" in str(caught.value)
    torch.save({"tok_emb.weight": torch.ones(2, 2)}, path)
    with pytest.raises(CircuitviewError, match=r"minGPT.*n_heads"):
        bare.describe(path)


def test_a_layer_that_is_missing_in_the_middle_is_named(tmp_path):
    arrays = state_dict(Tiny(n_layers=3))
    path = tmp_path / "holes.pth"
    torch.save({name: array for name, array in arrays.items() if "blocks.1" not in name}, path)
    with pytest.raises(CircuitviewError, match=r"no blocks\.1, but blocks\.2"):
        bare.describe(path)


def test_layers_of_two_sizes_are_refused(tmp_path):
    arrays = state_dict(Tiny())
    arrays["blocks.1.attn.W_Q"] = torch.ones(2, 12, 4)
    path = tmp_path / "mixed.pth"
    torch.save(arrays, path)
    with pytest.raises(CircuitviewError, match=r"blocks\.1\.attn\.W_Q has shape \[2, 12, 4\]"):
        bare.open_state_dict(path, {"tokenizer": "numbers"})


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_numbers_that_are_none_are_refused(tmp_path, bad):
    arrays = state_dict(Tiny())
    arrays["unembed.b_U"][3] = bad
    path = tmp_path / "nan.pth"
    torch.save(arrays, path)
    with pytest.raises(CircuitviewError, match=r"unembed\.b_U holds NaN or infinity"):
        bare.open_state_dict(path, {"tokenizer": "numbers"})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_precision_of_the_file_is_kept_as_its_name(tmp_path, dtype):
    path = tmp_path / "half.pth"
    torch.save(state_dict(Tiny(), dtype), path)
    model = bare.open_state_dict(path, {"tokenizer": "numbers"})
    assert model.stored == str(dtype).removeprefix("torch.")
    assert model.weights().dtype == torch.float32


def test_a_layer_of_thousands_of_digits_is_an_unknown_array(tmp_path):
    path = save(tmp_path, Tiny())
    torch.save({**state_dict(Tiny()), f"blocks.{'9' * 6000}.attn.W_Q": torch.ones(1)}, path)
    with pytest.raises(CircuitviewError, match=r"holds blocks\.9999") as caught:
        bare.open_state_dict(path, {})
    assert len(str(caught.value)) < 500
