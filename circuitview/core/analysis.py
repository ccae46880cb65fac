"""A model and a prompt to an Expansion, in one call: what a notebook needs."""

from pathlib import Path as FilePath

from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import LISTED, Expansion, expand
from circuitview.core.model import DTYPES, Model
from circuitview.core.names import CircuitviewError, DtypeName
from circuitview.core.target import resolve_target


def analyse(
    model: str | FilePath | Model,
    prompt: str,
    target: str | None = None,
    versus: str | None = None,
    dest: int = -1,
    dtype: DtypeName = "float32",
    prepend_bos: bool | None = None,
    through_mlps: bool = False,
    listed: int = LISTED,
) -> Expansion:
    """Every path to the logit of a token, and the sum that proves them; of a deep model the largest
    paths, and the exact sum of the others.

    Held fixed: attention patterns and norm scales, at what the model did on this prompt, and MLP
    outputs, or, with `through_mlps`, the ratios of their neurons.

    Args:
        model: a bundled name, a folder or file, a name in the Hugging Face cache, or a model that
            is open.
        prompt: the text.
        target: the token whose logit is explained; None takes the top prediction at `dest`.
        versus: a token to subtract, or None.
        dest: the position that predicts; negative counts from the end.
        dtype: "float32" or "float64".
        prepend_bos: whether BOS stands in front; None does as the model was trained.
        through_mlps: whether paths run on through MLPs; else an MLP's output is where they start.
        listed: how many paths to list of a model with very many.

    Raises:
        CircuitviewError: one line that names what is wrong and the remedy; among it that a model
            does something that is not summed, which is checked when it is opened.
        ImbalanceError: where the paths don't add up to the model's logit.
    """
    if dtype not in DTYPES:
        raise CircuitviewError(f"dtype {dtype!r} is unknown; choose float32 or float64")
    opened = model if isinstance(model, Model) else open_model(model, dtype=dtype)
    recording = opened.run(opened.prompt(prompt, prepend_bos), dtype)
    goal = resolve_target(recording, opened.tokenizer, target, versus, dest)
    expansion = expand(recording, goal, through_mlps, listed)
    expansion.require_balance()
    return expansion
