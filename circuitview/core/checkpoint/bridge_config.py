"""Sizes and kinds of a model that another program runs: from its weights and modules.

transformer_lens' own config of such a model is filled with guesses (an MLP of 4 d_model, scores
divided by sqrt(d_head)); what can't be read off the model itself is not said at all.
"""

from typing import Any

from circuitview.core.checkpoint.bridge_norms import Norm
from circuitview.core.checkpoint.bridge_weights import matrix, parallel
from circuitview.core.config import ModelConfig, Positions

# What transformers' attention modules call the factor of their scores, and those that have none.
_FACTORS = ("scaling", "inv_norm_factor", "softmax_scale")
_UNSCALED = "GPTNeo"
_ACTS = ("hidden_act", "activation_function", "hidden_activation", "activation")


class BridgeConfig(ModelConfig, frozen=True, kw_only=True):
    """The config of a model that another program runs.

    d_mlp and gated_mlp are those of MLPs whose weights can be read, act_fn is in the words of that
    program, attn_scale is None where it differs between layers or can't be found. How it rotates is
    not said: rotary_dim, rotary_base and rotary_adjacent_pairs mean nothing here.
    """

    @property
    def score_scale(self) -> float:
        """What q·k is divided by.

        Raises:
            ValueError: where the model does not show it.
        """
        if self.attn_scale is None:
            raise ValueError(f"{self.original_architecture} does not show what it divides q·k by")
        return self.attn_scale

    @property
    def n_neurons(self) -> int:
        """Neurons of each MLP.

        Raises:
            ValueError: where its MLPs can't be read.
        """
        if self.d_mlp is None:
            raise ValueError(f"the MLPs of {self.original_architecture} can't be read")
        return self.d_mlp

    @property
    def n_rotated(self) -> int:
        """Not known here.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"how {self.original_architecture} rotates is known to its own code only")


def read_sizes(
    bridge: Any, hf_config: Any, final: Norm | None, bos: int | None, where: str
) -> BridgeConfig:
    """Sizes from the weights themselves, kinds from the modules.

    Args:
        bridge: a TransformerBridge.
        hf_config: transformers' config of the model.
        final: its last norm.
        bos: the id of BOS.
        where: the checkpoint, for messages.

    Raises:
        CircuitviewError: where a size is one that no model can have.
    """
    cfg, attention = bridge.cfg, bridge.blocks[0].attn
    n_heads = int(cfg.n_heads)
    width, d_model = matrix(attention.o).shape
    d_head = width // n_heads
    cap = getattr(cfg, "output_logits_soft_cap", None)
    d_mlp, gated = _mlp(bridge)
    acts = (getattr(hf_config, name, None) for name in _ACTS)
    config = BridgeConfig(
        n_layers=len(bridge.blocks),
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_head,
        n_ctx=int(cfg.n_ctx),
        d_vocab=matrix(bridge.unembed).shape[1],
        normalization_type=None if final is None else "LN" if final.centres else "RMS",
        positional_embedding_type=_positions(bridge),
        eps=float(cfg.eps) if final is None else final.eps,
        attn_only=False,
        d_mlp=d_mlp,
        gated_mlp=gated,
        act_fn=next((act for act in acts if isinstance(act, str)), None),
        n_key_value_heads=matrix(attention.v).shape[1] // d_head,
        parallel_attn_mlp=parallel(bridge),
        output_logits_soft_cap=cap if cap is not None and cap > 0 else None,
        original_architecture=str(cfg.architecture),
        attn_scale=_score_scale(bridge),
        bos_token_id=bos,
    )
    config.check(where)
    return config


def _positions(bridge: Any) -> Positions:
    if "pos_embed" in bridge.adapter.component_mapping:
        return "standard"
    kind = getattr(bridge.cfg, "positional_embedding_type", None)
    return "alibi" if kind == "alibi" else "rotary"


def _mlp(bridge: Any) -> tuple[int | None, bool]:
    """The width of the first layer's MLP, None where it has no neurons to be read, and whether they
    are gated."""
    parts = bridge.blocks[0].mlp.submodules
    into = parts.get("in")
    if into is None or not hasattr(into.original_component, "weight"):
        return None, False
    return matrix(into).shape[1], "gate" in parts


def _score_scale(bridge: Any) -> float | None:
    """What q·k is divided by, where every layer says the same."""
    found = set()
    for block in bridge.blocks:
        module = block.attn.original_component
        factors = (getattr(module, name, None) for name in _FACTORS)
        factor = next((factor for factor in factors if isinstance(factor, int | float)), None)
        if factor is None and type(module).__name__.startswith(_UNSCALED):
            factor = 1.0
        found.add(factor)
    factor = found.pop()
    return None if found or not factor else 1 / factor
