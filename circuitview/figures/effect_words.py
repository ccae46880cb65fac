"""How effects are named and written in pictures: their unit, their digits, what was held."""

from circuitview.core.ablation.metric import METRICS, MetricName
from circuitview.session import numbers

_DIGITS = {True: 2, False: 4}  # by whether it is a logit; a loss moves little


def with_unit(words: str, metric: MetricName) -> str:
    """`words` with the metric's unit behind them: "effect (nats)"."""
    unit = METRICS[metric].unit
    return f"{words} ({unit})" if unit else words


def held(frozen: bool) -> str:
    """What the rest of the model did."""
    return "all else frozen" if frozen else "later layers free"


def effect_title(metric: MetricName, frozen: bool) -> str:
    """What an axis of effects is called: "effect, later layers free (logits)"."""
    return with_unit(f"effect, {held(frozen)}", metric)


def digits(metric: MetricName) -> int:
    """How many digits a value has behind the point."""
    return _DIGITS[METRICS[metric].linear]


def written(
    value: float, metric: MetricName, signed: bool = True, digits: int | None = None
) -> str:
    """A value or an effect as it is written; with the metric's own digits, or so many."""
    return numbers.logits(
        value, signed, _DIGITS[METRICS[metric].linear] if digits is None else digits
    )


def with_error(
    value: float,
    error: float | None,
    metric: MetricName,
    signed: bool = True,
    digits: int | None = None,
) -> str:
    """The same with its standard error, where that is known: "−0.0123 ± 0.0004"."""
    text = written(value, metric, signed, digits)
    return text if error is None else f"{text} ± {written(error, metric, False, digits)}"
