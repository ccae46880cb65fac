"""What a freezing experiment has found, as CSV."""

from typing import TYPE_CHECKING, cast

from circuitview.gui.tables.csv_text import csv_text
from circuitview.session.freezing import FreezingQuestion

if TYPE_CHECKING:
    from circuitview.core.freezing.linearity import Linearity
    from circuitview.core.freezing.row import TwoRows
    from circuitview.core.freezing.swap import Swap
    from circuitview.session.freezing import Finding


def freezing_csv(question: FreezingQuestion, found: "Finding") -> str:
    """The numbers that `question` has found."""
    match question.experiment:
        case "linearity":
            return _linearity(cast("Linearity", found))
        case "swap":
            return _swap(cast("Swap", found))
        case "row":
            return _row(cast("TwoRows", found))


def _linearity(found: "Linearity") -> str:
    rows = [
        (name, misfit.added, misfit.doubled, misfit.largest, found.size)
        for name, misfit in (("frozen", found.frozen), ("free", found.free))
    ]
    return csv_text(("run", "added", "doubled", "largest_g", "largest_logit"), rows)


def _swap(found: "Swap") -> str:
    """Paths, what is left and their sum; the two runs; then single tokens. A path's values are
    those at weight 1; logits are whole ones."""
    label, none = str(found.target), ("",) * 5
    rows: list[tuple[object, ...]] = [
        ("path", str(row.path), row.weight, row.before, row.after, "", "", row.change)
        for row in found.paths
    ]
    rows.append(("remainder", "", *none, found.remainder))
    rows.append(("sum of paths", label, *none, found.predicted))
    for name, change in (("frozen", found.frozen), ("free", found.free)):
        rows.append((name, label, "", "", "", found.clean, found.clean + change, change))
    movers = {mover.token: mover for mover in (*found.own, *found.raised, *found.lowered)}
    for mover in movers.values():
        for name, change in (("token frozen", mover.frozen), ("token free", mover.free)):
            logits = mover.clean, mover.clean + change
            rows.append((name, mover.label, "", "", "", *logits, change))
    values, logits_named = ("value_before", "value_after"), ("clean_logit", "swapped_logit")
    return csv_text(("what", "name", "weight", *values, *logits_named, "change"), rows)


def _row(found: "TwoRows") -> str:
    rows = [
        (
            src,
            found.prompt_a.labels[src],
            found.prompt_b.labels[src],
            float(found.scores_a[src]),
            float(found.scores_b[src]),
            float(found.score_changes[src]),
            float(found.weights_a[src]),
            float(found.weights_b[src]),
            float(found.weight_changes[src]),
        )
        for src in range(len(found.same))
    ]
    quantities = ("score_a", "score_b", "score_change", "weight_a", "weight_b", "weight_change")
    return csv_text(("src", "token_a", "token_b", *quantities), rows)
