"""Broken Hugging Face folders: each a line that names the file and the remedy; nothing is run."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from circuitview.core.checkpoint.bridge import open_folder, open_gguf
from circuitview.core.formats import format_of_folder
from circuitview.core.names import CircuitviewError
from tests.hf_families import FAMILIES, edit_json, save_family, save_tokenizer

WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder for each family asked for, made once; tests copy it."""
    made = {}

    def folder(family, to):
        if family not in made:
            made[family] = save_family(family, tmp_path_factory.mktemp(family))
        shutil.copytree(made[family], to, dirs_exist_ok=True)
        return to

    return folder


def refusal(folder, device="cpu"):
    """What opening says, in one line."""
    with pytest.raises(CircuitviewError) as caught:
        open_folder(folder, "broken", device)
    message = str(caught.value)
    assert "\n" not in message
    return message


def change_weights(folder, change):
    arrays = load_file(folder / WEIGHTS)
    change(arrays)
    save_file(arrays, folder / WEIGHTS, metadata={"format": "pt"})


def a_matrix(arrays):
    """The name of the output projection of layer 1, by any family's name."""
    ends = ("o_proj.weight", "out_proj.weight", "c_proj.weight", "dense.weight")
    return next(name for name in sorted(arrays) if ".1." in name and name.endswith(ends))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_array_of_another_shape_is_named(family, whole, tmp_path):
    folder, cut = whole(family, tmp_path), []

    def shorten(arrays):
        name = a_matrix(arrays)
        cut.append(name)
        arrays[name] = arrays[name][:, :-1].clone()

    change_weights(folder, shorten)
    message = refusal(folder)
    assert f"{folder / WEIGHTS}: {cut[0]} has shape" in message
    assert "belongs to another model" in message


