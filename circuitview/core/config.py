"""What a checkpoint's config.json says, under transformer_lens' names.

Only models whose logits are exactly a sum of paths may pass: what could break the sum is refused by
name here, before a weight is read.
"""

import math
from typing import Literal

import msgspec

from circuitview.core.names import CircuitviewError

Norm = Literal["LN", "LNPre", "RMS", "RMSPre"]
Positions = Literal["standard", "shortformer", "rotary", "alibi", "none"]
NORMS = ("LN", "LNPre", "RMS", "RMSPre")
# What activations.py computes between the two matrices of an MLP: each neuron by itself, or mixed.
ELEMENTWISE = ("relu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "silu")
ACTIVATIONS = (*ELEMENTWISE, "solu", "solu_ln")

# Fields of transformer_lens' config that change the forward pass, with the only values our runner
# computes. A field that is absent has the first value.
_PLAIN: dict[str, tuple[object, ...]] = {
    "attention_dir": ("causal",),
    "use_local_attn": (False, None),
    "use_qk_norm": (False, None),
    "use_normalization_before_and_after": (False, None),
    "attn_scores_soft_cap": (-1, -1.0, 0, None),
    "num_experts": (None,),
    "scale_attn_by_inverse_layer_idx": (False, None),
    "rmsnorm_uses_offset": (False, None),
    "post_embedding_ln": (False, None),
    "scale_embedding": (False, None),
    "load_in_4bit": (False, None),
    "use_NTK_by_parts_rope": (False, None),
    "rope_scaling": (None,),
    "positional_embedding_type": ("standard", "shortformer", "rotary", "none", None),
    "normalization_type": (*NORMS, None),
}
# Names that older files use; reading past them would drop the norm or the positions unsaid.
_RENAMED = {"normalization": "normalization_type", "shortformer_pos": "positional_embedding_type"}


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Sizes and kinds of a model; widths d_*, counts n_*.

    Of a model that another program runs see checkpoint/bridge_config.py: what can't be known of it
    is not said.

    Attributes:
        attn_only: whether there are no MLPs.
        d_mlp: neurons of each MLP; None means 4 d_model.
        act_fn: the MLPs' nonlinearity.
        gated_mlp: whether a neuron is act(gate) x in.
        rotary_dim: how many of each head's d_head numbers are rotated; None means all.
        rotary_base: the slowest pair turns by 1/rotary_base^(1 − 2/rotary_dim) a token [radians].
        rotary_adjacent_pairs: whether numbers 0 and 1 are turned together; else 0 and
            rotary_dim / 2.
        n_key_value_heads: under grouped-query attention; None where each head has its own.
        parallel_attn_mlp: whether attention and MLP both read resid_pre.
        output_logits_soft_cap: cap x tanh(logit / cap) is what the model returns; None where not.
        original_architecture: the class that a checkpoint of another program names, or None.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    n_ctx: int
    d_vocab: int
    normalization_type: Norm | None = None
    positional_embedding_type: Positions | None = "standard"
    eps: float = 1e-5
    attn_only: bool = True
    d_mlp: int | None = None
    act_fn: str | None = None
    gated_mlp: bool = False
    rotary_dim: int | None = None
    rotary_base: float = 10000.0
    rotary_adjacent_pairs: bool = False
    n_key_value_heads: int | None = None
    parallel_attn_mlp: bool = False
    output_logits_soft_cap: float | None = None
    original_architecture: str | None = None
    use_attn_scale: bool = True
    attn_scale: float | None = None
    bos_token_id: int | None = None

    @property
    def score_scale(self) -> float:
        """What q·k is divided by: sqrt(d_head) unless the file says otherwise."""
        if not self.use_attn_scale:
            return 1.0
        given = self.attn_scale is not None and self.attn_scale > 0
        return self.attn_scale if given and self.attn_scale else float(self.d_head) ** 0.5

    @property
    def n_kv_heads(self) -> int:
        return self.n_key_value_heads or self.n_heads

    @property
    def n_neurons(self) -> int:
        """Neurons of each MLP."""
        return self.d_mlp or 4 * self.d_model

    @property
    def n_rotated(self) -> int:
        """How many of each head's d_head numbers positions rotate; 0 without rotary positions."""
        if self.positional_embedding_type != "rotary":
            return 0
        return self.d_head if self.rotary_dim is None else self.rotary_dim

    @property
    def has_positions(self) -> bool:
        """Whether a position embedding is written to the stream."""
        return self.positional_embedding_type == "standard"

    @property
    def norm(self) -> Literal["LN", "RMS"] | None:
        """The kind of norm without transformer_lens' word for folded weights."""
        match self.normalization_type:
            case "LN" | "LNPre":
                return "LN"
            case "RMS" | "RMSPre":
                return "RMS"
        return None

    def check(self, where: str) -> None:
        """Refuse sizes that no model can have.

        Raises:
            CircuitviewError: naming `where`, the field and its value.
        """
        for field in ("n_layers", "n_heads", "d_model", "d_head", "n_ctx", "d_vocab"):
            if getattr(self, field) < 1:
                raise CircuitviewError(
                    f"{where}: {field} is {getattr(self, field)}; need 1 or more"
                )
        if not 0 <= self.eps < math.inf:
            raise CircuitviewError(f"{where}: eps is {self.eps}; need a number, 0 or more")
        bos = self.bos_token_id
        if bos is not None and not 0 <= bos < self.d_vocab:
            raise CircuitviewError(
                f"{where}: bos_token_id is {bos}, outside the vocabulary of {self.d_vocab}"
            )


def _either(allowed: tuple[object, ...]) -> str:
    words = [value for value in allowed if isinstance(value, str)]
    return ", ".join(words) if words else repr(allowed[0])


def decode_fields(raw: bytes, where: str) -> dict[str, object]:
    """The fields of a config.json.

    Args:
        raw: the file's content.
        where: its path, for messages.

    Raises:
        CircuitviewError: where it is no JSON object.
    """
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:  # the latter: nested without end
        raise CircuitviewError(f"{where}: not a JSON object ({error}); export it again") from None


def read_config(raw: bytes, where: str) -> ModelConfig:
    """The config that the bytes of a config.json describe.

    Args:
        raw: the file's content.
        where: its path, for messages.

    Raises:
        CircuitviewError: where it is no JSON, lacks a size, or names a model whose logits are not a
            sum of paths that runner.py computes.
    """
    return config_of(decode_fields(raw, where), where)


def config_of(fields: dict[str, object], where: str) -> ModelConfig:
    """The config that these fields describe.

    Raises:
        CircuitviewError: as read_config.
    """
    for name, allowed in _PLAIN.items():
        if name in fields and fields[name] not in allowed:
            raise CircuitviewError(
                f"{where}: {name} is {fields[name]!r}, which this program can't split into exact "
                f"paths; it opens models with {name} {_either(allowed)}"
            )
    for old, new in _RENAMED.items():
        if old in fields and new not in fields:
            raise CircuitviewError(f"{where}: {old} is an old name; write it as {new}")
    norm = fields.get("normalization_type")
    if fields.get("final_rms") and norm not in ("RMS", "RMSPre"):
        raise CircuitviewError(
            f"{where}: final_rms is True where normalization_type is {norm!r}: one of the norms "
            "centres and the other does not; this program opens models with one kind of norm"
        )
    # transformer_lens writes -1 for no cap, and for the scale that it works out itself.
    for name in ("output_logits_soft_cap", "attn_scale"):
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value) or (value == 0 and name == "attn_scale"):
                raise CircuitviewError(f"{where}: {name} is {value}; need a number above 0, or -1")
            fields = {**fields, name: None} if value <= 0 else fields
    try:
        config = msgspec.convert(fields, ModelConfig)
    except msgspec.ValidationError as error:
        raise CircuitviewError(f"{where}: {error}; use transformer_lens' config names") from None
    config.check(where)
    _check_kinds(config, where)
    return config


