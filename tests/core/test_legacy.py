"""transformer_lens' folders from before version 4: what was written there runs as it was meant."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from circuitview.core.checkpoint import legacy, open_model
from circuitview.core.formats import format_of_folder
from circuitview.core.names import CircuitviewError
from tests.native_model import native_of
from tests.reference import Oracle
from tests.tiny_models import (
    BOS,
    MLP_KINDS,
    Tiny,
    build_bundle,
    build_legacy,
    random_arrays,
    record,
    state_dict,
    word_tokenizer,
)

# float32 weights read exactly and run in float64, beside another float64 run of the same numbers.
CLOSE = 1e-11
_ATTN_ONLY = [
    Tiny(n_layers=layers, n_heads=8, d_model=16, d_head=2, normalization_type=norm, seed=layers)
    for layers, norm in ((1, "LN"), (2, "LNPre"), (3, "LN"), (4, "LNPre"))
]


def logits_of_oracle(tmp_path, tiny, tokens):
    """The oracle's logits for the same numbers, rounded to float32 as the folder holds them."""
    folder = build_bundle(tmp_path / "same", tiny, np.float32)
    return Oracle(folder).run(tokens).logits


@pytest.mark.parametrize(
    "tiny", [*_ATTN_ONLY, *(replace(kind, seed=7) for kind in MLP_KINDS)], ids=str
)
def test_a_folder_runs_like_the_oracle(tiny, tmp_path):
    folder = build_legacy(tmp_path / "legacy", tiny)
    assert format_of_folder(folder) == "legacy"
    model = legacy.open_legacy(folder, "mine")
    tokens = [1, 5, 2, 2, 7]
    ours = record(model, tokens).logits.numpy()
    theirs = logits_of_oracle(tmp_path, tiny, tokens)
    assert np.abs(ours - theirs).max() <= CLOSE * max(1.0, np.abs(theirs).max())
    assert (model.name, model.stored) == ("mine", "float32")


@pytest.mark.parametrize("tiny", [_ATTN_ONLY[0], _ATTN_ONLY[1], replace(MLP_KINDS[0], seed=3)])
def test_a_folder_runs_like_transformer_lens(tiny, tmp_path):
    folder = build_legacy(tmp_path / "legacy", tiny)
    config = json.loads((folder / "config.json").read_text())
    arrays = {name: torch.from_numpy(array).float() for name, array in random_arrays(tiny).items()}
    tokens = [1, 5, 2, 2, 7]
    with torch.no_grad():
        theirs = native_of(config, arrays, torch.float64)(torch.tensor([tokens]))[0]
    ours = record(legacy.open_legacy(folder, "mine"), tokens).logits
    # Its norms without gains are computed in float32 whatever the weights hold.
    close = 2e-6 if tiny.normalization_type == "LNPre" else 1e-12
    assert (theirs - ours).abs().max() <= close * theirs.abs().max()


def test_the_config_of_the_attn_only_models_is_understood(tmp_path):
    tiny = _ATTN_ONLY[1]
    older = {
        "normalization": "LNPre",
        "normalization_type": ...,
        "positional_embedding_type": ...,
        "use_attn_scale": ...,
        "d_mlp": 2048,
        "act_fn": "solu_ln",
        "shortformer_pos": False,
        "final_rms": False,
        "tokenizer_name": "NeelNanda/gpt-neox-tokenizer-digits",
        "architecture": "neel",
        "attn_scale": ...,
    }
    config = legacy.open_legacy(build_legacy(tmp_path, tiny, **older), "x").config
    assert config.normalization_type == "LNPre"
    assert config.positional_embedding_type == "standard"
    assert config.attn_only
    assert config.score_scale == 2**0.5


def test_shortformer_under_its_old_name(tmp_path):
    tiny = Tiny(positional_embedding_type="shortformer", normalization_type=None)
    older = {"shortformer_pos": True, "positional_embedding_type": ...}
    model = legacy.open_legacy(build_legacy(tmp_path / "legacy", tiny, **older), "x")
    assert model.config.positional_embedding_type == "shortformer"
    tokens = [1, 2, 3, 4]
    theirs = logits_of_oracle(tmp_path, tiny, tokens)
    assert (
        np.abs(record(model, tokens).logits.numpy() - theirs).max() <= CLOSE * np.abs(theirs).max()
    )


