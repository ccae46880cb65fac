"""What a run is called, what it is of and how it stands, in words."""

from circuitview.core.ablation.metric import METRICS
from circuitview.figures.effect_words import written
from circuitview.gui.lab_figures import clean_value
from circuitview.gui.lab_queue import LabRun
from circuitview.session.run_words import measured_words, ran_words

_TOLD = 12  # prompts that a hint names


def ran(entry: LabRun) -> str:
    """What is run, in full: a prompt is cut where there is no room, and only there."""
    prompts = entry.question.prompts
    if entry.question.text or len(prompts) != 1:
        return ran_words(entry.question, entry.run)
    return f"“{' '.join(prompts[0].split())}”"


def every_prompt(entry: LabRun) -> str:
    """The same for a hint: where several prompts are run, each on a line of its own."""
    prompts = () if entry.question.text else entry.question.prompts
    if len(prompts) < 2:
        return ran(entry)
    more = [f"and {len(prompts) - _TOLD:,} more"] if len(prompts) > _TOLD else []
    return "\n".join([*(f"“{prompt}”" for prompt in prompts[:_TOLD]), *more])


def measured(entry: LabRun) -> str:
    """What is measured: "target logit (tea)"."""
    target = "" if entry.run is None or not entry.run.target else f" ({entry.run.target})"
    return measured_words(entry.question) + target


def clean_words(entry: LabRun) -> str:
    """The metric of the unchanged model: "clean 6.14 logits"; "" while it is not known."""
    clean, metric = clean_value(entry), METRICS[entry.question.metric]
    if clean is None or metric.name == "kl":  # from itself: 0
        return ""
    text = f"clean {written(clean, metric.name, signed=False)}"
    return f"{text} {metric.unit}" if metric.unit else text


def state_words(entry: LabRun) -> str:
    """How a run stands: "waiting", "about 12 s left", "done in 3 s", "failed: why"."""
    match entry.state:
        case "running" if entry.seconds_left is not None:
            return f"about {duration(entry.seconds_left)} left"
        case "running":
            return "running" if entry.done else "starting"
        case "done" if entry.run is not None and not entry.opened:
            return f"done in {duration(entry.run.seconds)}"
        case "done":
            return "from a file"
        case "failed":
            return f"failed: {entry.failure}"
        case "cancelled" if entry.rows:
            return f"cancelled · {_measured_rows(entry)}"
    return entry.state


def _measured_rows(entry: LabRun) -> str:
    """How much a run that was stopped has measured: not every row is of every window."""
    rows, counts = len(entry.rows), sorted({row.n for row in entry.rows.values()})
    text = f"{rows:,} row" + ("" if rows == 1 else "s")
    if not entry.question.text and len(entry.question.prompts) < 2:
        return text
    of = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    plural = "" if of == "1" else "s"
    return f"{text} of {of} {'window' if entry.question.text else 'prompt'}{plural}"


def duration(seconds: float) -> str:
    """A time, roughly: "3 s", "4 min", "2 h"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
