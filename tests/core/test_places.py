"""Where a named model is, and which format is opened there."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from circuitview.core.checkpoint import needs_answers, open_model
from circuitview.core.memory import memory_need
from circuitview.core.names import CircuitviewError
from circuitview.core.places import cached_folder, find_place, folder_name, hub_cache
from tests.hf_families import save_family
from tests.tiny_models import Tiny, build_bundle, build_legacy, state_dict, word_tokenizer

TINY = Tiny()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hugging Face cache with one model in it."""
    cache = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = cache / "models--lab--llama"
    save_family("llama", home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    return home


def test_bundled_name_wins_over_a_folder(tmp_path, monkeypatch):
    build_bundle(tmp_path / "attn-only-2l", TINY)
    monkeypatch.chdir(tmp_path)
    assert find_place("attn-only-2l").kind == "bundled"
    assert find_place("./attn-only-2l").kind == "folder"


def test_path_wins_over_a_cached_name(hub, tmp_path, monkeypatch):
    build_bundle(tmp_path / "lab" / "llama", TINY)
    assert find_place("lab/llama").kind == "cached"
    monkeypatch.chdir(tmp_path)
    assert find_place("lab/llama").kind == "folder"


def test_cached_name_opens_under_its_name(hub):
    model = open_model("lab/llama")
    assert (model.name, model.config.n_layers) == ("lab/llama", 3)


def test_folder_in_the_cache_has_the_models_name(hub):
    snapshot = next((hub / "snapshots").iterdir())
    assert folder_name(snapshot) == "lab/llama"
    assert open_model(snapshot).name == "lab/llama"


def test_version_that_counts_is_the_one_that_opens(hub):
    """Another version that came later, as when somebody asked for it by its number."""
    first = next((hub / "snapshots").iterdir())
    expected = memory_need("lab/llama").size
    other = hub / "snapshots" / ("f" * 40)
    shutil.copytree(first, other)
    save_file({"lm_head.weight": torch.zeros(3)}, other / "model.safetensors")
    assert cached_folder("lab/llama") == first
    assert memory_need("lab/llama").size == expected
    assert open_model("lab/llama").folder == first


def test_cached_model_without_files_is_refused(hub):
    for path in (hub / "snapshots").glob("*/config.json"):
        path.unlink()
    with pytest.raises(CircuitviewError, match="no whole version of it"):
        open_model("lab/llama")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HF_HUB_CACHE": "/a/b"}, "/a/b"),
        ({"HUGGINGFACE_HUB_CACHE": "/c"}, "/c"),
        ({"HF_HOME": "/d"}, "/d/hub"),
        ({"XDG_CACHE_HOME": "/e"}, "/e/huggingface/hub"),
    ],
)
def test_cache_is_where_hugging_face_keeps_it(monkeypatch, variables, expected):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert hub_cache() == Path(expected)


def test_unknown_name_says_where_it_was_looked_for(hub):
    with pytest.raises(CircuitviewError) as caught:
        open_model("lab/other")
    said = str(caught.value)
    assert "no folder or file 'lab/other'" in said
    assert str(hub.parent) in said
    assert "attn-only-2l" in said


def test_loop_of_links_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CircuitviewError, match="leads nowhere"):
        find_place(tmp_path / "loop")


def test_each_format_is_told_from_the_others(tmp_path):
    assert type(open_model(build_bundle(tmp_path / "bundle", TINY))).__name__ == "NativeModel"
    assert open_model(build_legacy(tmp_path / "legacy", TINY)).name == "legacy"
    llama = save_family("llama", tmp_path / "llama")
    assert type(open_model(llama)).__name__ == "BridgeModel"
    assert open_model(llama / "config.json").name == "llama"


def test_named_pickle_of_several_is_the_one_that_opens(tmp_path):
    folder = build_legacy(tmp_path / "legacy", TINY, file="step_1.pth")
    other = {name: 2 * array for name, array in state_dict(TINY).items()}
    torch.save(other, folder / "step_2.pth")
    with pytest.raises(CircuitviewError, match=r"step_1\.pth, step_2\.pth"):
        open_model(folder)
    first, second = (open_model(folder / f"step_{step}.pth") for step in (1, 2))
    torch.testing.assert_close(2 * first.exact.W_E, second.exact.W_E)


def test_bare_weights_open_with_answers(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_file(state_dict(TINY), path)
    assert needs_answers(path)
    assert open_model(path, tokenizer="numbers").tokenizer.label(3) == "3"
    word_tokenizer(TINY.d_vocab).save(str(tmp_path / "words.json"))
    model = open_model(path, given={"eps": "0.5"}, tokenizer=tmp_path / "words.json")
    assert model.config.eps == 0.5
    assert model.tokenizer.label(3) == "w3"


def test_legacy_folder_takes_a_tokenizer(tmp_path):
    folder = build_legacy(tmp_path / "legacy", TINY)
    shutil.move(folder / "tokenizer.json", tmp_path / "elsewhere.json")
    with pytest.raises(CircuitviewError, match=r"tokenizer\.json: missing"):
        open_model(folder)
    assert open_model(folder, tokenizer=tmp_path / "elsewhere.json").tokenizer.label(3) == "w3"


@pytest.mark.parametrize("given", [{"given": {"eps": "1"}}, {"tokenizer": "numbers"}])
def test_whole_model_takes_no_answers(tmp_path, given):
    folder = build_bundle(tmp_path / "bundle", TINY)
    assert not needs_answers(folder)
    with pytest.raises(CircuitviewError, match="leave the given"):
        open_model(folder, **given)


def test_device_that_is_not_there_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CircuitviewError, match="can't compute on cuda: ") as caught:
        open_model("cat-on-the-mat", device="cuda")
    assert "use the CPU" in str(caught.value)
    with pytest.raises(CircuitviewError, match="no such device"):
        open_model("cat-on-the-mat", device="tpu")


def test_what_becomes_unreadable_meanwhile_is_a_line(tmp_path, monkeypatch):
    folder = build_bundle(tmp_path / "bundle", TINY)

    def fail(*_):
        raise PermissionError(13, "Permission denied", "model.safetensors")

    monkeypatch.setattr("circuitview.core.checkpoint.bundle.open_bundle", fail)
    with pytest.raises(CircuitviewError, match=r"model\.safetensors: Permission denied; check"):
        open_model(folder)
    monkeypatch.setattr(Path, "exists", fail)
    with pytest.raises(CircuitviewError, match=r"can't be read \(Permission denied\)"):
        find_place(folder)


def test_model_that_does_not_fit_while_it_is_read_is_a_line(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("circuitview.core.checkpoint.bundle.open_bundle", fail)
    with pytest.raises(CircuitviewError, match="does not fit into memory; close other programs"):
        open_model(build_bundle(tmp_path / "bundle", TINY))


def test_cached_folder_of_transformer_lens_opens_by_its_name(hub, tmp_path):
    folder = build_legacy(tmp_path / "legacy", Tiny())
    versions = hub.parent / "models--lab--legacy"
    (versions / "refs").mkdir(parents=True)
    (versions / "refs" / "main").write_text("c1")
    shutil.copytree(folder, versions / "snapshots" / "c1")
    opened = open_model("lab/legacy", tokenizer="numbers")
    assert opened.name == "lab/legacy"
    assert opened.tokenizer.encode("1 2", prepend_bos=False) == (1, 2)
    (versions / "refs" / "main").write_bytes(b"\xff\xfe")
    with pytest.raises(CircuitviewError, match="has no whole version of it"):
        open_model("lab/legacy")