def test_sizes_that_the_config_leaves_out_follow_from_the_arrays(tmp_path):
    missing = dict.fromkeys(("n_heads", "d_head", "n_ctx", "d_mlp", "attn_only"), ...)
    tiny = Tiny(act_fn="gelu", seed=2)
    folder = build_legacy(tmp_path, tiny, d_vocab=-1, **missing)
    config = legacy.open_legacy(folder, "x").config
    assert (config.n_heads, config.d_head, config.n_ctx, config.d_vocab) == (2, 3, 10, 9)
    assert (config.d_mlp, config.attn_only) == (7, False)


@pytest.mark.parametrize("file", ["weights.pt", "state.safetensors", "2L_model_final.pth"])
def test_the_only_weights_file_is_taken_whatever_its_name(tmp_path, file):
    folder = build_legacy(tmp_path, Tiny())
    (folder / "model_final.pth").unlink()
    if file.endswith("safetensors"):
        save_file(state_dict(Tiny()), folder / file)
    else:
        torch.save(state_dict(Tiny()), folder / file)
    assert format_of_folder(folder) == "legacy"
    assert legacy.open_legacy(folder, "x").config.n_layers == 2


def test_of_several_files_the_final_one_is_taken(tmp_path):
    folder = build_legacy(tmp_path, Tiny(seed=4))
    torch.save(state_dict(Tiny(seed=5)), folder / "step_100.pth")
    model = legacy.open_legacy(folder, "x")
    stored = torch.from_numpy(random_arrays(Tiny(seed=4))["unembed.b_U"]).float().double()
    shift = random_arrays(Tiny(seed=4), np.float32)
    expected = stored.numpy() + shift["ln_final.b"].astype(float) @ shift["unembed.W_U"]
    assert np.allclose(model.exact.b_U.numpy(), expected, rtol=0, atol=1e-12)
    (folder / "model_final.pth").rename(folder / "step_200.pth")
    with pytest.raises(CircuitviewError, match=r"step_100.pth, step_200.pth.*model_final.pth"):
        legacy.open_legacy(folder, "x")


def test_old_solu_layout_is_turned_and_renamed(tmp_path):
    tiny = replace(MLP_KINDS[4], seed=8)  # solu_ln
    folder = build_legacy(tmp_path / "legacy", tiny)
    old = {}
    for name, array in state_dict(tiny).items():
        turned = (".W_" in name) and not name.endswith("W_pos")
        array = array.mT if turned or name.endswith("W_pos") else array
        name = name.replace("ln_final", "norm").replace(".ln1.", ".norm1.")
        old[name.replace(".ln2.", ".norm2.").replace(".mlp.ln.", ".mlp.norm.")] = array
    torch.save(old, folder / "model_final.pth")
    tokens = [1, 5, 2]
    theirs = logits_of_oracle(tmp_path, tiny, tokens)
    ours = record(legacy.open_legacy(folder, "x"), tokens).logits.numpy()
    assert np.abs(ours - theirs).max() <= CLOSE * np.abs(theirs).max()


def test_square_positions_of_the_old_layout_are_turned_by_depth(tmp_path):
    """Eight layers: matrices as today, positions the other way round."""
    tiny = Tiny(n_layers=8, n_heads=1, d_model=10, n_ctx=10, seed=9)
    folder = build_legacy(tmp_path / "legacy", tiny)
    old = {}
    for name, array in state_dict(tiny).items():
        array = array.mT if name.endswith("W_pos") else array
        old[name.replace("ln_final", "norm").replace(".ln1.", ".norm1.")] = array
    torch.save(old, folder / "model_final.pth")
    tokens = [1, 5, 2]
    theirs = logits_of_oracle(tmp_path, tiny, tokens)
    ours = record(legacy.open_legacy(folder, "x"), tokens).logits.numpy()
    assert np.abs(ours - theirs).max() <= CLOSE * np.abs(theirs).max()


