"""How numbers are written everywhere: on the screen, in exported files, on the command line.

A minus is the true minus sign "−", which is as wide as a plus; what rounds to zero has no sign.
"""

import math

MINUS = "−"
# From here on digits would run into each other's columns: 1234567.00 is 1.23e6.
_LARGE = 1e6


def logits(value: float, signed: bool = False, digits: int = 2) -> str:
    """A logit or contribution: "3.07", "−1.73", and with `signed` also "+1.26"."""
    return _fixed(value, digits, signed)


def weight(value: float) -> str:
    """An attention weight: "0.37"."""
    return _fixed(value, 2, False)


def percent(share: float) -> str:
    """A share of one: "65%", "0.4%", "<0.1%"."""
    if not math.isfinite(share):
        return _fixed(share, 0, False)
    hundredths = 100 * share
    if 0 < abs(hundredths) < 0.05:
        return "<0.1%"
    return _fixed(hundredths, 0 if abs(hundredths) >= 9.95 or hundredths == 0 else 1, False) + "%"


_SIZES = ((10**15, "quadrillion"), (10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(number: int) -> str:
    """How many, exactly: "23,298,085,122,481"."""
    return f"{number:,}"


def roughly(number: int) -> str:
    """How many, where an exact count is too long: "144", "9.6 million", "2.2 × 10³⁰"."""
    if number >= 10**18:  # perhaps past what a float can hold
        power = len(str(number)) - 1
        tenths = (number * 20 // 10**power + 1) // 2
        if tenths == 100:
            tenths, power = 10, power + 1
        return f"{tenths // 10}.{tenths % 10} × 10{str(power).translate(_RAISED)}"
    for size, name in _SIZES:
        if number >= size:
            share = number / size
            return f"{share:.1f} {name}" if share < 9.95 else f"{share:.0f} {name}"
    return count(number)


def readable(number: int) -> str:
    """How many: exactly, or, from a trillion on, roughly."""
    return count(number) if number < 10**12 else roughly(number)


def error(value: float) -> str:
    """The size of a rounding error, to one digit: "2e-6", "0"."""
    if not math.isfinite(value):
        return _fixed(abs(value), 0, False)
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _fixed(value: float, digits: int, signed: bool) -> str:
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        text = "∞"
    elif abs(value) >= _LARGE:
        mantissa, exponent = f"{abs(value):.{digits}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        text = f"{abs(value):.{digits}f}"
    if not text.strip("0."):
        return text
    if value < 0:
        return MINUS + text
    return "+" + text if signed else text
