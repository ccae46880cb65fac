"""Opening a model costs its folded weights and little else, its check included, whatever its
file's form and the precision asked."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

from tests.tiny_models import Tiny, state_dict, word_tokenizer

# 31 million numbers, 118 MiB in float32: three quarters of it in embedding and unembedding, whose
# folding is what could need a second copy.
_TINY = Tiny(n_heads=8, d_model=512, d_head=64, n_ctx=64, d_vocab=25_000, n_layers=5)
# The least that is possible is 1: the folded weights. The largest array of the file, and pieces in
# float64, may stand beside them.
_MOST = 2.0
_OPEN = """
import sys
from pathlib import Path
def memory(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
import circuitview.core.check, circuitview.core.checkpoint.legacy
from circuitview.core.checkpoint import open_model
folder, dtype = Path(sys.argv[1]), sys.argv[2]
before = memory("VmRSS")
open_model(folder, dtype=dtype).weights(dtype)
print(memory("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's count is Linux's")
@pytest.mark.parametrize("form", ["bundle", "half", "newer pickle", "older pickle"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_opening_needs_at_most_twice_the_models_size(form, dtype, tmp_path):
    arrays = state_dict(_TINY, torch.float16 if form == "half" else torch.float32)
    size = (4 if dtype == "float32" else 8) * sum(array.numel() for array in arrays.values())
    (tmp_path / "config.json").write_text(json.dumps(_TINY.config))
    word_tokenizer(_TINY.d_vocab).save(str(tmp_path / "tokenizer.json"))
    if form in ("bundle", "half"):
        plain = {name: a for name, a in arrays.items() if not name.endswith((".mask", ".IGNORE"))}
        save_file(plain, tmp_path / "model.safetensors")
    else:
        newer = form == "newer pickle"
        torch.save(arrays, tmp_path / "model_final.pth", _use_new_zipfile_serialization=newer)
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(tmp_path), dtype],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    needed = int(done.stdout)
    assert 0.9 * size < needed  # else nothing was opened
    assert needed <= _MOST * size
