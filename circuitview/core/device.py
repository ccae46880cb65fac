"""Where a model computes: the CPU unless the user picks something else, which is never done for
them. What is recorded is summed on the CPU whatever computes the model."""

from typing import Literal

from circuitview.core.names import CircuitviewError

DeviceName = Literal["cpu", "cuda", "mps"]
DEVICES: tuple[DeviceName, ...] = ("cpu", "cuda", "mps")


def why_not(device: str) -> str | None:
    """Why `device` can't be had here, or None where it can. Imports torch."""
    import torch

    if device == "cpu":
        return None
    if device == "cuda":
        if torch.cuda.is_available():
            return None
        built = torch.version.cuda is not None or torch.version.hip is not None
        return "torch finds no graphics card" if built else "this torch is built without CUDA"
    if device == "mps":
        if torch.backends.mps.is_available():
            return None
        return "it needs a Mac with Apple silicon"
    return f"there is no such device; choose {', '.join(DEVICES)}"


def require_device(device: str) -> None:
    """Pass only a device that is there.

    Raises:
        CircuitviewError: with the reason.
    """
    reason = why_not(device)
    if reason is not None:
        raise CircuitviewError(f"can't compute on {device}: {reason}; use the CPU (--device cpu)")
