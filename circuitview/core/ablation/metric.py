"""What can be measured, by name. Nothing heavy; metrics.py computes it."""

from dataclasses import dataclass
from typing import Literal

MetricName = Literal["logit", "difference", "probability", "loss", "kl"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One way to measure.

    Attributes:
        title: what it is called.
        unit: in which unit, as words behind a number; "" for a share.
        linear: whether it is a logit, so that contributions have its unit.
    """

    name: MetricName
    title: str
    unit: str
    linear: bool = False


METRICS: dict[str, Metric] = {
    "logit": Metric("logit", "target logit", "logits", linear=True),
    "difference": Metric("difference", "logit difference", "logits", linear=True),
    "probability": Metric("probability", "target probability", ""),
    "loss": Metric("loss", "loss", "nats"),
    "kl": Metric("kl", "KL from the clean run", "nats"),
}
