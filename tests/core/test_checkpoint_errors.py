"""Whatever is wrong with a folder: one line that names the thing and the remedy."""

import json

import jaxtyping
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch_file

import circuitview
from circuitview.core.bundled import bundled_names
from circuitview.core.checkpoint import open_model
from circuitview.core.names import CircuitviewError
from tests.tiny_models import Tiny, build_bundle, record, word_tokenizer

TINY = Tiny()


@pytest.fixture
def folder(tmp_path):
    return build_bundle(tmp_path / "bundle", TINY)


def refusal(folder) -> str:
    """The one line with which `folder` is refused."""
    with pytest.raises(CircuitviewError) as caught:
        open_model(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) > 20
    assert caught.value.__cause__ is None  # no second error behind it
    return message


def change_config(folder, **changes):
    path = folder / "config.json"
    fields = json.loads(path.read_text())
    for name, value in changes.items():
        if value is ...:
            del fields[name]
        else:
            fields[name] = value
    path.write_text(json.dumps(fields))


def change_arrays(folder, **changes):
    path = folder / "model.safetensors"
    arrays = load_file(path)
    for name, value in changes.items():
        arrays[name.replace("__", ".")] = value
    save_file({name: array for name, array in arrays.items() if array is not None}, path)


def test_the_untouched_bundle_opens(folder):
    assert open_model(folder).config.n_layers == 2
    assert open_model(str(folder)).name == "bundle"


def test_unknown_name_lists_the_bundled_models():
    message = refusal("no-such-model")
    assert "'no-such-model'" in message
    assert all(name in message for name in bundled_names())


@pytest.mark.parametrize("name", ["~no-such-user-here/model", "x" * 5000, "nul\0byte"])
def test_names_that_can_be_no_folder_are_refused_like_unknown_ones(name):
    assert "no bundled model and no folder" in refusal(name)


def test_empty_folder_says_which_files_are_asked_for(tmp_path):
    message = refusal(tmp_path)
    assert all(file in message for file in ("config.json", "model.safetensors", "tokenizer.json"))


def test_file_that_is_no_model(folder):
    notes = folder / "notes.txt"
    notes.write_text("a model")
    assert "is a file that holds no model" in refusal(notes)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_of_a_whole_model_opens_its_folder(folder, file):
    assert open_model(folder / file).name == "bundle"


