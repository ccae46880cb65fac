"""What each source token brings to the logit, over all paths that start at its embedding."""

from typing import TYPE_CHECKING

from circuitview.core.names import TOKEN

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from circuitview.core.expansion import Expansion


def token_contributions(expansion: "Expansion") -> "npt.NDArray[np.float64]":
    """[src], the sum of all token paths by source position, listed or not (logits).

    Held fixed: patterns and norm scales. From the order sums, so it is exact at any depth.
    """
    orders = expansion.orders
    sums: npt.NDArray[np.float64] = orders.sums[orders.sources.index(TOKEN)].sum(0)  # [src]
    return sums
