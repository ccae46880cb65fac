"""How much memory this process takes, on Linux; in bytes."""

from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident() -> float:
    return _read("VmRSS")


def peak() -> float:
    """The most since the process began, or since reset_peak."""
    return _read("VmHWM")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _read(name: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return 1024.0 * int(line.split()[1])
