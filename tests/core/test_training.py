"""Training, in small: the bundle opens, an interrupted run ends with the same bits, wrong calls are
refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import circuitview
from circuitview.core.checkpoint import open_model
from circuitview.core.names import CircuitviewError
from circuitview.core.training import run as run_module
from circuitview.core.training.network import Network
from circuitview.core.training.rows import Rows, repeated_random, windows
from circuitview.core.training.run import TrainingPoint, rate_share, train
from circuitview.core.training.settings import TrainingSettings

SETTINGS = TrainingSettings(
    n_layers=2,
    n_heads=2,
    d_model=16,
    d_head=8,
    n_ctx=24,
    d_vocab=280,
    tokens=20 * 96,
    batch_tokens=96,
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    words = ["green", "tea", "black", "coffee", "and", "so", "we", "drink", "the", "cat", "sat"]
    for name in ("first_book", "second_book", "held_out"):
        lines = [" ".join(rng.choice(words, 9)) + ".\n" for _ in range(120)]
        (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    return sorted(folder.glob("*.txt"))


@dataclass
class Finished:
    folder: object
    record: object
    points: list


def finish(out, texts, settings=SETTINGS, stop_after=None, **options) -> Finished | None:
    """Run to the end, or close the generator after some steps."""
    steps, points = train(out, texts, settings, **options), []
    while True:
        try:
            progress = next(steps)
        except StopIteration as stop:
            return Finished(out, stop.value, points)
        points.append(progress)
        if stop_after is not None and progress.done == stop_after:
            steps.close()
            return None


@pytest.fixture(scope="module")
def finished(texts, tmp_path_factory) -> Finished:
    held_out = next(path for path in texts if path.stem == "held_out")
    out = tmp_path_factory.mktemp("models") / "tiny"
    return finish(out, texts, held_out=held_out, report_every=8)


def test_finished_run_leaves_a_bundle_that_opens_and_balances(finished):
    model = open_model(finished.folder)
    assert model.name == "tiny"
    assert model.config.d_vocab == 280
    assert model.tokenizer.bos_token_id == 0
    found = circuitview.analyse(model, "green tea and so we drink green")
    assert found.n_paths == 9 + 9 + 3 + 1
    assert found.balanced
    assert not (finished.folder / "training").exists()
    names = sorted(path.name for path in finished.folder.iterdir())
    assert names == ["README.md", "config.json", "model.safetensors", "tokenizer.json"]


def test_bundle_is_stored_in_float16_under_the_documented_names(finished):
    arrays = load_file(finished.folder / "model.safetensors")
    assert {array.dtype for array in arrays.values()} == {torch.float16}
    assert set(arrays) == set(Network(SETTINGS).names)


def test_progress_counts_every_step_and_measures_now_and_then(finished):
    assert [point.done for point in finished.points] == list(range(1, 21))
    assert {point.total for point in finished.points} == {20}
    measured = [p.partial.step for p in finished.points if p.partial.losses is not None]
    assert measured == [8, 16]
    assert all(isinstance(point.partial, TrainingPoint) for point in finished.points)


def test_training_lowers_the_loss(finished):
    """From ln 280 = 5.63 nats; 20 steps on 16 words must do better than chance."""
    assert finished.record.losses.validation < 5.6


def test_card_says_what_was_measured(finished):
    card = (finished.folder / "README.md").read_text(encoding="utf-8")
    losses = finished.record.losses
    assert f"{losses.validation:.3f} nats a token on *Held Out*" in card
    assert f"{losses.first:.2f} nats" in card
    assert f"{losses.second:.2f} nats" in card
    assert "2 layers of 2 heads of 8" in card
    assert "First Book, Second Book" in card
    assert "no induction head" in card
    assert card.startswith("# tiny\n")


def test_measured_losses_are_those_of_the_bundle(finished, texts):
    """The trained network and the bundle, which was rounded to float16, cost the same."""
    model = open_model(finished.folder)
    rows = repeated_random(280, 24, count=32, seed=SETTINGS.seed + 1)
    total = []
    for row in rows:
        recording = model.run(model_prompt(model, row))
        log = recording.logits.double().log_softmax(-1)
        total.append([-float(log[pos, row[pos + 1]]) for pos in range(len(row) - 1)])
    half = rows.shape[1] // 2
    # float16 keeps 11 bits: a thousandth of a nat on losses near six.
    assert np.mean(total, 0)[:half].mean() == pytest.approx(finished.record.losses.first, abs=5e-3)
    second = np.mean(total, 0)[half + 1 :].mean()
    assert second == pytest.approx(finished.record.losses.second, abs=5e-3)


def model_prompt(model, row):
    from circuitview.core.prompt import Prompt

    ids = tuple(int(token) for token in row)
    return Prompt(model.name, ids, tuple(model.tokenizer.label(token) for token in ids))


def test_interrupted_and_resumed_run_ends_with_the_same_bits(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_SAVE_EVERY", 0.0)  # after every step
    assert finish(tmp_path / "broken", texts, stop_after=7) is None
    state = torch.load(tmp_path / "broken" / "training" / "state.pt", weights_only=True)
    # A state is saved before its step is reported.
    assert state["step"] == 7
    assert finish(tmp_path / "broken", texts, stop_after=13) is None
    resumed = finish(tmp_path / "broken", texts)
    whole = finish(tmp_path / "whole", texts)
    assert len(resumed.points) == 7
    for name, array in load_file(tmp_path / "whole" / "model.safetensors").items():
        again = load_file(tmp_path / "broken" / "model.safetensors")[name]
        assert torch.equal(array, again), name
    assert resumed.record.losses == whole.record.losses
    assert (tmp_path / "broken" / "tokenizer.json").read_bytes() == (
        tmp_path / "whole" / "tokenizer.json"
    ).read_bytes()


def test_resumed_run_with_other_settings_is_refused(texts, tmp_path):
    finish(tmp_path / "out", texts, stop_after=1)
    from msgspec.structs import replace

    with pytest.raises(CircuitviewError, match="other texts or settings") as caught:
        finish(tmp_path / "out", texts, replace(SETTINGS, seed=1))
    assert "\n" not in str(caught.value)


def test_resumed_run_with_other_texts_is_refused(texts, tmp_path):
    finish(tmp_path / "out", texts, stop_after=1)
    with pytest.raises(CircuitviewError, match="other texts or settings"):
        finish(tmp_path / "out", texts[:1])


def test_finished_model_is_never_overwritten(finished, texts):
    before = (finished.folder / "model.safetensors").read_bytes()
    with pytest.raises(CircuitviewError, match="finished model"):
        finish(finished.folder, texts)
    assert (finished.folder / "model.safetensors").read_bytes() == before


def refusal(*arguments, **options) -> str:
    with pytest.raises(CircuitviewError) as caught:
        finish(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_wrong_texts_are_refused_in_one_line(texts, tmp_path):
    from msgspec.structs import replace

    out = tmp_path / "out"
    assert "no text" in refusal(out, [])
    assert "besides the held-out one" in refusal(out, texts[:1], held_out=texts[0])
    assert "gone.txt" in refusal(out, [tmp_path / "gone.txt"])
    assert "text file" in refusal(out, [tmp_path])
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00\x01" * 50)
    assert "UTF-8" in refusal(out, [tmp_path / "bytes.txt"])
    (tmp_path / "short.txt").write_text("tea")
    assert "tokens" in refusal(out, [tmp_path / "short.txt"])
    assert "too large" in refusal(out, texts, replace(SETTINGS, d_vocab=70_000))
    (tmp_path / "file").write_text("no folder")
    assert "can't make" in refusal(tmp_path / "file", texts)


def test_text_shorter_than_a_row_is_refused(tmp_path):
    from msgspec.structs import replace

    (tmp_path / "short.txt").write_text("abcdefgh" * 3)
    settings = replace(SETTINGS, d_vocab=257, n_ctx=100)
    assert "fewer than one row of 100" in refusal(
        tmp_path / "out", [tmp_path / "short.txt"], settings
    )


def test_batch_depends_on_seed_and_step_alone():
    stream = np.arange(1, 200, dtype=np.uint16)
    first, again = (Rows(stream, SETTINGS).batch(5) for _ in range(2))
    assert np.array_equal(first.tokens, again.tokens)
    assert not np.array_equal(first.tokens, Rows(stream, SETTINGS).batch(6).tokens)
    assert (first.tokens[:, 0] == 0).all()


def test_first_copy_of_a_random_stretch_is_not_counted():
    rows = Rows(np.arange(1, 200, dtype=np.uint16), SETTINGS)
    batch = rows.batch(0)  # in the first stage every row is a random stretch, repeated
    for tokens, counted in zip(batch.tokens, batch.counted, strict=True):
        period = int((~counted).sum())
        assert 8 <= period <= 56
        assert np.array_equal(tokens[1 + period :], tokens[1:-period])
        assert not counted[:period].any()
        assert counted[period:].all()


def test_rates_rise_then_fall_to_a_twentieth():
    shares = [rate_share(step, 1000) for step in range(1000)]
    assert shares[0] == 0.1
    assert max(shares) == 1.0
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert shares[-1] == pytest.approx(0.05, abs=1e-3)


def test_windows_cover_the_text_in_order():
    rows = windows(np.arange(1, 101, dtype=np.uint16), n_ctx=11, most=3)
    assert rows.tolist() == [[0, *range(1 + 10 * k, 11 + 10 * k)] for k in range(3)]
    with pytest.raises(CircuitviewError, match="fewer than one row"):
        windows(np.arange(5, dtype=np.uint16), n_ctx=11, most=3)


def test_network_and_runner_compute_the_same_logits(finished):
    """The trained network's own forward pass against the bundle's, folded."""
    model = open_model(finished.folder)
    network = Network(SETTINGS)
    with torch.no_grad():
        for name, array in load_file(finished.folder / "model.safetensors").items():
            network.weight(name).copy_(array.float())
        row = [0, 40, 41, 42, 43, 44]
        theirs = network(torch.tensor([row]))[0]
    # float32, logits of order ten.
    assert (theirs - model.run(model_prompt(model, row)).logits).abs().max() < 1e-4


def test_config_of_the_bundle_names_what_the_network_is(finished):
    fields = json.loads((finished.folder / "config.json").read_text())
    assert fields["attn_only"] is True
    assert fields["normalization_type"] == "LN"
    assert fields["bos_token_id"] == 0
    assert (fields["n_layers"], fields["n_heads"], fields["n_ctx"]) == (2, 2, 24)


def test_closing_between_two_steps_loses_nothing(texts, tmp_path):
    finish(tmp_path / "out", texts, stop_after=3)
    state = torch.load(tmp_path / "out" / "training" / "state.pt", weights_only=True)
    assert state["step"] == 3
    assert finish(tmp_path / "out", texts).points[0].done == 4


def test_a_strangers_file_among_the_runs_own_survives_it(texts, tmp_path):
    finish(tmp_path / "out", texts, stop_after=1)
    (tmp_path / "out" / "training" / "notes.txt").write_text("mine")
    finish(tmp_path / "out", texts)
    assert [path.name for path in (tmp_path / "out" / "training").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("content", [b"tea", b"\xff\xfe tea"])
def test_refused_held_out_text_leaves_no_folder_behind(texts, tmp_path, content):
    held_out = tmp_path / "held.txt"
    held_out.write_bytes(content)
    assert "held" in refusal(tmp_path / "out", texts, held_out=held_out)
    assert not (tmp_path / "out").exists()


def test_refused_texts_leave_no_folder_behind(tmp_path):
    (tmp_path / "short.txt").write_text("tea")
    refusal(tmp_path / "out", [tmp_path / "short.txt"])
    assert not (tmp_path / "out").exists()
