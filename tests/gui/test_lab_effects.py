"""The diagram coloured by what the lab has measured: only where it is of just that question."""

from dataclasses import replace

import pytest

from circuitview.core.ablation.sites import Site
from circuitview.core.ablation.table import Row
from circuitview.figures.diagram import drawing
from circuitview.figures.figure import texts
from circuitview.figures.theme import LIGHT
from circuitview.gui.diagram.view import DiagramView
from circuitview.gui.lab_match import question_of
from circuitview.gui.lab_queue import LabRun
from circuitview.gui.lab_switches import LabSwitches
from tests.gui.conftest import PROMPT, ask


@pytest.fixture
def view(qtbot, analysed):
    view = DiagramView(analysed)
    qtbot.addWidget(view)
    view.resize(900, 500)
    analysed.changed.connect(view.show_snapshot)
    view.show_snapshot(analysed.snapshot)
    view.show()
    return view


def measured(document, **asked):
    """A run of each path of what is shown: the larger the contribution the larger the effect."""
    question = replace(question_of(document.snapshot), **{"what": "paths", **asked})
    terms = document.snapshot.results.expansion.terms
    sites = {Site(paths=(term.path,)): -term.contribution for term in terms}
    rows = {site: Row(site, -effect, 0.0, effect, None, 1) for site, effect in sites.items()}
    return LabRun(question, "a model", "done", rows=rows)


def legend(view):
    figure = view.figure(view.document.snapshot, LIGHT, 1280, 720)
    return [text for text in texts(figure) if text.startswith("colour:")]


def test_switch_colours_screen_and_export_by_effect_and_back(view, analysed):
    effects = analysed.effects
    assert not effects.action.isEnabled()
    assert "measure something first" in effects.action.toolTip()
    effects.look_at(measured(analysed))
    assert effects.action.isEnabled()
    assert view.shown_effects is None
    effects.action.setChecked(True)
    assert len(view.shown_effects.values) == len(analysed.snapshot.results.expansion.terms)
    assert legend(view) == ["colour: effect of removing the path, later layers free"]
    effects.action.setChecked(False)
    assert view.shown_effects is None
    assert legend(view) == []


def test_other_colours_are_not_laid_out_anew(view, analysed, monkeypatch):
    analysed.effects.look_at(measured(analysed))
    laid_out = []
    monkeypatch.setattr(drawing, "lay_out", lambda *asked: laid_out.append(asked))
    analysed.effects.action.setChecked(True)
    assert view.shown_effects is not None
    assert laid_out == []


def test_rows_that_come_colour_the_diagram_while_the_run_goes_on(view, analysed, monkeypatch):
    monkeypatch.setattr("circuitview.gui.lab_effects._EVERY", 0.0)
    whole = measured(analysed)
    entry = LabRun(whole.question, "a model", "running")
    analysed.effects.look_at(entry)
    analysed.effects.action.setChecked(True)
    assert analysed.effects.action.isEnabled()
    assert view.shown_effects is None
    for n, (site, row) in enumerate(list(whole.rows.items())[:3], start=1):
        entry.rows[site] = row
        analysed.lab.changed.emit(entry)
        assert len(view.shown_effects.values) == n


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"prompts": ("I like tea",)}, "another prompt"),
        ({"dtype": "float64"}, "precision"),
        ({"target": "tea"}, "target"),
        ({"dest": 2}, "position"),
        ({"model": "attn-only-2l"}, "another model"),
        ({"text": "a.txt", "prompts": ()}, "other text"),
        ({"prompts": (PROMPT, "I like tea")}, "other text"),
        ({"what": "orders"}, "whole orders"),
    ],
)
def test_a_run_of_anything_else_never_colours_the_diagram(view, analysed, asked, reason):
    analysed.effects.action.setChecked(True)
    analysed.effects.look_at(measured(analysed, **asked))
    assert view.shown_effects is None
    assert legend(view) == []
    assert not analysed.effects.action.isEnabled()
    assert reason in analysed.effects.action.toolTip()


def test_another_prompt_brings_contributions_back_and_the_first_its_effects(qtbot, view, analysed):
    effects = analysed.effects
    effects.look_at(measured(analysed))
    effects.action.setChecked(True)
    ask(qtbot, analysed, lambda state: state.with_prompt("I like tea , so I drink"))
    assert view.shown_effects is None
    assert "another prompt" in effects.action.toolTip()
    assert effects.action.isChecked()
    ask(qtbot, analysed, lambda state: state.with_prompt(PROMPT))
    assert view.shown_effects is not None


def test_a_difference_of_two_prompts_shows_contributions(qtbot, view, analysed):
    effects = analysed.effects
    effects.look_at(measured(analysed))
    effects.action.setChecked(True)
    other = PROMPT.replace("I like", "we like")
    ask(qtbot, analysed, lambda state: replace(state, other=other, shown="difference"))
    assert analysed.snapshot.results.expansion is not None, analysed.snapshot.failure
    assert view.shown_effects is None
    assert "B − A" in effects.action.toolTip()
    ask(qtbot, analysed, lambda state: replace(state, shown="a"))
    assert analysed.snapshot.state.showing == "a"


def test_button_follows_the_switch_and_the_switch_the_button(qtbot, analysed):
    switches = LabSwitches(analysed.effects.action)
    qtbot.addWidget(switches)
    assert not switches.colouring.isEnabled()
    analysed.effects.look_at(measured(analysed))
    assert switches.colouring.isEnabled()
    switches.colouring.click()
    assert analysed.effects.action.isChecked()
    analysed.effects.action.setChecked(False)
    assert not switches.colouring.isChecked()