def _mingpt(tiny):
    """The arrays under minGPT's names: heads side by side, matrices the other way round."""
    plain = state_dict(tiny)
    old = {
        "tok_emb.weight": plain["embed.W_E"],
        "pos_emb": plain["pos_embed.W_pos"].unsqueeze(0),
        "ln_f.weight": plain["ln_final.w"],
        "ln_f.bias": plain["ln_final.b"],
        "head.weight": plain["unembed.W_U"].mT,
    }
    for layer in range(tiny.n_layers):
        block, attention = f"blocks.{layer}", f"blocks.{layer}.attn"
        for norm in ("ln1", "ln2"):
            old[f"{block}.{norm}.weight"] = plain[f"{block}.{norm}.w"]
            old[f"{block}.{norm}.bias"] = plain[f"{block}.{norm}.b"]
        for name, kind in (("query", "Q"), ("key", "K"), ("value", "V")):
            weight = plain[f"{attention}.W_{kind}"]  # [head, d_model, d_head]
            old[f"{attention}.{name}.weight"] = torch.cat([head.mT for head in weight])
            old[f"{attention}.{name}.bias"] = torch.cat(list(plain[f"{attention}.b_{kind}"]))
        heads = plain[f"{attention}.W_O"]  # [head, d_head, d_model]
        old[f"{attention}.proj.weight"] = torch.cat([head.mT for head in heads], 1)
        old[f"{attention}.proj.bias"] = plain[f"{attention}.b_O"]
        old[f"{attention}.mask"] = torch.ones(1, 1, tiny.n_ctx, tiny.n_ctx)
        for place, name in ((0, "in"), (2, "out")):
            old[f"{block}.mlp.{place}.weight"] = plain[f"{block}.mlp.W_{name}"].mT
            old[f"{block}.mlp.{place}.bias"] = plain[f"{block}.mlp.b_{name}"]
    return old


def test_mingpt_layout_is_split_into_heads(tmp_path):
    tiny = Tiny(n_heads=3, act_fn="gelu", seed=6)
    folder = build_legacy(tmp_path / "legacy", tiny, architecture="mingpt")
    torch.save(_mingpt(tiny), folder / "model_final.pth")
    arrays = random_arrays(tiny, np.float32)
    same = build_bundle(tmp_path / "same", tiny, np.float32)
    del arrays["unembed.b_U"]  # minGPT has none
    save_file({name: torch.from_numpy(a) for name, a in arrays.items()}, same / "model.safetensors")
    tokens = [1, 5, 2]
    theirs = Oracle(same).run(tokens).logits
    ours = record(legacy.open_legacy(folder, "x"), tokens).logits.numpy()
    assert np.abs(ours - theirs).max() <= CLOSE * np.abs(theirs).max()


