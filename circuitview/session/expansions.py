"""Which of the two exact sums is shown, in words: MLPs as sources, or paths on through them.

The window, the figures and the command line say it in the same words.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from circuitview.core.config import ModelConfig
    from circuitview.core.expansion import Expansion

B_MINUS_A = "B − A"
ExpansionKind = Literal["attention only", "mlp outputs as sources", "through mlps"]


@dataclass(frozen=True, slots=True)
class ExpansionWords:
    """One of them.

    Attributes:
        shown: what is shown; "" where a model has no MLPs, so that there is nothing to choose.
        held: what is held at what the model did, so that the sum is exact.
    """

    shown: str
    held: str


WORDS: dict[ExpansionKind, ExpansionWords] = {
    "attention only": ExpansionWords("", "patterns and norm scales held"),
    "mlp outputs as sources": ExpansionWords(
        "MLP outputs as sources", "patterns, norm scales and MLP outputs held"
    ),
    "through mlps": ExpansionWords(
        "paths through MLPs (activation ratios held)",
        "patterns, norm scales and MLP activation ratios held",
    ),
}


def expansion_kind(expansion: "Expansion") -> ExpansionKind:
    """Which of the sums `expansion` is."""
    if expansion.recording.weights.config.attn_only:
        return "attention only"
    return "through mlps" if expansion.through_mlps else "mlp outputs as sources"


def held_fixed(expansion: "Expansion") -> str:
    """What is held at what the model did, so that `expansion` is exact."""
    return WORDS[expansion_kind(expansion)].held


def expansion_shown(expansion: "Expansion") -> str:
    """Which of the two sums is shown; "" where there is only one."""
    return WORDS[expansion_kind(expansion)].shown


def explained(expansion: "Expansion") -> str:
    """What is explained: "␣tea", or "␣tea, B − A" where every number is a difference."""
    return (
        str(expansion.target) if expansion.between is None else f"{expansion.target}, {B_MINUS_A}"
    )


def logit_name(expansion: "Expansion") -> str:
    """What the sum must equal, in words: "model's logit", "model's logit difference", and, where
    two prompts are subtracted, "model's logit, B − A"."""
    name = "model's logit" + ("" if expansion.target.versus is None else " difference")
    return name if expansion.between is None else f"{name}, {B_MINUS_A}"


def precision(dtype: str, stored: str) -> str:
    """What a run computes in: "float32", or "float32 from Q4_1" where its file packs the weights.

    Args:
        dtype: of the run.
        stored: of the file, by torch's name for it or by GGUF's.
    """
    plain = stored.lower().startswith(("float", "bfloat", "f16", "f32", "f64", "bf16"))
    return dtype if plain else f"{dtype} from {stored}"


def soft_cap(config: "ModelConfig") -> float | None:
    """What the model caps its logits at, or None. What is summed is the logit before the cap."""
    return config.output_logits_soft_cap


def before_soft_cap(config: "ModelConfig") -> str:
    """What to say behind the model's logit: " before the soft cap of 30", or ""."""
    cap = soft_cap(config)
    return "" if cap is None else f" before the soft cap of {cap:g}"
