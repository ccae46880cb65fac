"""A model card claims an induction head only where heads and losses both show one."""

import pytest
import torch

from circuitview.core.head_kinds import HeadKinds
from circuitview.core.training.card import model_card
from circuitview.core.training.run import Losses, TrainingRecord
from circuitview.core.training.settings import TrainingSettings

AT_WORK = "an induction head at work"
NONE = "no induction head"


def verdict(n_layers: int, drop: float, induction: float) -> str:
    """The card's sentence on repeated random tokens."""
    record = TrainingRecord(
        settings=TrainingSettings(n_layers=n_layers),
        texts=["a_book"],
        held_out=None,
        text_tokens=1,
        steps=1,
        seconds=1.0,
        losses=Losses(validation=None, first=9.0, second=9.0 - drop),
    )
    scores = torch.zeros(n_layers, 8)
    found = scores.clone()
    found[-1, 2] = induction
    card = model_card("mine", record, HeadKinds(scores, scores, found))
    (said,) = [line for line in card.splitlines() if line.startswith("The second copy costs")]
    assert f"{drop:.2f} nats" in said
    return said


def test_head_and_gain_together_are_an_induction_head_at_work():
    said = verdict(2, drop=3.0, induction=0.4)
    assert said.endswith("looks up what followed the earlier copy (an induction head at work).")
    assert "does not" not in said


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("drop", [0.4, 5.0])
def test_without_such_a_head_no_gain_is_called_one(n_layers, drop):
    said = verdict(n_layers, drop, induction=0.39)
    assert "does not look up what followed the earlier copy" in said
    assert NONE in said
    assert AT_WORK not in said
    assert ("one layer can't compose heads" in said) == (n_layers == 1)
    assert ("says again what was there" in said) == (drop > 3)


def test_head_without_the_gain_is_not_called_at_work():
    said = verdict(2, drop=2.9, induction=0.9)
    assert "makes too little of it" in said
    assert NONE not in said
    assert f"({AT_WORK})" not in said