class TestTokenizer:
    def test_bos_is_found_in_the_tokenizers_own_files(self, tmp_path):
        folder = build_legacy(tmp_path, Tiny())
        assert legacy.open_legacy(folder, "x").prompt("w1").token_ids == (0, 1)
        named = {"bos_token": {"content": "w3"}}
        (folder / "tokenizer_config.json").write_text(json.dumps(named))
        model = legacy.open_legacy(folder, "x")
        assert model.prompt("w1").token_ids == (3, 1)
        assert model.config.bos_token_id == 3

    def test_bos_stays_away_where_the_config_says_so(self, tmp_path):
        folder = build_legacy(tmp_path, Tiny(), default_prepend_bos=False)
        model = legacy.open_legacy(folder, "x")
        assert model.prompt("w1").token_ids == (1,)
        assert model.prompt("w1", prepend_bos=True).token_ids == (0, 1)

    def test_a_tokenizer_elsewhere_is_asked_for_by_its_name(self, tmp_path):
        folder = build_legacy(tmp_path / "model", Tiny(), tokenizer_name="some/words")
        other = tmp_path / "cache"
        other.mkdir()
        (folder / "tokenizer.json").rename(other / "tokenizer.json")
        asked = []

        def find(name):
            asked.append(name)
            return other

        assert legacy.open_legacy(folder, "x", find).prompt(f"{BOS} w2").token_ids == (0, 2)
        assert asked == ["some/words"]
        with pytest.raises(CircuitviewError, match="copy that of some/words there"):
            legacy.open_legacy(folder, "x", lambda name: None)
        with pytest.raises(CircuitviewError, match="copy that of some/words there"):
            legacy.open_legacy(folder, "x")

    def test_numbers_in_place_of_a_tokenizer(self, tmp_path):
        folder = build_legacy(tmp_path, Tiny())
        (folder / "tokenizer.json").unlink()
        model = legacy.open_legacy(folder, "x", tokenizer="numbers")
        assert model.prompt("3 0 8").token_ids == (3, 0, 8)
        assert model.tokenizer.labels[:2] == ("0", "1")
        with pytest.raises(CircuitviewError, match="'9' is not in this model's vocabulary"):
            model.prompt("9")

    def test_another_file_is_taken(self, tmp_path):
        folder = build_legacy(tmp_path / "model", Tiny())
        word_tokenizer(4).save(str(tmp_path / "small.json"))
        model = legacy.open_legacy(folder, "x", tokenizer=tmp_path / "small.json")
        assert model.tokenizer.label(5) == "<5>"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"normalization_type": "LNPre"}, ["ln1.b", "config.json"]),
        ({"n_layers": 3}, ["blocks.2", "missing"]),
        ({"n_layers": 1}, ["blocks.1", "config.json"]),
        ({"d_head": 4}, ["[2, 12, 3]", "[2, 12, 4]"]),
        ({"final_rms": True}, ["final_rms"]),
        ({"attn_only": False, "act_fn": "gelu"}, ["blocks.0.ln2", "missing"]),
        ({"positional_embedding_type": "alibi"}, ["alibi"]),
        ({"use_qk_norm": True}, ["use_qk_norm"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, changes, words):
    folder = build_legacy(tmp_path, Tiny(), **changes)
    with pytest.raises(CircuitviewError) as caught:
        legacy.open_legacy(folder, "x")
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_a_norm_that_nothing_tells_is_asked_for(tmp_path):
    tiny = Tiny(normalization_type="LNPre")
    folder = build_legacy(tmp_path, tiny, normalization_type=...)
    with pytest.raises(CircuitviewError, match=r"normalization_type.*LNPre, RMSPre or null"):
        legacy.open_legacy(folder, "x")


def test_a_file_that_changed_since_is_not_mixed_with_what_was_read(tmp_path):
    folder = build_legacy(tmp_path, Tiny(seed=1))
    model = legacy.open_legacy(folder, "x")
    model.weights("float32")
    torch.save(state_dict(Tiny(seed=2, n_ctx=30)), folder / "model_final.pth")
    with pytest.raises(CircuitviewError, match="has changed since it was opened; open it again"):
        model.weights("float64")
    assert model.weights("float32").W_pos.shape[0] == 10


@pytest.mark.parametrize("name", ["config.json", "model_final.pth"])
def test_a_folder_that_lacks_half_is_not_recognised(tmp_path, name):
    folder = build_legacy(tmp_path, Tiny())
    (folder / name).unlink()
    assert format_of_folder(folder) != "legacy"


def test_a_hugging_face_config_is_not_recognised(tmp_path):
    folder = build_legacy(tmp_path, Tiny())
    (folder / "config.json").write_text('{"model_type": "gpt2", "n_layer": 2, "n_embd": 12}')
    assert format_of_folder(folder) != "legacy"


def test_a_tokenizer_of_nobody_is_a_line(tmp_path):
    folder = build_legacy(tmp_path, Tiny())
    with pytest.raises(CircuitviewError, match=r"nobody-of-that-name/y: .*tokenizer"):
        open_model(folder, tokenizer="~nobody-of-that-name/y")
