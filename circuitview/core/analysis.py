"""A model and a prompt to an Expansion, in one call: what a notebook needs."""

from pathlib import Path as FilePath

from circuitview.core.checkpoint import open_model
from circuitview.core.expansion import Expansion, expand
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
) -> Expansion:
    """Every path to the logit of a token, and the sum that proves them.

    Held fixed: attention patterns and norm scales, at what the model did on this prompt.

    Args:
        model: a bundled name, a folder, or a model that is open.
        prompt: the text.
        target: the token whose logit is explained; None takes the top prediction at `dest`.
        versus: a token to subtract, or None.
        dest: the position that predicts; negative counts from the end.
        dtype: "float32" or "float64".
        prepend_bos: whether BOS stands in front; None does as the model was trained.

    Raises:
        CircuitviewError: one line that names what is wrong and the remedy.
        ImbalanceError: where the paths don't add up to the model's logit.
    """
    if dtype not in DTYPES:
        raise CircuitviewError(f"dtype {dtype!r} is unknown; choose float32 or float64")
    opened = model if isinstance(model, Model) else open_model(model)
    recording = opened.run(opened.prompt(prompt, prepend_bos), dtype)
    expansion = expand(recording, resolve_target(recording, opened.tokenizer, target, versus, dest))
    expansion.require_balance()
    return expansion
