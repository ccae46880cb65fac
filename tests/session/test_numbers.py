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
