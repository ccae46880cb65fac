"""Opening a model needs at most twice its float32 size, measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.hf_families import FAMILIES, build_model, save_tokenizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/clear_refs").exists(), reason="reads the peak from /proc"
    ),
]
MOST = 2.0
# About 60 MB in float32: what opening itself allocates beside the weights does not count then.
_WIDE = {"vocab_size": 8000, "num_hidden_layers": 4}
_SHAPES = {
    "gpt2": {"n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 8000},
    "llama": {**_WIDE, "hidden_size": 512, "intermediate_size": 1408, "num_attention_heads": 8},
    "gpt-neox": {**_WIDE, "hidden_size": 512, "intermediate_size": 2048},
}
_CODE = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from circuitview.core.checkpoint.bridge import open_folder

def now(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) * 1024

open_folder(Path(sys.argv[1]), "small")  # every import that the family needs
before = now("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
open_folder(Path(sys.argv[2]), "large")
print(json.dumps(now("VmHWM") - before))
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", _SHAPES)
def test_opening_needs_at_most_twice_the_model(family, dtype, tmp_path):
    architecture, config, fields = FAMILIES[family]
    sizes = {"small": fields, "large": {**fields, **_SHAPES[family]}}
    size = 0
    for name, wanted in sizes.items():
        model = build_model(architecture, config, wanted)
        size = sum(parameter.numel() for parameter in model.parameters()) * 4
        model.to(getattr(torch, dtype)).save_pretrained(tmp_path / name)
        save_tokenizer(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(tmp_path / "small"), str(tmp_path / "large")],
        capture_output=True,
        text=True,
        check=True,
    )
    peak = json.loads(done.stdout.splitlines()[-1])
    print(f"{family}, {dtype}: {peak / size:.2f} of {size / 2**20:.0f} MiB")  # noqa: T201
    assert size > 50e6
    assert 0.5 * size < peak <= MOST * size
