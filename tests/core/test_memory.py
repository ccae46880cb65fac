"""How much memory a model needs, read from headers."""

import struct

import numpy as np
import pytest
import torch

from circuitview.core import memory
from circuitview.core.memory import Need, TooLargeError, gigabytes, memory_need
from circuitview.core.names import CircuitviewError
from tests.broken_checkpoints import truncated_gguf
from tests.hf_families import save_family
from tests.tiny_models import Tiny, build_bundle, build_legacy, random_arrays

TINY = Tiny()
COUNT = sum(array.size for array in random_arrays(TINY).values())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bundle_is_counted_in_float32_whatever_it_stores(tmp_path, dtype):
    folder = build_bundle(tmp_path / "bundle", TINY, dtype)
    assert memory_need(folder) == Need("bundle", 4 * COUNT)
    assert memory_need(folder / "config.json") == Need("bundle", 4 * COUNT)


def test_parts_are_added_up(tmp_path):
    whole = memory_need(save_family("llama", tmp_path / "a"))
    parts = memory_need(save_family("llama", tmp_path / "b", max_shard_size="20kB"))
    assert len(list((tmp_path / "b").glob("*.safetensors"))) > 1
    assert parts.size == whole.size


def test_need_follows_the_precision_that_is_asked(tmp_path):
    folder = build_bundle(tmp_path / "bundle", TINY)
    need = memory_need(folder, "float64")
    assert need == Need("bundle", 8 * COUNT, "float64")
    llama = save_family("llama", tmp_path / "llama")
    assert memory_need(llama, "float64") == memory_need(llama)  # it runs in float32 only


def test_float64_is_refused_by_its_own_size(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 12 * COUNT)
    folder = build_bundle(tmp_path / "bundle", TINY)
    memory_need(folder).require_free()
    with pytest.raises(TooLargeError, match="of memory in float64"):
        memory_need(folder, "float64").require_free()


def test_pickle_counts_by_its_size(tmp_path):
    folder = build_legacy(tmp_path / "legacy", TINY)
    size = (folder / "model_final.pth").stat().st_size
    assert memory_need(folder).size == size
    assert memory_need(folder / "model_final.pth").size == size


def test_pickle_in_half_precision_counts_twice(tmp_path):
    folder = build_legacy(tmp_path / "legacy", TINY, dtype="torch.float16")
    assert memory_need(folder).size == 2 * (folder / "model_final.pth").stat().st_size


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def test_gguf_header_is_read_past_its_fields(tmp_path):
    fields = [
        string("general.architecture") + struct.pack("<I", 8) + string("llama"),
        string("llama.block_count") + struct.pack("<II", 4, 30),
        string("tokens") + struct.pack("<IIQ", 9, 8, 2) + string("a") + string("bc"),
        string("scores") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
        string("flag") + struct.pack("<IB", 7, 1),
    ]
    arrays = [
        string("token_embd.weight") + struct.pack("<IQQIQ", 2, 12, 9, 2, 0),
        string("norm.weight") + struct.pack("<IQIQ", 1, 12, 0, 64),
    ]
    path = tmp_path / "model.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), len(fields))
    path.write_bytes(head + b"".join(fields) + b"".join(arrays))
    assert memory_need(path) == Need("model.gguf", 4 * (12 * 9 + 12), packed=True)
    assert memory_need(tmp_path).size == 4 * (12 * 9 + 12)


def test_broken_header_tells_nothing_and_is_no_error_here(tmp_path):
    assert memory_need(truncated_gguf(tmp_path)).size is None
    folder = build_bundle(tmp_path / "bundle", TINY)
    (folder / "model.safetensors").write_bytes(b"\xff" * 40)
    assert memory_need(folder).size is None
    Need("unknown", None).require_free()  # opening it says what is wrong


def test_what_does_not_fit_is_refused_with_both_sizes(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 3 * 10**9)
    Need("fits", 15 * 10**8).require_free()
    with pytest.raises(TooLargeError) as caught:
        Need("big", 16 * 10**8).require_free()
    assert str(caught.value) == (
        "big takes 1.60 GB of memory in float32, 3.20 GB while it opens, and 3.00 GB are free; "
        "close other programs first"
    )


def test_free_memory_is_what_the_system_has():
    assert 10**8 < memory.free_memory() < 10**14


def test_nowhere_is_an_error():
    with pytest.raises(CircuitviewError, match="no bundled model"):
        memory_need("no-such-model")


@pytest.mark.parametrize(
    ("size", "expected"),
    [(538_060_032, "0.54 GB"), (43_000_000, "43 MB"), (3_100_000, "3.1 MB"), (14 * 10**9, "14 GB")],
)
def test_sizes_are_written_for_people(size, expected):
    assert gigabytes(size) == expected


def test_opening_takes_no_more_than_is_said(tmp_path):
    """The arrays that are open afterwards are those that were counted."""
    from circuitview.core.checkpoint import open_model

    folder = save_family("llama", tmp_path / "llama")
    parameters = dict(open_model(folder).bridge.original_model.named_parameters())
    assert memory_need(folder).size == 4 * sum(map(torch.numel, parameters.values()))