def _check_kinds(config: ModelConfig, where: str) -> None:
    """Refuse what runner.py can't compute, and sizes that don't go together."""
    heads, grouped = config.n_heads, config.n_kv_heads
    if not 1 <= grouped <= heads or heads % grouped:
        raise CircuitviewError(
            f"{where}: n_key_value_heads is {grouped}, n_heads is {heads}; it must divide n_heads"
        )
    if config.positional_embedding_type == "rotary":
        if not config.rotary_base > 0:
            raise CircuitviewError(
                f"{where}: rotary_base is {config.rotary_base}; need more than 0"
            )
        rotated = config.n_rotated
        if not 2 <= rotated <= config.d_head or rotated % 2:
            raise CircuitviewError(
                f"{where}: rotary_dim is {rotated}, d_head is {config.d_head}; "
                "need an even number of at most d_head"
            )
    if config.attn_only:
        return
    if config.d_mlp is not None and config.d_mlp < 1:
        raise CircuitviewError(f"{where}: d_mlp is {config.d_mlp}; need 1 or more")
    if config.act_fn not in ACTIVATIONS:
        raise CircuitviewError(
            f"{where}: act_fn is {config.act_fn!r}; an MLP needs one of {', '.join(ACTIVATIONS)}"
        )
    if config.gated_mlp and config.act_fn in ("solu", "solu_ln"):
        raise CircuitviewError(
            f"{where}: gated_mlp with act_fn {config.act_fn}, a pair that no model has; "
            "mend one of the two"
        )
