"""Which format a folder is in: one function decides, for who opens a model and who counts it."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from circuitview.core.checkpoint import open_model
from circuitview.core.formats import Found, find_format, program_of
from circuitview.core.memory import memory_need
from circuitview.core.names import CircuitviewError
from circuitview.core.places import find_place
from circuitview.core.weight_files import array_headers, weights_of
from tests.hf_families import save_family
from tests.tiny_models import Tiny, build_bundle, build_legacy

TINY = Tiny()
# Fields that both programs have.
_SIZES = {"n_layers": 2, "d_model": 8}


@pytest.mark.parametrize(
    ("fields", "program"),
    [
        ({**_SIZES, "model_type": "mpt"}, "hugging face"),
        ({**_SIZES, "architectures": ["DbrxForCausalLM"]}, "hugging face"),
        ({"n_layer": 2, "n_embd": 8, "model_type": "gpt2"}, "hugging face"),
        ({"model_type": "xlnet", "d_head": 4, "d_model": 8}, "hugging face"),
        (_SIZES, "transformer_lens"),
        ({**_SIZES, "d_head": 4, "architectures": ["x"]}, "transformer_lens"),
        ({**_SIZES, "original_architecture": "neel", "model_type": "x"}, "transformer_lens"),
        ({"d_model": 8}, None),
        (None, None),
    ],
)
def test_config_tells_whose_it_is(fields, program):
    assert program_of(fields) == program


def test_mpt_is_opened_as_hugging_face_s(tmp_path):
    folder = save_family("mpt", tmp_path / "mpt")
    found = Found("hugging face", folder)
    for named in (folder, folder / "config.json", folder / "model.safetensors"):
        assert find_format(find_place(named)) == found


def test_who_counts_means_the_files_that_are_opened(tmp_path):
    """As some are saved: in parts, and once more as their authors' own program has it."""
    folder = save_family("llama", tmp_path / "llama", max_shard_size="20kB")
    parts = sorted(folder.glob("model-*.safetensors"))
    expected = memory_need(folder).size
    assert expected == 4 * sum(
        array.numel() for part in parts for array in load_file(part).values()
    )
    whole = {name: array for part in parts for name, array in load_file(part).items()}
    save_file(whole, folder / "consolidated.safetensors")
    assert weights_of(find_format(find_place(folder))) == tuple(parts)
    assert memory_need(folder).size == expected
    open_model(folder)


def test_each_format_s_weights_are_named(tmp_path):
    bundle = build_bundle(tmp_path / "bundle", TINY)
    assert weights_of(Found("bundle", bundle)) == (bundle / "model.safetensors",)
    legacy = build_legacy(tmp_path / "legacy", TINY)
    assert weights_of(Found("legacy", legacy)) == (legacy / "model_final.pth",)
    other = legacy / "other.pth"
    assert weights_of(Found("legacy", legacy, other)) == (other,)
    assert weights_of(Found("gguf", tmp_path / "x.gguf")) == (tmp_path / "x.gguf",)


def test_headers_tell_precision_and_shape_without_reading(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.zeros(4)}, path)
    assert array_headers(path) == {"a": ("BF16", (2, 3)), "b": ("F32", (4,))}
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CircuitviewError, match="not a whole safetensors file"):
        array_headers(path)
