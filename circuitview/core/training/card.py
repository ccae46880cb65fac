"""The model card of a trained bundle, written from the run's own record."""

from jaxtyping import Float
from torch import Tensor

from circuitview.core.head_kinds import HeadKinds, heads_above
from circuitview.core.training.run import TrainingRecord

_NAMED_FROM = 0.4  # mean attention weight from which a head is called after what it looks at
_WORKS_FROM = 3.0  # nats a token that the second copy saves where an induction head is at work


def model_card(name: str, record: TrainingRecord, kinds: HeadKinds) -> str:
    """The README.md of the bundle `name`."""
    settings, losses = record.settings, record.losses
    started = (
        "Head 0.0 was started looking one position back, and the positions as sines and cosines; "
        "everything after that was learned."
        if settings.started_head
        else "No head was given a start; only the positions began as sines and cosines."
    )
    validation = (
        "not measured (no text was held out)"
        if losses.validation is None
        else f"{losses.validation:.3f} nats a token on *{_title(record.held_out)}*, held out"
    )
    first = (
        f"The first {settings.repeat_stage:.0%} of the tokens are short rows of random tokens, "
        "repeated. After that a"
        if settings.repeat_stage
        else "A"
    )
    start, end = f"{settings.repeat_first:.0%}", f"{settings.repeat_last:.0%}"
    share = f"of {end}" if start == end else f"that goes from {start} to {end}"
    repeated = (
        f"{first} share {share} of the rows is a stretch repeated (two in three of random tokens, "
        "one in three of text), so that induction forms early where it can; the rest is plain text."
    )
    titles = ", ".join(_title(text) for text in record.texts)
    return f"""# {name}

An attention-only transformer: {settings.n_layers} layer{"s" if settings.n_layers > 1 else ""} of \
{settings.n_heads} heads of {settings.d_head}, d_model {settings.d_model}, n_ctx {settings.n_ctx}, \
byte-level BPE of {settings.d_vocab} tokens with `<|BOS|>` as token 0, standard learned positions, \
LayerNorm, biases, untied unembedding. Stored in float16, widened on load.

| | |
|---|---|
| validation loss | {validation} |
| repeated random tokens, first copy | {losses.first:.2f} nats a token |
| repeated random tokens, second copy | {losses.second:.2f} nats a token |
| steps, tokens trained on | {record.steps:,}, {settings.tokens:,} |
| tokens of text | {record.text_tokens:,} |
| optimiser | AdamW, cosine schedule, {settings.rate_attention:g} on the attention matrices, \
{settings.rate_rest:g} on the rest |
| precision, seed | {settings.precision}, {settings.seed} |
| time | {_time(record.seconds)} |

{_verdict(record, kinds)}

{repeated}

{started}

Heads, by their mean attention weight on a repeated random sequence ({_NAMED_FROM:g} or more):

- one back (previous-token heads): {_named(kinds.previous_token)}
- at the token after the earlier copy (induction heads): {_named(kinds.induction)}
- at the earlier copy (duplicate-token heads): {_named(kinds.duplicate_token)}

Made by `circuitview train`. Trained on: {titles}.
"""


def _verdict(record: TrainingRecord, kinds: HeadKinds) -> str:
    """What the repeated random tokens show: heads that look in the right place, and the gain.

    Neither is enough alone. To say again any token that was there is worth some nats too, and one
    layer can learn that.
    """
    drop = record.losses.first - record.losses.second
    found = bool(heads_above(kinds.induction, _NAMED_FROM))
    if drop >= _WORKS_FROM and found:
        said = "the model looks up what followed the earlier copy (an induction head at work)"
    elif found:
        said = (
            "a head looks at the token after the earlier copy, but the model makes too little of "
            f"it (under {_WORKS_FROM:g} nats) to call it an induction head at work"
        )
    else:
        why = ": one layer can't compose heads" if record.settings.n_layers == 1 else ""
        copies = "says again what was there, but does" if drop >= _WORKS_FROM else "does"
        said = (
            f"the model {copies} not look up what followed the earlier copy (no induction head"
            f"{why})"
        )
    return f"The second copy costs {drop:.2f} nats a token less than the first: {said}."


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _named(scores: Float[Tensor, "layer head"]) -> str:
    found = heads_above(scores, _NAMED_FROM)
    return ", ".join(f"{head} {score:.2f}" for head, score in found) or "none"


def _title(stem: str | None) -> str:
    return (stem or "").replace("_", " ").title()
