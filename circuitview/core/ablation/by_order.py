"""Path ablation: the model with the paths of up to n heads, for every n.

The patterns are frozen. The paper runs the model once with every head's output zero, then again and
again, each time putting in the heads' place what they produced in the run before; run n + 1 holds
exactly the paths of up to n heads, and the constants of all layers are in each. The same is reached
here in one pass that carries one stream for each order. Norm scales and MLP outputs are held, so
that the last order is the model.

Source: Elhage et al. 2021, the path-ablation algorithm.
"""

from collections.abc import Generator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitview.core.ablation.cases import Case
from circuitview.core.ablation.lab import require_measurable
from circuitview.core.ablation.metric import MetricName
from circuitview.core.ablation.metrics import measure
from circuitview.core.ablation.table import AblationTable, OrderRow, mean_and_error
from circuitview.core.model import Model
from circuitview.core.names import DtypeName
from circuitview.core.orders import order_steps
from circuitview.core.path_vectors import order_vector_steps
from circuitview.core.progress import Progress, told
from circuitview.core.recording import Recording

Numbers = npt.NDArray[np.float64]


def ablate_orders(
    model: Model,
    cases: Sequence[Case],
    *,
    metric: MetricName = "loss",
    dtype: DtypeName = "float32",
) -> Generator[Progress, None, AblationTable]:
    """The metric with paths of up to n heads, n = 0 … n_layers; the last is the model's own.

    Yields a Progress after each run, and between the layers of what all runs of a case share; its
    partial result is all rows, of the cases run so far. Held fixed: patterns, norm scales and MLP
    outputs of each case's clean run. Cost for each case: one forward pass, 2 (n_layers + 1)
    value sides, and n_layers + 1 unembeddings.

    Raises:
        CircuitviewError: where there is nothing to run, or a difference has no second token.
    """
    require_measurable(cases, metric)
    n_orders = model.config.n_layers + 1
    total = len(cases) * (1 + n_orders)
    values, clean = np.full((n_orders, len(cases)), np.nan), np.full(len(cases), np.nan)
    sums = np.full((n_orders, len(cases)), np.nan)
    rows: tuple[OrderRow, ...] = ()
    for place, case in enumerate(cases):
        recording = model.run(case.prompt, dtype)
        own = recording.logits[case.dests]  # [dest, d_vocab]
        done = place * (1 + n_orders) + 1
        yield Progress(done, total)
        target = case.counted(metric)
        found_sums = yield from told(order_steps(recording, target), Progress(done, total))
        sums[:, place] = found_sums.by_order()
        written = yield from told(order_vector_steps(recording), Progress(done, total))
        with torch.inference_mode():
            clean[place] = float(measure(metric, case, model.config, own.unsqueeze(0), own)[0])
            streams = written[:, case.dests].cumsum(0)  # [order, dest, d_model]
        for order in range(n_orders):
            with torch.inference_mode():
                logits = read_stream(recording, streams[order], case.dests)
                found = measure(metric, case, model.config, logits.unsqueeze(0), own)
            values[order, place] = float(found[0])
            if order == n_orders - 1:
                seen = place + 1
                rows = _rows(values[:, :seen], clean[:seen], sums[:, :seen])
            yield Progress(done + 1 + order, total, rows if order == n_orders - 1 else None)
    return AblationTable(metric, True, float(clean.mean()), rows, clean, values)


def read_stream(
    recording: Recording, stream: Float[Tensor, "dest d_model"], dests: Tensor
) -> Float[Tensor, "dest d_vocab"]:
    """The logits that a final stream stands for, the final scale held as recorded."""
    last = stream / recording.final_scale[dests].unsqueeze(-1)  # [dest, d_model]
    return recording.weights.read_out(last) + recording.weights.constants()


def _rows(values: Numbers, clean: Numbers, sums: Numbers) -> tuple[OrderRow, ...]:
    rows = []
    for order, found in enumerate(values):
        effect, error = mean_and_error(found - clean)
        marginal = marginal_error = None
        if order > 0:
            marginal, marginal_error = mean_and_error(found - values[order - 1])
        rows.append(
            OrderRow(
                order=order,
                contribution=float(sums[order].mean()),
                value=float(found.mean()),
                effect=effect,
                stderr=error,
                marginal=marginal,
                marginal_stderr=marginal_error,
                n=len(found),
            )
        )
    return tuple(rows)
