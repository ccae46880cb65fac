"""Model folders made to mislead, fill the memory or bring the program down: each a line, or opens
as what it is."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from circuitview.core.checkpoint import open_model
from circuitview.core.names import CircuitviewError
from tests.gguf_file import save_gguf
from tests.hf_families import build_model, edit_json, save_family, save_tokenizer

WEIGHTS, BIN, CONFIG = "model.safetensors", "pytorch_model.bin", "config.json"


def refusal(path, **options):
    """What opening says, in one line of bearable length."""
    with pytest.raises(CircuitviewError) as caught:
        open_model(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    return message


def changed(folder, family="llama", **fields):
    save_family(family, folder)
    edit_json(folder / CONFIG, lambda config: config.update(fields))
    return folder


def as_dtype(folder, dtype):
    """The arrays of a folder with its matrices in another precision."""
    arrays = load_file(folder / WEIGHTS)
    return {name: array.to(dtype) if array.ndim == 2 else array for name, array in arrays.items()}


# --- GGUF files -------------------------------------------------------------------------------


def test_a_gguf_file_reads_prompts_with_its_own_tokenizer_whatever_lies_beside(tmp_path):
    file = save_gguf(tmp_path / "model.gguf")
    assert open_model(file).tokenizer.encode("a b", prepend_bos=False) == (29, 30)
    save_tokenizer(tmp_path)  # of another model: " b" would be token 4
    opened = open_model(file)
    assert opened.tokenizer.encode("a b", prepend_bos=False) == (29, 30)
    assert opened.tokenizer.where == str(file)
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(own))
    for name in ("tokenizer.json", CONFIG, "special_tokens_map.json", "generation_config.json"):
        (tmp_path / name).write_text("{")
    assert open_model(file).tokenizer.encode("a b", prepend_bos=False) == (29, 30)


def test_a_gguf_file_in_capitals_opens(tmp_path):
    file = save_gguf(tmp_path / "MODEL.GGUF")
    assert open_model(file).config.n_layers == 2
    assert open_model(tmp_path).config.n_layers == 2


# --- precisions -------------------------------------------------------------------------------


def test_a_folder_in_float64_opens(tmp_path):
    folder = save_family("llama", tmp_path)
    save_file(as_dtype(folder, torch.float64), folder / WEIGHTS, metadata={"format": "pt"})
    opened = open_model(folder)
    assert opened.stored == "float64"
    assert opened.weights().dtype == torch.float32


@pytest.mark.parametrize("file", [WEIGHTS, BIN])
@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn], ids=str
)
def test_matrices_of_no_floating_point_kind_are_refused_by_name(dtype, file, tmp_path):
    folder = save_family("llama", tmp_path)
    arrays = as_dtype(folder, dtype)
    (folder / WEIGHTS).unlink()
    if file == BIN:
        torch.save(arrays, folder / BIN)
    else:
        save_file(arrays, folder / WEIGHTS, metadata={"format": "pt"})
    message = refusal(folder)
    assert f"{folder / file}: " in message
    assert "weight is stored as" in message
    assert "unquantised" in message


def test_masks_that_older_versions_saved_as_bytes_are_passed_over(tmp_path):
    folder = save_family("gpt2", tmp_path)
    arrays = load_file(folder / WEIGHTS)
    for layer in range(3):
        arrays[f"transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, 64, 64, dtype=torch.uint8)
    save_file(arrays, folder / WEIGHTS, metadata={"format": "pt"})
    assert open_model(folder).stored == "float32"


# --- numbers in a config ----------------------------------------------------------------------

_TOO_LARGE = [
    ("llama", {"intermediate_size": 5 * 10**6}, "gate_proj.weight has shape [48, 32]"),
    ("llama", {"head_dim": 10**6}, "q_proj.weight has shape [32, 32]"),
    ("gpt2", {"n_inner": 10**7}, "c_fc.weight has shape [32, 128]"),
    ("gpt2", {"n_positions": 10**7}, "wpe.weight has shape [64, 32]"),
    ("opt", {"ffn_dim": 10**7}, "fc1.weight has shape [48, 32]"),
    ("opt", {"max_position_embeddings": 2 * 10**7}, "embed_positions.weight has shape [66, 32]"),
    ("mixtral", {"num_local_experts": 10**5}, "of shape [100000, 96, 32], more than is left"),
    ("gpt-neo", {"max_position_embeddings": 60_000}, "max_position_embeddings is 60000, for"),
    ("gpt-j", {"n_positions": 10**8}, "n_positions is 100000000, for"),
]
_MEASURED = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from circuitview.core.checkpoint import open_model
from circuitview.core.names import CircuitviewError

def now(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) * 1024

for folder in json.loads(sys.argv[1]):
    open_model(folder)  # every import that a family needs
for folder in json.loads(sys.argv[2]):
    before = now("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    try:
        open_model(folder)
        said = "opened"
    except CircuitviewError as error:
        said = str(error)
    print(json.dumps([now("VmHWM") - before, said]))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads the peak from /proc")
def test_one_wrong_number_in_a_config_never_fills_the_memory(tmp_path):
    whole = {family: save_family(family, tmp_path / family) for family, _, _ in _TOO_LARGE}
    broken = []
    for place, (family, fields, _) in enumerate(_TOO_LARGE):
        folder = shutil.copytree(whole[family], tmp_path / str(place))
        edit_json(folder / CONFIG, lambda config, fields=fields: config.update(fields))
        broken.append(folder)
    sound = json.dumps([str(folder) for folder in whole.values()])
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, sound, json.dumps([str(folder) for folder in broken])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(_TOO_LARGE)
    for (peak, said), folder, (family, fields, words) in zip(
        lines, broken, _TOO_LARGE, strict=True
    ):
        assert words in said, (family, fields)
        assert str(folder) in said
        # The models themselves have less than 1 MB; one array that is asked for has 0.5 to 60 GB.
        assert peak < 100e6, (family, fields)


@pytest.mark.parametrize(
    ("family", "fields", "words"),
    [
        ("cohere", {"logit_scale": 0}, "logit_scale is 0; need a number other than 0"),
        ("cohere", {"logit_scale": "x"}, "logit_scale"),
        ("granite", {"logits_scaling": 0}, "logits_scaling is 0; need a number other than 0"),
        ("granite", {"logits_scaling": "x"}, "logits_scaling"),
        ("llama", {"rms_norm_eps": 10**29}, "rms_norm_eps is 1000"),
        ("llama", {"rms_norm_eps": -1}, "rms_norm_eps is -1"),
        ("granite", {"residual_multiplier": 10**29}, "residual_multiplier is 1000"),
        ("llama", {"sliding_window": 10**29}, "sliding_window is 1000"),
    ],
    ids=str,
)
def test_a_number_that_no_model_has_is_named(family, fields, words, tmp_path):
    message = refusal(changed(tmp_path, family, **fields))
    assert f"{tmp_path / CONFIG}: " in message
    assert words in message


def test_an_mlp_whose_nonlinearity_has_weights_stays_a_source(tmp_path):
    folder = changed(tmp_path, hidden_act="prelu")
    arrays = load_file(folder / WEIGHTS)
    for layer in range(3):
        arrays[f"model.layers.{layer}.mlp.act_fn.weight"] = torch.tensor([0.25])
    save_file(arrays, folder / WEIGHTS, metadata={"format": "pt"})
    assert open_model(folder).weights().mlps == ()


def test_an_architecture_that_transformer_lens_lacks_is_named(tmp_path):
    fields = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48}
    fields |= {"num_hidden_layers": 2, "num_attention_heads": 4}
    build_model("BioGptForCausalLM", "BioGptConfig", fields).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    assert "transformer_lens does not know BioGptForCausalLM; choose" in refusal(tmp_path)


# --- files of a folder ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [3, ["model.safetensors"], "../outside.safetensors", "/outside.safetensors", ""]
)
def test_an_index_may_name_files_of_its_own_folder_only(name, tmp_path):
    folder = save_family("llama", tmp_path / "model", max_shard_size="20KB")
    shutil.copy(next(folder.glob("model-*.safetensors")), tmp_path / "outside.safetensors")
    index = folder / "model.safetensors.index.json"
    edit_json(
        index, lambda fields: fields["weight_map"].update({"model.embed_tokens.weight": name})
    )
    message = refusal(folder)
    assert f"{index}: weight_map names" in message
    assert "no file of this folder" in message


@pytest.mark.parametrize(("said", "ids"), [(True, (0, 3)), (False, (3,)), (None, (0, 3))])
def test_what_a_folder_says_of_bos_is_done(said, ids, tmp_path):
    folder = save_family("llama", tmp_path)
    save_tokenizer(folder, **({} if said is None else {"add_bos_token": said}))
    assert open_model(folder).tokenizer.encode(" a") == ids
