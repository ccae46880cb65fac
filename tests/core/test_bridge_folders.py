"""What Hugging Face folders may look like: parts, precisions, pickles, tokenizers, the cache."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from circuitview.core.checkpoint.bridge import open_folder
from circuitview.core.checkpoint.bridge_model import BridgeModel
from circuitview.core.names import CircuitviewError
from circuitview.core.places import cached_folder
from circuitview.core.prompt import Prompt
from tests.hf_families import TOKENS, build_model, edit_json, save_family, save_tokenizer


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    import socket

    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def logits_of(model):
    return model.run(Prompt(model.name, TOKENS, tuple(map(str, TOKENS)))).logits


def test_a_model_in_parts_is_the_model_in_one(tmp_path):
    one = open_folder(save_family("llama", tmp_path / "one"), "one")
    folder = save_family("llama", tmp_path / "parts", max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert torch.equal(logits_of(open_folder(folder, "parts")), logits_of(one))


def test_a_pickle_of_tensors_opens(tmp_path):
    folder = save_family("gpt2", tmp_path)
    expected = logits_of(open_folder(folder, "safetensors"))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert torch.equal(logits_of(open_folder(folder, "pickle")), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("family", ["gpt2", "gemma2"])
def test_half_precision_is_widened_before_anything_is_folded(family, dtype, tmp_path):
    folder = save_family(family, tmp_path)
    wide = {
        name: array.to(getattr(torch, dtype))
        for name, array in load_file(folder / "model.safetensors").items()
    }
    save_file(wide, folder / "model.safetensors", metadata={"format": "pt"})
    model = open_folder(folder, dtype)
    assert model.stored == dtype
    assert model.weights().dtype == torch.float32
    rounded = {name: array.float() for name, array in wide.items()}
    save_file(rounded, folder / "model.safetensors", metadata={"format": "pt"})
    again = open_folder(folder, "float32")
    assert again.stored == "float32"
    assert torch.equal(logits_of(model), logits_of(again))
    assert torch.equal(model.weights().W_V, again.weights().W_V)


def test_large_matrices_stay_where_they_are(tmp_path):
    for family in ("gpt2", "llama", "phi3"):
        model = open_folder(save_family(family, tmp_path / family), family)
        own = {
            parameter.untyped_storage().data_ptr()
            for parameter in model.bridge.original_model.parameters()
        }
        weights = model.weights()
        views = [weights.W_U]
        for mlp in weights.mlps:
            views += [mlp.W_in, mlp.W_out, *([] if mlp.W_gate is None else [mlp.W_gate])]
        assert {view.untyped_storage().data_ptr() for view in views} <= own, family


def test_tied_embeddings_open(tmp_path):
    fields = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48}
    fields |= {"num_hidden_layers": 2, "num_attention_heads": 4, "tie_word_embeddings": True}
    build_model("LlamaForCausalLM", "LlamaConfig", fields).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    model = open_folder(tmp_path, "tied")
    embed = model.bridge.embed.original_component.weight
    assert model.weights().W_U.data_ptr() == embed.data_ptr()


def test_buffers_of_older_versions_are_passed_over(tmp_path):
    folder = save_family("gpt-neox", tmp_path)
    arrays = load_file(folder / "model.safetensors")
    arrays["gpt_neox.layers.0.attention.bias"] = torch.ones(1, 1, 64, 64)
    arrays["gpt_neox.layers.0.attention.rotary_emb.inv_freq"] = torch.ones(2)
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    open_folder(folder, "older")


def bos_of(folder, family, adds_bos, **settings):
    save_family(family, folder)
    save_tokenizer(folder, adds_bos, **settings)
    tokenizer = open_folder(folder, family).tokenizer
    return tokenizer.encode(" a"), tokenizer.encode(" a", True), tokenizer.encode(" a", False)


def test_bos_stands_where_the_tokenizer_puts_it(tmp_path):
    a = 3
    for place, adds in enumerate((True, False)):
        by_default, asked, left_off = bos_of(tmp_path / f"qwen2-{place}", "qwen2", adds)
        assert by_default == ((0, a) if adds else (a,))
        assert asked == (0, a)
        assert left_off == (a,)


def test_bos_stands_where_transformer_lens_puts_it(tmp_path):
    assert bos_of(tmp_path / "llama", "llama", adds_bos=False)[0] == (0, 3)
    assert bos_of(tmp_path / "gpt2", "gpt2", adds_bos=False)[0] == (0, 3)
    assert bos_of(tmp_path / "neox", "gpt-neox", adds_bos=False)[0] == (3,)


def test_a_setting_asks_for_bos(tmp_path):
    assert bos_of(tmp_path, "qwen2", adds_bos=False, add_bos_token=True)[0] == (0, 3)


def test_bos_without_a_name_is_the_model_s_own(tmp_path):
    save_family("llama", tmp_path)
    edit_json(tmp_path / "config.json", lambda fields: fields.update(bos_token_id=2))
    save_tokenizer(tmp_path, bos_token=None)
    tokenizer = open_folder(tmp_path, "llama").tokenizer
    assert tokenizer.bos_token_id == 2
    assert tokenizer.label(2) == "BOS"


def test_a_tokenizer_of_older_files_opens(tmp_path):
    folder = save_family("gpt2", tmp_path)
    expected = open_folder(folder, "new").tokenizer.encode(" a b.")
    use_older_tokenizer(folder)
    assert open_folder(folder, "old").tokenizer.encode(" a b.") == expected


def use_older_tokenizer(folder):
    file = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(file["model"]["vocab"]))
    merges = "\n".join(" ".join(pair) for pair in file["model"]["merges"])
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges + "\n")
    edit_json(
        folder / "tokenizer_config.json",
        lambda settings: settings.update(tokenizer_class="GPT2Tokenizer", unk_token="<s>"),
    )


def test_every_token_of_a_padded_vocabulary_has_a_label_of_its_own(tmp_path):
    fields = {"vocab_size": 72, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    build_model("GPT2LMHeadModel", "GPT2Config", fields).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    labels = open_folder(tmp_path, "padded").tokenizer.labels
    assert len(set(labels)) == len(labels) == 72


def test_the_target_of_a_sentencepiece_model_is_what_was_typed(tmp_path):
    from tokenizers import Tokenizer, decoders, models, normalizers

    folder = save_family("llama", tmp_path)
    words = ["<s>", "</s>", "<unk>", "▁", "t", "e", "a", "te", "tea", "▁tea", "n", "▁n"]
    vocab = {word: place for place, word in enumerate(words)}
    merges = [("t", "e"), ("te", "a"), ("▁", "tea"), ("▁", "n")]
    inner = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>"))
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    inner.save(str(folder / "tokenizer.json"))
    tokenizer = open_folder(folder, "llama").tokenizer
    assert tokenizer.encode("tea n", prepend_bos=False) == (9, 11)
    assert tokenizer.token_id("tea") == 8
    assert tokenizer.token_id(" tea") == 9
    assert tokenizer.token_id("␣tea") == 9


@pytest.mark.filterwarnings("ignore:MPS backend may produce")
def test_mps_must_first_agree_with_the_cpu(tmp_path, monkeypatch):
    folder, off = save_family("gpt2", tmp_path), 0.5

    def logits(self, tokens, hooks=()):
        return torch.ones(len(tokens), 60) + (off if self.device == "mps" else 0.0)

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, *_, **__: self)
    monkeypatch.setattr(BridgeModel, "logits", logits)
    with pytest.raises(CircuitviewError, match=r"logits on mps differ from the CPU's by 0\.5"):
        open_folder(folder, "gpt2", "mps")
    off = 1e-4
    assert open_folder(folder, "gpt2", "mps").device == "mps"


def cache(home, name, folder):
    """A Hugging Face cache in `home` that has the model in `folder` as `name`."""
    repo = home / "hub" / ("models--" + name.replace("/", "--"))
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("0" * 40)
    shutil.copytree(folder, repo / "snapshots" / ("0" * 40))
    return repo / "snapshots" / ("0" * 40)


def test_a_cached_name_is_found_where_hf_home_says(tmp_path):
    place = cache(tmp_path / "home", "some/model", save_family("gpt2", tmp_path / "model"))
    # In a process of its own: the variable is read once.
    code = (
        "from circuitview.core.checkpoint.bridge import open_folder\n"
        "from circuitview.core.places import cached_folder\n"
        "folder = cached_folder('some/model')\n"
        "print(folder)\n"
        "print(open_folder(folder, 'some/model').config.n_layers)\n"
        "print(cached_folder('other/model'), cached_folder('gpt2'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HF_HOME": str(tmp_path / "home"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(place), "3", "None None"]


@pytest.mark.parametrize("name", ["", "a b", "../up", "a/b/c", "/root", "--x", "a/..", "ü/ö"])
def test_what_is_no_name_is_not_looked_up(name):
    assert cached_folder(name) is None


def test_a_changed_transformer_lens_is_a_line(tmp_path, monkeypatch):
    folder = save_family("gpt2", tmp_path)
    name = "transformer_lens.model_bridge.sources._bridge_builder"
    monkeypatch.setitem(sys.modules, name, None)  # as if it were elsewhere
    with pytest.raises(CircuitviewError, match="is not a version that this program knows") as said:
        open_folder(folder, "gpt2")
    assert "\n" not in str(said.value)


_AFTER_A_NOTEBOOK = """
import socket, sys
from pathlib import Path
import huggingface_hub, transformers
from huggingface_hub import constants
assert not constants.HF_HUB_OFFLINE  # read when it was imported
def refuse(*_, **__):
    print("the network was asked")
    raise OSError
socket.socket.connect = socket.getaddrinfo = refuse
from circuitview.core.checkpoint import open_model
for folder in sys.argv[1:]:
    model = open_model(Path(folder))
    model.run(model.prompt(" a b"))
assert not constants.HF_HUB_OFFLINE
print("done")
"""


def test_nothing_is_asked_of_the_network_after_a_notebook_loaded_its_client(tmp_path):
    folders = [save_family(family, tmp_path / family) for family in ("gpt2", "mistral", "gemma2")]
    pickled = save_family("llama", tmp_path / "pickled")
    torch.save(load_file(pickled / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    older = save_family("gpt2", tmp_path / "older")
    use_older_tokenizer(older)
    environment = {name: value for name, value in os.environ.items() if "OFFLINE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", _AFTER_A_NOTEBOOK, *map(str, (*folders, pickled, older))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_importing_the_bridge_loads_neither_program():
    code = (
        "import sys\n"
        "import circuitview.core.checkpoint.bridge\n"
        "loaded = {'transformers', 'transformer_lens', 'huggingface_hub', 'gguf'}\n"
        "print(sorted(loaded & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