@pytest.mark.parametrize("file", [WEIGHTS, "tokenizer.json", "config.json"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_missing_file_is_named(family, file, whole, tmp_path):
    folder = whole(family, tmp_path)
    (folder / file).unlink()
    message = refusal(folder)
    assert str(folder) in message
    assert file in message


def test_a_missing_array_is_named(whole, tmp_path):
    folder = whole("llama", tmp_path)
    gone = "model.layers.1.self_attn.v_proj.weight"
    change_weights(folder, lambda arrays: arrays.pop(gone))
    assert f"{folder / WEIGHTS}: {gone} is missing" in refusal(folder)


def test_an_unknown_array_is_named(whole, tmp_path):
    folder = whole("llama", tmp_path)
    change_weights(folder, lambda arrays: arrays.update(extra=torch.ones(2)))
    assert f"{folder / WEIGHTS}: holds extra, which LlamaForCausalLM does not have" in refusal(
        folder
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_an_array_that_is_not_finite_is_named(bad, whole, tmp_path):
    folder = whole("gpt2", tmp_path)

    def spoil(arrays):
        arrays["transformer.h.1.mlp.c_fc.weight"][3, 4] = bad

    change_weights(folder, spoil)
    message = refusal(folder)
    assert "transformer.h.1.mlp.c_fc.weight holds NaN or infinity" in message


def test_a_truncated_file_is_named(whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])
    assert f"{folder / WEIGHTS}: not a whole safetensors file" in refusal(folder)


def test_an_empty_weight_file_is_named(whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    (folder / WEIGHTS).write_bytes(b"")
    assert f"{folder / WEIGHTS}: not a whole safetensors file" in refusal(folder)


class _Code:
    """What a pickle must not be able to do."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_pickle_with_code_in_it_is_refused_and_not_run(whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    arrays = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    trap = tmp_path / "trap"
    torch.save({**arrays, "more": _Code(trap)}, folder / "pytorch_model.bin")
    message = refusal(folder)
    assert f"{folder / 'pytorch_model.bin'}: holds Python objects" in message
    assert "safetensors" in message
    assert not trap.exists()


def test_a_truncated_pickle_is_named(whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()
    content = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(content[: len(content) // 2])
    message = refusal(folder)
    assert f"{folder / 'pytorch_model.bin'}: " in message
    assert "cut off" in message


def test_a_missing_shard_is_named(tmp_path):
    folder = save_family("llama", tmp_path, max_shard_size="20KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    shards[1].unlink()
    assert f"{shards[1]}: missing" in refusal(folder)


def test_code_in_the_folder_is_not_run(whole, tmp_path):
    folder, trap = whole("llama", tmp_path), tmp_path / "trap"

    def point_to_code(fields):
        fields["auto_map"] = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
        fields["model_type"], fields["architectures"] = "own", ["OwnForCausalLM"]

    edit_json(folder / "config.json", point_to_code)
    (folder / "own.py").write_text(f"import os\nos.mkdir({str(trap)!r})\n")
    message = refusal(folder)
    assert str(folder / "config.json") in message
    assert not trap.exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised (gptq)"),
        ({"is_encoder_decoder": True}, "has an encoder"),
        (
            {"model_type": "nosuch", "architectures": ["NoSuchForCausalLM"]},
            "does not know the family nosuch",
        ),
        ({"num_hidden_layers": 0}, "n_layers is 0"),
        ({"layer_types": ["linear_attention"] * 3}, "linear attention layers"),
        ({"vocab_size": 59}, "tokenizer belongs to another model"),
        ({"hidden_size": "wide"}, "config.json: Validation error for field 'hidden_size'"),
        ({"hidden_size": 10**12}, "more than model.safetensors holds"),
        ({"num_hidden_layers": 10**9}, "more than model.safetensors holds"),
        ({"hidden_act": "nosuch"}, "config.json: no model can be made of it (KeyError: 'nosuch')"),
        ({"num_key_value_heads": 3}, "k_proj.weight has shape [16, 32], config.json asks for"),
    ],
    ids=str,
)
def test_a_config_that_can_not_be_opened_says_why(change, why, whole, tmp_path):
    folder = whole("llama", tmp_path)
    edit_json(folder / "config.json", lambda fields: fields.update(change))
    assert why in refusal(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000], ids=["empty", "{", "[]", "deep"])
def test_a_config_that_is_no_object_is_named(text, whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    (folder / "config.json").write_text(text)
    assert f"{folder / 'config.json'}: not a JSON object" in refusal(folder)
    assert format_of_folder(folder) != "hugging face"


def test_a_tokenizer_that_is_none_is_named(whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    assert f"{folder / 'tokenizer.json'}: not a tokenizer" in refusal(folder)


def test_a_link_that_leads_nowhere_is_named(whole, tmp_path):
    folder = whole("gpt2", tmp_path)
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).symlink_to(tmp_path / "gone")
    assert f"{folder / WEIGHTS}: a link that leads nowhere" in refusal(folder)


def test_other_folders_are_not_recognised(tmp_path):
    assert format_of_folder(tmp_path) != "hugging face"
    (tmp_path / "config.json").write_text(json.dumps({"n_layers": 2, "d_model": 8}))
    assert format_of_folder(tmp_path) != "hugging face"


def test_an_unknown_device_is_refused(whole, tmp_path):
    message = refusal(whole("gpt2", tmp_path), "tpu")
    assert "can't compute on tpu" in message
    assert "--device cpu" in message


@pytest.mark.parametrize("content", [b"", b"GGU", b"not a model"], ids=str)
def test_a_file_that_is_no_gguf_is_named(content, tmp_path):
    pytest.importorskip("gguf")
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    with pytest.raises(CircuitviewError, match="not a GGUF file"):
        open_gguf(file, "broken")


def test_a_truncated_gguf_file_is_named(tmp_path):
    pytest.importorskip("gguf")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + bytes([3, 0, 0, 0]) + bytes(8))
    with pytest.raises(CircuitviewError, match=r"model\.gguf") as caught:
        open_gguf(file, "broken")
    assert "\n" not in str(caught.value)


def test_without_the_package_a_gguf_file_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("circuitview.core.checkpoint.bridge.find_spec", lambda _: None)
    with pytest.raises(CircuitviewError, match=r"pip install 'circuitview\[gguf\]'"):
        open_gguf(tmp_path / "model.gguf", "any")


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    folder = save_family("gpt2", tmp_path)
    edit_json(folder / "tokenizer.json", lambda file: file["model"]["vocab"].update({"more": 70}))
    assert "has token 70" in refusal(folder)
    save_tokenizer(folder)
    open_folder(folder, "whole again")
