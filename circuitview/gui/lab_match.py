"""What the window shows, as a question of the lab; and whether a run is of just that."""

from circuitview.core.ablation.sites import Site
from circuitview.gui.lab_queue import LabRun
from circuitview.session.lab import Question
from circuitview.session.state import Selection, Snapshot


def question_of(snapshot: Snapshot) -> Question:
    """The prompt and the target of `snapshot`, as a question."""
    state = snapshot.alone
    return Question(
        model=state.model,
        prompts=(state.prompt,),
        target=state.target,
        versus=state.versus,
        dest=state.dest,
        prepend_bos=state.prepend_bos,
        dtype=state.dtype,
        device=state.device,
        given=state.given,
        tokenizer=state.tokenizer,
    )


def same_model(entry: LabRun, snapshot: Snapshot) -> bool:
    """Whether a run is of the model that `snapshot` shows, with the weights that it has now."""
    question, shown = entry.question, question_of(snapshot)
    names = ("model", "device", "given", "tokenizer")
    return (
        not entry.outdated
        and snapshot.results.model is not None
        and all(getattr(question, name) == getattr(shown, name) for name in names)
    )


def same_question(entry: LabRun, snapshot: Snapshot) -> bool:
    """Whether a run is of the model that `snapshot` shows, and where it is of a prompt, of its
    prompt and target."""
    question = entry.question
    if not same_model(entry, snapshot):
        return False
    if question.text or len(question.prompts) != 1:
        return True
    shown, expansion = question_of(snapshot), snapshot.results.expansion
    if expansion is None:
        return False
    last = len(expansion.recording.prompt) - 1

    def asked(one: Question) -> tuple[object, ...]:
        dest = last if one.dest is None else one.dest
        versus = one.versus if question.metric == "difference" else None
        return one.prompts, one.target, versus, dest, one.prepend_bos, one.dtype

    return asked(question) == asked(shown)


def site_of(selection: Selection) -> Site | None:
    """What is selected in the diagram, as a site."""
    if selection.path is not None:
        return Site(paths=(selection.path,))
    return None if selection.head is None else Site(heads=(selection.head,))
