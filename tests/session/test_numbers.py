"""How numbers are written."""

import pytest

from circuitview.session import numbers


@pytest.mark.parametrize(
    ("value", "signed", "shown"),
    [
        (3.074, False, "3.07"),
        (-1.73, False, "−1.73"),
        (1.26, True, "+1.26"),
        (-0.004, True, "0.00"),
        (0.0, True, "0.00"),
        (float("inf"), True, "+∞"),
        (8.2557e33, True, "+8.26e33"),
        (-1234567.0, False, "−1.23e6"),
        (-123456.0, False, "−123456.00"),
        (float("nan"), False, "undefined"),
    ],
)
def test_logits_have_a_true_minus_and_no_signed_zero(
    value: float, signed: bool, shown: str
) -> None:
    assert numbers.logits(value, signed) == shown


def test_percent_and_error_keep_what_matters() -> None:
    assert [numbers.percent(share) for share in (0.65, 0.0042, 0.00001, 0.0, 1.0)] == [
        "65%",
        "0.4%",
        "<0.1%",
        "0%",
        "100%",
    ]
    assert [numbers.error(size) for size in (2.3e-6, -2e-15, 0.0)] == ["2e-6", "2e-15", "0"]
    assert numbers.weight(0.374) == "0.37"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (144, "144"),
        (999_999, "999,999"),
        (9_600_000, "9.6 million"),
        (23_298_085_122_481, "23 trillion"),
        (9_960_000_000, "10 billion"),
        (2 * 10**15, "2.0 quadrillion"),
        (11 * 10**29, "1.1 × 10³⁰"),
        (996 * 10**28, "1.0 × 10³¹"),
        (7 * 10**400, "7.0 × 10⁴⁰⁰"),
    ],
)
def test_very_many_are_counted_roughly(number, expected):
    assert numbers.roughly(number) == expected


def test_counts_are_exact_up_to_a_trillion():
    assert numbers.readable(999_999_999_999) == "999,999,999,999"
    assert numbers.readable(23_298_085_122_481) == "23 trillion"
    assert numbers.count(23_298_085_122_481) == "23,298,085,122,481"
