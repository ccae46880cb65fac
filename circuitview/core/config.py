"""What a bundle's config.json says, under transformer_lens' names.

Only models whose logits are exactly a sum of paths may pass: what could break the sum is refused by
name here, before a weight is read.
"""

from typing import Literal

import msgspec

from circuitview.core.names import CircuitviewError

Norm = Literal["LN", "LNPre", "RMS", "RMSPre"]
Positions = Literal["standard", "shortformer", "none"]

# Fields of transformer_lens' config that change the forward pass, with the only values our runner
# computes. A field that is absent has the first value.
_PLAIN: dict[str, tuple[object, ...]] = {
    "attn_only": (True,),
    "attention_dir": ("causal",),
    "final_rms": (False, None),
    "parallel_attn_mlp": (False, None),
    "use_local_attn": (False, None),
    "use_qk_norm": (False, None),
    "use_normalization_before_and_after": (False, None),
    "attn_scores_soft_cap": (-1, -1.0, 0, None),
    "output_logits_soft_cap": (-1, -1.0, 0, None),
    "num_experts": (None,),
    "scale_attn_by_inverse_layer_idx": (False, None),
    "rmsnorm_uses_offset": (False, None),
    "post_embedding_ln": (False, None),
    "scale_embedding": (False, None),
    "positional_embedding_type": ("standard", "shortformer", "none", None),
    "normalization_type": ("LN", "LNPre", "RMS", "RMSPre", None),
}
# Names that older files use; reading past them would drop the norm or the positions unsaid.
_RENAMED = {"normalization": "normalization_type", "shortformer_pos": "positional_embedding_type"}


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Sizes and kinds of an attention-only model; widths d_*, counts n_*."""

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
        if not self.eps >= 0:
            raise CircuitviewError(f"{where}: eps is {self.eps}; need 0 or more")
        bos = self.bos_token_id
        if bos is not None and not 0 <= bos < self.d_vocab:
            raise CircuitviewError(
                f"{where}: bos_token_id is {bos}, outside the vocabulary of {self.d_vocab}"
            )


def _either(allowed: tuple[object, ...]) -> str:
    words = [value for value in allowed if isinstance(value, str)]
    return ", ".join(words) if words else repr(allowed[0])


def read_config(raw: bytes, where: str) -> ModelConfig:
    """The config that the bytes of a config.json describe.

    Args:
        raw: the file's content.
        where: its path, for messages.

    Raises:
        CircuitviewError: where it is no JSON, lacks a size, or names a model that is not a plain
            attention-only transformer.
    """
    try:
        fields = msgspec.json.decode(raw, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:  # the latter: nested without end
        raise CircuitviewError(f"{where}: not a JSON object ({error}); export it again") from None
    for name, allowed in _PLAIN.items():
        if name in fields and fields[name] not in allowed:
            raise CircuitviewError(
                f"{where}: {name} is {fields[name]!r}, which this program can't split into exact "
                f"paths; it opens attention-only models with {name} {_either(allowed)}"
            )
    for old, new in _RENAMED.items():
        if old in fields and new not in fields:
            raise CircuitviewError(f"{where}: {old} is an old name; write it as {new}")
    heads = fields.get("n_key_value_heads")
    if heads is not None and heads != fields.get("n_heads"):
        raise CircuitviewError(
            f"{where}: n_key_value_heads is {heads}, n_heads is {fields.get('n_heads')}; "
            "grouped heads can't be opened: write K and V out for each head"
        )
    try:
        config = msgspec.convert(fields, ModelConfig)
    except msgspec.ValidationError as error:
        raise CircuitviewError(f"{where}: {error}; use transformer_lens' config names") from None
    config.check(where)
    return config
