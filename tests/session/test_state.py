"""State, selection and what is visual about them."""

from dataclasses import replace

from circuitview.core.names import POSITION, TOKEN, Head
from circuitview.core.path import Path
from circuitview.session.pipeline import Pipeline
from circuitview.session.state import Results, Selection, State

VIA = Path(TOKEN, (Head(0, 1), Head(1, 0)))


def test_selection_covers_its_path_or_all_through_its_head():
    assert Selection(path=VIA).covers(VIA)
    assert not Selection(path=VIA).covers(Path(POSITION, VIA.heads))
    assert Selection(head=Head(0, 1)).covers(VIA)
    assert not Selection(head=Head(0, 0)).covers(VIA)
    assert not Selection(source=3).covers(VIA)
    assert Selection(head=Head(0, 1)).anything
    assert not Selection(source=3).anything


def test_selection_within_results_keeps_what_exists():
    state = State(model="induction-by-hand", prompt="I like green")
    results = Pipeline().advance(state)
    whole = Selection(VIA, None, 3)
    assert whole.within(results) == whole
    assert Selection(source=4).within(results) == Selection()
    assert Selection(head=Head(5, 0)).within(results) == Selection()
    assert Selection(path=Path(TOKEN, (Head(4, 0),))).within(results) == Selection()
    assert whole.within(Results()) == whole


def test_visual_fields_do_not_ask_anything():
    state = State()
    assert state.asks_the_same(replace(state, floor=1.0, theme="dark", selection=Selection(VIA)))
    assert not state.asks_the_same(replace(state, dest=1))
    assert not state.asks_the_same(replace(state, opened=(Head(1, 0),)))


def test_new_prompt_keeps_a_named_target_and_a_new_model_drops_it():
    state = replace(State(), target="␣tea", versus="␣so", dest=3, selection=Selection(VIA))
    prompt = state.with_prompt("other")
    assert (prompt.target, prompt.versus, prompt.dest) == ("␣tea", "␣so", None)
    assert prompt.selection == Selection()
    model = state.with_model("attn-only-1l")
    assert (model.target, model.versus, model.dest, model.prompt) == (
        None,
        None,
        None,
        state.prompt,
    )
