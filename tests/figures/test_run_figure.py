"""The picture of a run: which one belongs to what was asked, and where its numbers come from."""

from dataclasses import replace

import pytest

from circuitview.figures.figure import groups, texts
from circuitview.figures.run_figure import provenance, run_figure
from circuitview.figures.theme import LIGHT
from circuitview.session.lab import Question
from tests.figures.lab_rows import require_sound
from tests.session.lab_runs import MODEL, found, prompts

HEADS = Question(model=MODEL, prompts=prompts(MODEL))
ASKED = {
    "heads": (HEADS, "table"),
    "paths": (replace(HEADS, what="paths", most=5), "table"),
    "mixed": (replace(HEADS, what="chosen", chosen=("0.0 + order 0",)), "effects"),
    "orders": (replace(HEADS, what="orders", metric="loss"), "values"),
    "pairs": (replace(HEADS, what="pairs"), "heads-down"),
}


@pytest.mark.parametrize("name", ASKED)
def test_each_question_has_its_picture(name):
    question, part = ASKED[name]
    figure = run_figure(found(question), LIGHT, 1280, 720)
    require_sound(figure, (1280, 720))
    assert part in {group.id for group in groups(figure)}
    assert any("2 prompts" in text for text in texts(figure))


def test_provenance_has_every_hash():
    """The hash of what a kind reads was missing beside those of model and tokens."""
    run = found(HEADS)
    about = provenance(HEADS, MODEL, run)
    assert run.model_hash in about
    assert run.data_hash in about
    assert "text that" not in about
    mean = replace(run, question=replace(HEADS, kind="mean"), donor_hash="ab" * 32)
    line = f"text that mean reads, sha256 {'ab' * 32}"
    assert line in provenance(mean.question, MODEL, mean).splitlines()
    assert line in run_figure(mean, LIGHT, 1280, 720).description
