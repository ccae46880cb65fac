"""Round values along an axis, and how they are written."""

import math
from collections.abc import Sequence

from circuitview.session.numbers import MINUS

TICK_ROOM = 56.0  # pixels between two ticks, at least
_LEAST_TICK_ROOM = 16.0
_LONG, _FINE = 1e4, -3  # ticks of this size, or this power of ten apart, are written as 2e5


def tick_values(low: float, high: float, room: float, each: float = TICK_ROOM) -> tuple[float, ...]:
    """Round values between `low` and `high`, at least `each` of `room` pixels apart."""
    raw = (high - low) * each / room
    power: float = 10.0 ** math.floor(math.log10(raw))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= raw * (1 - 1e-9))
    return tuple(
        count * step
        for count in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    )


def two_ticks(low: float, high: float, room: float, each: float) -> tuple[float, ...]:
    """The same, closer together where else there were but one: that is no scale."""
    ticks = tick_values(low, high, room, each)
    while len(ticks) < 2 and each > _LEAST_TICK_ROOM:
        each *= 0.7
        ticks = tick_values(low, high, room, each)
    return ticks


def tick_text(value: float, ticks: Sequence[float]) -> str:
    """`value` with as many digits as the distance between the ticks asks for."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else abs(value) or 1.0
    power = math.floor(math.log10(step) + 1e-9)
    largest = max(map(abs, ticks), default=0.0)
    if largest >= _LONG or power < _FINE:
        if abs(value) < step / 2:
            return "0"
        own = math.floor(math.log10(abs(value)) + 1e-9)
        text = f"{abs(value) / 10.0**own:.{max(0, own - power)}f}e{own}"
    else:
        text = f"{abs(value):.{max(0, -power)}f}"
    return MINUS + text if value < 0 and text.strip("0.") else text
