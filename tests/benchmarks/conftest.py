"""Speed as ratios: the program against a yardstick measured in the same run, in turn.

Machines are noisy, so a ratio past its budget is printed, and fails only at twice the budget; set
CIRCUITVIEW_BUDGETS=strict to hold each to its budget. The table at the end is what README shows.
"""

import json
import os
import platform
from pathlib import Path

import pytest

_SLACK = 1.0 if os.environ.get("CIRCUITVIEW_BUDGETS") == "strict" else 2.0
_ROWS: list[dict[str, object]] = []


@pytest.fixture
def verdict():
    """Call it with (what, measured, yardstick or None, budget) to note and judge a figure.

    Seconds, shown in milliseconds; with unit="MB" both are megabytes.
    """

    def judge(
        what: str, measured: float, yardstick: float | None, budget: float, unit: str = "ms"
    ) -> None:
        figure = measured if yardstick is None else measured / yardstick
        shown = 1000 if unit == "ms" else 1
        _ROWS.append(
            {
                "what": what,
                "measured": f"{shown * measured:.1f} {unit}",
                "yardstick": "" if yardstick is None else f"{shown * yardstick:.1f} {unit}",
                "figure": figure if yardstick is not None else shown * measured,
                "budget": budget if yardstick is not None else shown * budget,
                "unit": "x" if yardstick is not None else unit,
            }
        )
        slack = _SLACK if unit == "ms" else 1.0  # memory is not noisy
        assert figure <= slack * budget, f"{what}: {figure:.3g} passes {slack:g} x {budget:g}"

    return judge


def pytest_terminal_summary(terminalreporter):
    if not _ROWS:
        return
    write = terminalreporter.write_line
    terminalreporter.section(f"ratios on {machine()}")
    write("| what | measured | yardstick | figure | budget |")
    write("|---|---|---|---|---|")
    for row in _ROWS:
        write(
            f"| {row['what']} | {row['measured']} | {row['yardstick']} | "
            f"{row['figure']:.2f} {row['unit']} | {row['budget']:g} {row['unit']} |"
        )
    target = os.environ.get("CIRCUITVIEW_BENCHMARK_FILE")
    if target:
        Path(target).write_text(json.dumps({"machine": machine(), "rows": _ROWS}, indent=1))


def machine() -> str:
    """The processor, how many cores there are, and the system."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":", 1)[1].strip() if models else name
    return (
        f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )
