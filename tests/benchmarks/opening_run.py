"""The memory that opening a model takes above the imports; prints JSON.

opening_run.py FOLDER
"""

import json
import sys
import time
from pathlib import Path

import transformer_lens.model_bridge.sources.transformers  # noqa: F401, TID253 (imports apart)
from transformers import AutoModelForCausalLM  # noqa: TID253

from circuitview.core.checkpoint import open_model
from tests.benchmarks.memory import peak, reset_peak, resident

AutoModelForCausalLM.__module__  # noqa: B018  (lazy: this loads it)
imported = resident()
reset_peak()
start = time.perf_counter()
model = open_model(Path(sys.argv[1]))
model.weights()
seconds = time.perf_counter() - start
sys.stdout.write(json.dumps({"memory": peak() - imported, "seconds": seconds}) + "\n")