def test_dangling_symlink(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    assert "link" in refusal(link)


def test_dangling_symlink_to_the_weights(folder):
    weights = folder / "model.safetensors"
    weights.unlink()
    weights.symlink_to(folder / "gone")
    assert "model.safetensors" in refusal(folder)


def test_symlink_to_a_folder_opens(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert open_model(tmp_path / "link").name == "bundle"


@pytest.mark.parametrize("kept", [0, 7, 100, 0.5, 0.999])
def test_truncated_weights(folder, kept):
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw[: kept if isinstance(kept, int) else int(kept * len(raw))])
    message = refusal(folder)
    assert "model.safetensors" in message
    assert "save it again" in message


def test_weights_that_are_something_else(folder):
    (folder / "model.safetensors").write_bytes(b"PK\x03\x04 a zip archive, say" * 40)
    assert "not a whole safetensors file" in refusal(folder)


def test_misshaped_array_names_both_shapes(folder):
    change_arrays(folder, embed__W_E=np.zeros((9, 13)))
    message = refusal(folder)
    assert "embed.W_E" in message
    assert "[9, 13]" in message
    assert "[9, 12]" in message


@pytest.mark.parametrize("name", ["embed.W_E", "blocks.1.attn.W_O", "ln_final.w", "unembed.W_U"])
def test_missing_array_is_named(folder, name):
    change_arrays(folder, **{name.replace(".", "__"): None})
    assert f"{name} is missing" in refusal(folder)


def test_missing_bias_means_zero(folder):
    change_arrays(folder, unembed__b_U=None, blocks__0__attn__b_Q=None)
    assert open_model(folder).exact.b_Q.shape == (2, 2, 3)


def test_array_of_another_kind_of_model_is_named(folder):
    change_arrays(folder, blocks__0__mlp__W_in=np.zeros((12, 48)))
    assert "blocks.0.mlp.W_in" in refusal(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(folder, value):
    weights = np.ones((12, 9))
    weights[3, 4] = value
    change_arrays(folder, unembed__W_U=weights)
    message = refusal(folder)
    assert "unembed.W_U" in message
    assert "NaN" in message


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_])
def test_integer_arrays_are_refused(folder, dtype):
    change_arrays(folder, unembed__W_U=np.ones((12, 9), dtype))
    assert "floating-point" in refusal(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_floats_are_widened_exactly(folder, dtype):
    arrays = {
        name: torch.from_numpy(array).to(dtype)
        for name, array in load_file(folder / "model.safetensors").items()
    }
    save_torch_file(arrays, folder / "model.safetensors")
    weights = open_model(folder).exact
    assert weights.dtype == torch.float64
    stored = arrays["unembed.b_U"].double()
    shift = arrays["ln_final.b"].double() @ arrays["unembed.W_U"].double()
    # b_U plus the folded bias, in float64 from the first step on.
    assert torch.allclose(weights.b_U, stored + shift, rtol=0, atol=1e-14)


def test_buffers_that_transformer_lens_saves_are_passed_over(folder):
    change_arrays(folder, blocks__0__attn__mask=np.ones((10, 10), np.bool_))
    change_arrays(folder, blocks__0__attn__IGNORE=np.array([-1e5]))
    assert open_model(folder).config.n_ctx == 10


def test_missing_config(folder):
    (folder / "config.json").unlink()
    assert "config.json" in refusal(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"n_layers": 2', "\udcff"])
def test_config_that_is_no_json_object(folder, text):
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert "not a JSON object" in refusal(folder)


@pytest.mark.parametrize("field", ["n_layers", "n_heads", "d_model", "d_head", "n_ctx", "d_vocab"])
def test_config_without_a_size_names_it(folder, field):
    change_config(folder, **{field: ...})
    assert field in refusal(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_layers", "two"),
        ("n_layers", 2.5),
        ("n_layers", True),
        ("n_heads", None),
        ("n_layers", 0),
        ("d_head", -3),
        ("eps", -1.0),
        ("eps", "small"),
        ("bos_token_id", 9),
        ("bos_token_id", -1),
        ("use_attn_scale", "yes"),
        ("n_key_value_heads", 3),
        ("n_key_value_heads", 0.5),
        ("n_key_value_heads", -1),
        ("rotary_base", 0),
        ("rotary_dim", 3),
        ("rotary_dim", 4),
        ("rotary_dim", 0),
        ("d_mlp", 0),
        ("act_fn", "tanh"),
        ("act_fn", None),
        ("gated_mlp", 1),
    ],
)
def test_config_of_a_wrong_type_or_size_names_the_field(folder, field, value):
    if field.startswith("rotary"):
        change_config(folder, positional_embedding_type="rotary")
    if field in ("d_mlp", "act_fn"):
        change_config(folder, attn_only=False, act_fn="relu")
    change_config(folder, **{field: value})
    assert field in refusal(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("positional_embedding_type", "alibi"),
        ("normalization_type", "BatchNorm"),
        ("attn_scores_soft_cap", 50.0),
        ("use_qk_norm", True),
        ("use_local_attn", True),
        ("use_normalization_before_and_after", True),
        ("attention_dir", "bidirectional"),
        ("final_rms", True),
        ("num_experts", 4),
        ("scale_attn_by_inverse_layer_idx", True),
        ("rmsnorm_uses_offset", True),
        ("post_embedding_ln", True),
        ("scale_embedding", True),
        ("use_NTK_by_parts_rope", True),
        ("rope_scaling", {"rope_type": "linear", "factor": 2.0}),
    ],
)
def test_what_would_break_the_sum_is_refused_by_name(folder, field, value):
    change_config(folder, **{field: value})
    message = refusal(folder)
    assert field in message
    assert str(value) in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("attn_scores_soft_cap", -1.0),
        ("output_logits_soft_cap", None),
        ("n_key_value_heads", 2),
        ("attn_only", True),
        ("parallel_attn_mlp", True),
        ("final_rms", False),
        ("d_mlp", 48),
        ("act_fn", "gelu"),
    ],
)
def test_what_changes_nothing_is_accepted(folder, field, value):
    change_config(folder, **{field: value})
    assert open_model(folder).config.n_heads == 2


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("normalization", "LN", "normalization_type"),
        ("shortformer_pos", True, "positional_embedding_type"),
    ],
)
def test_old_names_are_refused_with_the_new_ones(folder, old, value, new):
    change_config(folder, **{new: ..., old: value})
    message = refusal(folder)
    assert old in message
    assert new in message


def test_missing_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    assert "tokenizer.json" in refusal(folder)


