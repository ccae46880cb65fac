"""What a bare weights file may leave open of its config: every key that can be answered.

Asked for by whoever reads such a file, the window's dialog and the command line's help; no torch.
"""

from dataclasses import dataclass

from circuitview.core.config import ACTIVATIONS

NUMBERS = "numbers"  # in place of a tokenizer.json: tokens are typed as their numbers
TOKENIZER = "tokenizer"
_YES_NO = ("false", "true")


@dataclass(frozen=True, slots=True)
class Question:
    """What a file does not say.

    Attributes:
        field: of ModelConfig, or "tokenizer".
        choices: the answers, or none where it is a number or a path.
        default: what is taken where nobody answers; None where somebody must.
        why: why the file does not say it, in one sentence.
    """

    field: str
    choices: tuple[str, ...]
    default: str | None
    why: str


_ALL = (
    Question(
        "normalization_type",
        ("LNPre", "RMSPre", "none"),
        None,
        "norms without gains leave no trace",
    ),
    Question("eps", (), "1e-05", "added to the variance before its root"),
    Question("act_fn", ACTIVATIONS, None, "a nonlinearity has no weights"),
    Question(
        "parallel_attn_mlp",
        _YES_NO,
        "false",
        "the MLP stands behind attention (false) or beside it (true)",
    ),
    Question(
        "positional_embedding_type",
        ("standard", "shortformer", "rotary", "none"),
        None,
        "the file holds no position embeddings",
    ),
    Question("rotary_dim", (), None, "where rotary: how many numbers turn"),
    Question("rotary_base", (), "10000", "where rotary: what the angles are powers of"),
    Question("rotary_adjacent_pairs", _YES_NO, "false", "where rotary: which numbers pair up"),
    Question("n_ctx", (), "1024", "the longest prompt leaves no trace without position embeddings"),
    Question(
        "attn_scale",
        (),
        None,
        "what scores are divided by leaves no trace; sqrt(d_head) as a rule",
    ),
    Question(
        TOKENIZER, (NUMBERS,), None, f"a path, or {NUMBERS!r} to type tokens as their numbers"
    ),
    Question(
        "bos_token_id", (), "the tokenizer's", "the token that stands before each prompt, or none"
    ),
)
# As they are asked where nothing is known; a file narrows choices and defaults.
QUESTIONS = {question.field: question for question in _ALL}
# Answers that are rarely needed, and so not asked for, but taken.
TAKEN = ("use_attn_scale", "output_logits_soft_cap")
# What `--config` takes beside the sizes, which the arrays tell.
KEYS = (*(field for field in QUESTIONS if field != TOKENIZER), *TAKEN)
