"""The trained models that come with the program are what their cards and README say."""

import pytest
from safetensors import safe_open

from circuitview.core.bundled import DEFAULT_PROMPT, bundled_folder
from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import expand
from circuitview.core.target import resolve_target
from circuitview.core.training.rows import repeated_random
from tests.tiny_models import record

TRAINED = ("attn-only-2l", "attn-only-1l")


def nats_saved(model) -> float:
    """By how much the second copy of random tokens costs less than the first [nats a token]."""
    config, saved = model.config, []
    for row in repeated_random(config.d_vocab, config.n_ctx, count=8, seed=5).tolist():
        chances = record(model, row, "float32").logits.log_softmax(-1)
        losses = [-float(chances[dest, token]) for dest, token in enumerate(row[1:])]
        half = len(losses) // 2
        # The first token of the repeat can't be foreseen.
        saved.append(sum(losses[:half]) / half - sum(losses[half + 1 :]) / (half - 1))
    return sum(saved) / len(saved)


def test_two_layers_look_up_what_followed_the_earlier_copy():
    assert nats_saved(open_model("attn-only-2l")) >= 3


def test_one_layer_does_not_and_its_card_says_so():
    assert nats_saved(open_model("attn-only-1l")) < 3
    card = (bundled_folder("attn-only-1l") / "README.md").read_text(encoding="utf-8")
    assert "does not look up what followed the earlier copy" in card


def test_both_are_small_and_stored_in_float16():
    files = [path for name in TRAINED for path in bundled_folder(name).iterdir()]
    assert sum(path.stat().st_size for path in files) < 12e6
    for name in TRAINED:
        with safe_open(bundled_folder(name) / "model.safetensors", framework="pt") as file:
            assert {file.get_slice(array).get_dtype() for array in file.keys()} == {"F16"}  # noqa: SIM118


@pytest.mark.parametrize("name", TRAINED)
def test_card_has_the_validation_loss_and_the_repeated_rows(name):
    card = (bundled_folder(name) / "README.md").read_text(encoding="utf-8")
    assert "| validation loss | " in card
    assert "nats a token on *Jekyll And Hyde*" in card
    assert "repeated" in card


def test_induction_heads_carry_the_default_prompt_and_other_paths_matter():
    model = open_model("attn-only-2l")
    assert model.config.bos_token_id == 0
    run = model.run(model.prompt(DEFAULT_PROMPT))
    expansion = expand(run, resolve_target(run, model.tokenizer))
    assert model.tokenizer.text(expansion.target.token) == " tea"
    assert expansion.n_paths == 172
    late = expansion.groups["layer-1 heads"]
    assert late > expansion.logit / 2
    others = sum(abs(value) for name, value in expansion.groups.items() if name != "layer-1 heads")
    assert others > late / 10