@pytest.mark.parametrize("text", ["", "{}", "not JSON", '{"model": {"type": "Nonsense"}}'])
def test_broken_tokenizer(folder, text):
    (folder / "tokenizer.json").write_text(text)
    message = refusal(folder)
    assert "tokenizer.json" in message
    assert "not a tokenizer" in message


def test_tokenizer_with_more_tokens_than_the_model_names_both_numbers(folder):
    word_tokenizer(12).save(str(folder / "tokenizer.json"))
    message = refusal(folder)
    assert "token 11" in message
    assert "vocabulary of 9" in message


def test_tokenizer_with_fewer_tokens_opens_and_labels_the_rest(folder):
    word_tokenizer(7).save(str(folder / "tokenizer.json"))
    labels = open_model(folder).tokenizer.labels
    assert labels[6:] == ("w6", "<7>", "<8>")


def test_tokenizer_that_cuts_or_pads_does_neither(folder):
    tokenizer = word_tokenizer(9)
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=6)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert open_model(folder).prompt("w1 w2 w3 w4").token_ids == (0, 1, 2, 3, 4)
    assert open_model(folder).prompt("w1").token_ids == (0, 1)


@pytest.fixture
def unchecked_types():
    """What a user of the library has: wrong arguments are met by core itself."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


class TestPrompts:
    """What a user may type wrongly, on a model that is fine."""

    @pytest.fixture
    def model(self, folder):
        return open_model(folder)

    def refuse(self, *arguments, **options) -> str:
        with pytest.raises(CircuitviewError) as caught:
            circuitview.analyse(*arguments, **options)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    @pytest.mark.parametrize("prompt", ["", " ", "\n"])
    def test_empty_prompt(self, model, prompt):
        assert "empty" in self.refuse(model, prompt)

    def test_prompt_longer_than_the_context_names_both_numbers(self, model):
        message = self.refuse(model, "w1 " * 10)
        assert "11 tokens" in message
        assert "1 to 10" in message

    def test_prompt_as_long_as_the_context_is_fine(self, model):
        assert len(circuitview.analyse(model, "w1 " * 9).recording.tokens) == 10

    def test_word_outside_the_vocabulary_is_quoted(self, model):
        assert "'tea'" in self.refuse(model, "w1 tea")

    @pytest.mark.parametrize("dest", [3, 99, -4])
    def test_dest_out_of_range_names_the_positions(self, model, dest):
        message = self.refuse(model, "w1 w2", dest=dest)
        assert str(dest) in message
        assert "0 to 2" in message

    @pytest.mark.parametrize(("dest", "place"), [(-1, 2), (-3, 0), (0, 0), (2, 2)])
    def test_dest_counts_from_either_end(self, model, dest, place):
        assert circuitview.analyse(model, "w1 w2", dest=dest).target.dest == place

    def test_target_of_two_tokens_names_them(self, model):
        message = self.refuse(model, "w1", "w1 w2")
        assert "2 tokens" in message
        assert "'w1' 'w2'" in message

    def test_the_same_token_twice_is_refused(self, model):
        assert "both" in self.refuse(model, "w1", "w2", "w2")

    def test_versus_that_is_no_token_is_called_versus(self, model):
        assert self.refuse(model, "w1", "w2", "w1 w3").startswith("versus")

    def test_empty_target(self, model):
        assert "empty" in self.refuse(model, "w1", "")

    @pytest.mark.usefixtures("unchecked_types")
    def test_unknown_dtype(self, model):
        assert "float64" in self.refuse(model, "w1", dtype="float16")

    def test_no_target_takes_the_top_prediction(self, model):
        found = circuitview.analyse(model, "w1 w2", dest=1)
        assert found.target.token == int(found.recording.logits[1].argmax())

    def test_token_id_outside_the_vocabulary(self, model):
        with pytest.raises(CircuitviewError, match="vocabulary of 9"):
            model.run(type(model.prompt("w1"))("bundle", (1, 9), ("w1", "?")))

    def test_run_of_ids_equals_run_of_text(self, model):
        by_text = model.run(model.prompt("w1 w2"), "float64").logits
        assert torch.equal(by_text, record(model, [0, 1, 2]).logits)


@pytest.mark.parametrize("n_layers", [10**9, 10**30])
def test_a_huge_number_of_layers_does_not_fill_the_memory(folder, n_layers):
    change_config(folder, n_layers=n_layers)
    assert f"asks for {n_layers} layers" in refusal(folder)


@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_a_config_nested_without_end_is_named(folder, opening):
    (folder / "config.json").write_text(opening * 100_000)
    assert "config.json: not a JSON object" in refusal(folder)
