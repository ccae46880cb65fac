"""Random models, prompts and targets for the property tests."""

import os
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from circuitview.core.target import Target
from tests.tiny_models import Tiny

# The same examples on every run, so that a red test is never a matter of luck; a larger number
# goes further afield.
steady = settings(
    max_examples=int(os.environ.get("CIRCUITVIEW_EXAMPLES", "30")),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

_WHOLE_CHAINS = 260  # enough for every depth below, few enough for a fast test


@st.composite
def tinies(draw, least_layers: int = 1, most_layers: int = 4) -> Tiny:
    """A random small model of any kind that core opens."""
    n_layers = draw(st.integers(least_layers, most_layers))
    most_heads = max(heads for heads in (1, 2, 3) if (1 + heads) ** n_layers <= _WHOLE_CHAINS)
    tiny = Tiny(
        n_layers=n_layers,
        n_heads=draw(st.integers(1, most_heads)),
        d_model=draw(st.integers(3, 14)),
        d_head=draw(st.integers(1, 5)),
        n_ctx=draw(st.integers(1, 8)),
        d_vocab=draw(st.integers(3, 12)),
        normalization_type=draw(st.sampled_from([None, "LN", "RMS", "LNPre", "RMSPre"])),
        positional_embedding_type=draw(st.sampled_from(["standard", "shortformer", "none"])),
        biases=draw(st.booleans()),
        use_attn_scale=draw(st.booleans()),
    )
    return replace(tiny, seed=draw(st.integers(0, 10_000)))


@st.composite
def tinies_and_tokens(draw, **depths) -> tuple[Tiny, list[int]]:
    tiny = draw(tinies(**depths))
    tokens = st.lists(st.integers(0, tiny.d_vocab - 1), min_size=1, max_size=tiny.n_ctx)
    return tiny, draw(tokens)


@st.composite
def targets(draw, tiny: Tiny, n: int, versus: bool | None = None) -> Target:
    """A token, or a difference of two, at any dest."""
    dest = draw(st.integers(0, n - 1))
    token = draw(st.integers(0, tiny.d_vocab - 1))
    if versus is False or (versus is None and draw(st.booleans())):
        return Target(dest, token, str(token))
    other = draw(st.integers(0, tiny.d_vocab - 1).filter(lambda other: other != token))
    return Target(dest, token, str(token), other, str(other))
