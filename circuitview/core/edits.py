"""What a run changes: one value that every runner obeys."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from circuitview.core.names import Head
from circuitview.core.recording import Recording


@dataclass(frozen=True, eq=False, kw_only=True)
class Edits:
    """Changes to a forward pass.

    Attributes:
        zeroed: heads whose output z is set to zero, value bias included.
        z: what is put in place of heads' outputs, [pos, d_head] each, value bias included.
        patterns: what is put in place of heads' patterns, [dest, src] each; their values are those
            of the run. A head that `z` or `zeroed` names has no use for one.
        mlp_out: by layer, what is put in place of what its MLP adds to the stream, [pos, d_model].
        embedding: what the token embedding writes instead, [pos, d_model], or None.
        added: what is added to the stream behind the last layer, [pos, d_model], or None: the
            negative of what a path writes there takes exactly this path away.
        frozen: a recording whose patterns, norm scales and MLP outputs are imposed; None recomputes
            them.
    """

    zeroed: frozenset[Head] = field(default_factory=frozenset)
    z: Mapping[Head, Float[Tensor, "pos d_head"]] = field(default_factory=dict)
    patterns: Mapping[Head, Float[Tensor, "dest src"]] = field(default_factory=dict)
    mlp_out: Mapping[int, Float[Tensor, "pos d_model"]] = field(default_factory=dict)
    embedding: Float[Tensor, "pos d_model"] | None = None
    added: Float[Tensor, "pos d_model"] | None = None
    frozen: Recording | None = None

    def heads_of(self, layer: int) -> tuple[Head, ...]:
        """The heads of a layer whose output or pattern is replaced."""
        named = {*self.zeroed, *self.z, *self.patterns}
        return tuple(sorted(head for head in named if head.layer == layer))

    def first_layer(self, n_layers: int) -> int:
        """The first layer that does something else than without the edits; n_layers where only
        what follows the last one is changed."""
        if self.embedding is not None:
            return 0
        heads = (head.layer for head in (*self.zeroed, *self.z, *self.patterns))
        return min((*heads, *self.mlp_out), default=n_layers)
