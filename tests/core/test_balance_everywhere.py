"""On the bundled and on random models: 200 random prompts, every dest, 20 random targets each."""

from dataclasses import replace

import jaxtyping
import numpy as np
import pytest
import torch

from circuitview.core.bundled import bundled_names
from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.path_vectors import path_vectors
from circuitview.core.target import Target
from tests.tiny_models import KINDS, record, tiny_model

N_PROMPTS, N_TARGETS = 200, 20
# A trained bundle has hundreds of paths as wide as its stream: short prompts keep this short.
LONGEST = 12
# Relative to the largest path vector or term: some hundred roundings of 6e-8, or of 1e-16.
CLOSE = {"float32": 1e-4, "float64": 1e-11}

_RANDOM = {str(kind): replace(kind, seed=place) for place, kind in enumerate(KINDS[:8])}


@pytest.fixture
def unchecked_shapes():
    """Shape checks off for many thousand small calls: they cost ten times the sums, and every other
    test has them on."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("name", [*bundled_names(), *_RANDOM])
def test_paths_sum_to_the_stream_and_logits_balance(name, dtype):
    model = tiny_model(_RANDOM[name]) if name in _RANDOM else open_model(name)
    config = model.config
    rng = np.random.default_rng(7)
    worst_stream = worst_logit = 0.0
    for _ in range(N_PROMPTS):
        n = int(rng.integers(1, min(LONGEST, config.n_ctx) + 1))
        recording = record(model, rng.integers(0, config.d_vocab, n).tolist(), dtype)
        vectors = path_vectors(recording)
        gap = vectors.written.double().sum(0) - recording.stream[-1].double()
        largest = float(vectors.written.abs().max())
        worst_stream = max(worst_stream, float(gap.abs().max()) / largest)
        tokens = rng.integers(0, config.d_vocab, N_TARGETS).tolist()
        with torch.inference_mode():
            for token in tokens:
                dest = int(rng.integers(0, n))
                found = expand(recording, Target(dest, token, str(token)))
                assert found.balanced
                if found.scale > 0:  # hand-built tables hold zeros
                    worst_logit = max(worst_logit, abs(found.error) / found.scale)
                assert len(found.paths) <= len(vectors.paths)
    error = f"stream {worst_stream:.1e}, logits {worst_logit:.1e} of the largest term"
    print(f"{name}, {dtype}: {error}")  # noqa: T201
    assert worst_stream <= CLOSE[dtype], error
    assert worst_logit <= CLOSE[dtype], error


def test_path_vectors_of_few_heads_are_the_first_of_all():
    recording = record(tiny_model(replace(KINDS[0], n_layers=4)), [1, 2, 3])
    some, every = path_vectors(recording, most=1), path_vectors(recording)
    place = {path: index for index, path in enumerate(every.paths)}
    assert {path for path in every.paths if len(path.heads) <= 1} == set(some.paths)
    for path, written in zip(some.paths, some.written, strict=True):
        # The batch of a layer is of another size, and its products may round differently.
        assert torch.allclose(written, every.written[place[path]], rtol=0, atol=1e-12)
