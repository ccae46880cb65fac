"""How bands that ride the residual stream together are stacked: each keeps one height on its way.

The longest rides lie on top, so that what soon dips to a head lies nearest to the heads.
"""

import numpy as np
import numpy.typing as npt

_STRETCHES = 160  # the lane is looked at in so many stretches

Numbers = npt.NDArray[np.float64]


def stack(start: Numbers, end: Numbers, size: Numbers) -> tuple[Numbers, float]:
    """How deep each ride runs, and how deep all reach, so that none lies upon another (logits from
    the top).

    Cost: about a microsecond a ride.

    Args:
        start, end: x of each ride [ride] (pixels).
        size: how much of the lane each fills [ride] (logits).
    """
    middle = np.zeros(len(size))
    if not len(size):
        return middle, 0.0
    left = start.min()
    stretch = max(float(end.max() - left), 1e-9) / _STRETCHES
    first = ((start - left) / stretch).astype(np.intp)
    last = np.maximum(first + 1, np.ceil((end - left) / stretch).astype(np.intp))
    order = np.lexsort((-size, start - end))
    depth = [0.0] * (_STRETCHES + 1)
    tops = []
    # Each lies upon those before it: a loop, and on so short a list faster without numpy.
    for one, other, high in zip(
        first[order].tolist(), last[order].tolist(), size[order].tolist(), strict=True
    ):
        top = max(depth[one:other])
        depth[one:other] = [top + high] * (other - one)
        tops.append(top)
    middle[order] = np.array(tops) + size[order] / 2
    return middle, max(depth)
