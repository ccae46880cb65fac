"""What a run is called, what it is of and how it stands, in words."""

from circuitview.gui.lab_queue import LabRun
from circuitview.session import run_words


def of_words(entry: LabRun) -> str:
    """Model, what is run, and what is measured."""
    return run_words.of_words(entry.question, entry.model_name, entry.run)


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
            return f"cancelled, {_so_far(entry)}"
    return entry.state


def _so_far(entry: LabRun) -> str:
    """How much a run that was stopped has measured: not every row is of every window."""
    rows, counts = len(entry.rows), sorted({row.n for row in entry.rows.values()})
    if not entry.question.text and len(entry.question.prompts) < 2:
        return f"{rows} rows so far"
    of = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{rows} rows so far, of {of} {'windows' if entry.question.text else 'prompts'}"


def duration(seconds: float) -> str:
    """A time, roughly: "3 s", "4 min", "2 h"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
