"""Two models whose every weight is written by hand, so that each number they show is known before.

cat-on-the-mat: one head, no positions, no norm; three tables of numbers are its whole content, and
the weights store them as they stand. induction-by-hand: a previous-token head and an induction head
that finds its key through it, beside three simpler habits. The stream is cut into blocks with one
slot a word (or a position), and every matrix copies, or looks up, between blocks.

Stored in float32: 3.7 in float16 is off by 8e-4. The cards say what comes out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import torch
from jaxtyping import Float
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as HuggingFaceTokenizer
from torch import Tensor

from circuitview.core.checkpoint.bundle import write_bundle
from circuitview.core.config import ModelConfig
from circuitview.core.hand_built_cards import CAT_CARD, INDUCTION_CARD

CAT_WORDS = ("the", "cat", "sat", "on", "mat", ".")
# Row = the word that stands here; columns as in CAT_WORDS [logits].
CAT_DIRECT = (
    (0.0, 3.7, 0.2, 0.1, 4.1, 0.0),
    (0.3, 0.0, 3.9, 0.4, 0.1, 1.2),
    (1.1, 0.1, 0.0, 4.2, 0.2, 0.9),
    (4.4, 0.2, 0.0, 0.0, 0.6, 0.1),
    (0.5, 0.1, 0.1, 0.2, 0.0, 3.8),
    (3.5, 0.2, 0.0, 0.1, 0.1, 0.0),
)
# Row = the word that the head looks at; columns as in CAT_WORDS [logits at weight 1].
CAT_OV = (
    (0.9, 0.1, 0.0, 0.1, 0.1, 0.0),
    (0.1, 5.0, 0.2, 0.0, 0.0, 0.0),
    (0.2, 0.1, 4.1, 0.1, 0.1, 0.0),
    (0.1, 0.0, 0.1, 3.4, 0.2, 0.0),
    (0.1, 0.2, 0.1, 0.0, 2.0, 0.1),
    (0.0, 0.1, 0.0, 0.0, 0.0, 1.8),
)
# Row = the word that looks (dest), column = the word it looks at (src). The sentence does not fix
# sat and on looking at words that come later in it, nor mat looking at the full stop: 0.3.
CAT_SCORES = (
    (0.4, 3.4, 0.7, 0.6, 2.3, 0.5),
    (0.5, 0.3, 0.6, 0.4, 0.8, 0.3),
    (0.6, 1.2, 0.3, 0.3, 0.3, 0.3),
    (0.7, 1.0, 0.5, 0.3, 0.3, 0.3),
    (0.5, 0.9, 0.4, 0.6, 0.3, 0.3),
    (0.4, 0.8, 0.5, 0.4, 0.9, 0.3),
)

BOS = "<|BOS|>"
INDUCTION_WORDS = (
    *(BOS, "I", "you", "we", "like", "drink", "eat", "see", "and", "so", "the", "green", "red"),
    *("black", "cold", "sweet", "tea", "coffee", "milk", "apples", "cat", "dog", "sat", ",", "."),
)
# The direct path: which words may follow the current one, FOLLOWS logits each.
FOLLOWERS = {
    "I": "like drink",
    "you": "like eat",
    "we": "eat see",
    "like": "green red black the",
    "drink": "green black cold",
    "eat": "red green sweet",
    "see": "the",
    "and": "I you we",
    "so": "I you we",
    "the": "cat dog",
    "green": "tea apples",
    "red": "apples tea",
    "black": "coffee tea",
    "cold": "milk tea",
    "sweet": "apples coffee",
    "cat": "sat",
    "dog": "sat",
    "sat": ", .",
    "tea": ", .",
    "coffee": ", .",
    "milk": ", .",
    "apples": ", .",
    ",": "and so",
}
# The path through head 0.0: what the word before the current one makes likely, SKIPS logits each.
SKIP_FOLLOWERS = {"drink": "tea coffee milk", "eat": "apples", "see": "cat dog"}
FOLLOWS, SKIPS = 2.0, 1.0
# b_U: nouns are common here, and BOS is never said.
NOUNS, NOUN_BIAS, BOS_BIAS = ("tea", "coffee", "milk", "apples", "cat", "dog"), 0.5, -5.0
# Scores: a match (0.0, 1.0, 1.1), and BOS as the place where 1.0 rests when nothing matches.
MATCH, REST = 30.0, 15.0
# What the heads write into the logits, for weight 1.
BRAKE, LOOKED_UP, OWN_WORD = -2.0, 6.0, -3.0
# How much of what 0.0 and 0.1 have written at a word head 1.0 carries along with the word.
CARRIED_BEFORE, CARRIED_BRAKE = -0.25, 0.25


@dataclass(frozen=True, eq=False)
class HandBuilt:
    """A bundle that is written out of this file; see checkpoint/bundle.py for the parts."""

    name: str
    config: ModelConfig
    arrays: dict[str, Tensor]
    tokenizer: HuggingFaceTokenizer
    card: str

    def write(self, models_folder: FilePath) -> FilePath:
        """Write the bundle to `models_folder`/name and return that folder.

        Raises:
            CircuitviewError: where the folder can't be written to.
        """
        folder = models_folder / self.name
        write_bundle(
            folder, self.config, self.arrays, self.tokenizer.to_str(pretty=True), self.card
        )
        return folder


def hand_built() -> tuple[HandBuilt, ...]:
    """All models that are made by hand."""
    return cat_on_the_mat(), induction_by_hand()


def cat_on_the_mat() -> HandBuilt:
    """One head over six words: a direct table, an OV table and a table of scores, as they stand.

    The stream is [the word here | what the head votes for], six slots each.
    """
    V, d_head = len(CAT_WORDS), 16
    D = 2 * V
    here, votes = slice(0, V), slice(V, D)
    config = ModelConfig(
        n_layers=1,
        n_heads=1,
        d_model=D,
        # sqrt(16) = 4 divides exactly, and so the scores come out to the last bit.
        d_head=d_head,
        n_ctx=32,
        d_vocab=V,
        positional_embedding_type="none",
    )
    W_E, W_U = torch.zeros(V, D), torch.zeros(D, V)
    W_E[:, here] = torch.eye(V)
    W_U[here] = torch.tensor(CAT_DIRECT)
    W_U[votes] = torch.eye(V)
    W_Q, W_K, W_V = (torch.zeros(1, D, d_head) for _ in range(3))
    W_Q[0, here, :V] = torch.tensor(CAT_SCORES) * 4  # the query is the word's row of scores
    W_K[0, here, :V] = torch.eye(V)
    W_V[0, here, :V] = torch.eye(V)
    W_O = torch.zeros(1, d_head, D)
    W_O[0, :V, votes] = torch.tensor(CAT_OV)
    arrays = {
        "embed.W_E": W_E,
        "blocks.0.attn.W_Q": W_Q,
        "blocks.0.attn.W_K": W_K,
        "blocks.0.attn.W_V": W_V,
        "blocks.0.attn.W_O": W_O,
        "unembed.W_U": W_U,
    }
    tokenizer = _word_tokenizer(CAT_WORDS, pre_tokenizers.WhitespaceSplit())
    return HandBuilt("cat-on-the-mat", config, arrays, tokenizer, CAT_CARD)


def induction_by_hand() -> HandBuilt:
    """Two layers of two heads that complete "A B … A" with B, every step readable.

    The stream is [the word here | the position | the word before | what heads vote for].
    """
    V, n_ctx = len(INDUCTION_WORDS), 36
    d_head = n_ctx  # sqrt(36) = 6, and room for one slot a position
    D = 3 * V + n_ctx
    config = ModelConfig(
        n_layers=2, n_heads=2, d_model=D, d_head=d_head, n_ctx=n_ctx, d_vocab=V, bos_token_id=0
    )
    blocks = _Blocks(
        here=slice(0, V),
        place=slice(V, V + n_ctx),
        before=slice(V + n_ctx, 2 * V + n_ctx),
        votes=slice(2 * V + n_ctx, D),
    )
    W_E, W_pos, W_U = torch.zeros(V, D), torch.zeros(n_ctx, D), torch.zeros(D, V)
    W_E[:, blocks.here] = torch.eye(V)
    W_pos[:, blocks.place] = torch.eye(n_ctx)
    W_U[blocks.here] = _lookup(FOLLOWERS, FOLLOWS)
    W_U[blocks.before] = _lookup(SKIP_FOLLOWERS, SKIPS)
    W_U[blocks.votes] = torch.eye(V)
    b_U = torch.zeros(V)
    b_U[[INDUCTION_WORDS.index(noun) for noun in NOUNS]] = NOUN_BIAS
    b_U[0] = BOS_BIAS
    arrays = {"embed.W_E": W_E, "pos_embed.W_pos": W_pos, "unembed.W_U": W_U, "unembed.b_U": b_U}
    for layer in range(2):
        for kind in "QKV":
            arrays[f"blocks.{layer}.attn.W_{kind}"] = torch.zeros(2, D, d_head)
        arrays[f"blocks.{layer}.attn.W_O"] = torch.zeros(2, d_head, D)
    _write_induction_heads(arrays, blocks)
    tokenizer = _word_tokenizer(INDUCTION_WORDS, pre_tokenizers.Whitespace())
    tokenizer.add_special_tokens([AddedToken(BOS, special=True)])
    return HandBuilt("induction-by-hand", config, arrays, tokenizer, INDUCTION_CARD)


@dataclass(frozen=True)
class _Blocks:
    """Which slots of the stream hold what."""

    here: slice
    place: slice
    before: slice
    votes: slice


def _write_induction_heads(arrays: dict[str, Tensor], blocks: _Blocks) -> None:
    here, place, before, votes = blocks.here, blocks.place, blocks.before, blocks.votes
    V, n_ctx = here.stop, place.stop - place.start
    words = torch.eye(V)
    spoken = words.clone()
    spoken[0, 0] = 0.0  # BOS is looked at, but never copied
    # The score is divided by sqrt(d_head); made up for here.
    match, rest = MATCH * n_ctx**0.5, REST * n_ctx**0.5

    def head(layer: int, head: int) -> tuple[Tensor, ...]:
        return tuple(arrays[f"blocks.{layer}.attn.W_{kind}"][head] for kind in "QKVO")

    # 0.0, previous token: the query asks for its own position less one.
    Q, K, value, out = head(0, 0)
    Q[place] = match * torch.eye(n_ctx).roll(-1, 1)
    Q[place.start] = 0.0
    K[place] = torch.eye(n_ctx)
    value[here, :V] = words
    out[:V, before] = words
    # 0.1, brake: no query and no key, so that it looks at everything evenly.
    Q, K, value, out = head(0, 1)
    value[here, :V] = spoken
    out[:V, votes] = BRAKE * words
    # 1.0, induction: my word against the word before theirs, and BOS to rest on.
    Q, K, value, out = head(1, 0)
    Q[here, :V] = match * words
    K[before, :V] = words
    Q[here, V] = rest
    K[here.start, V] = 1.0
    value[here, :V] = spoken
    value[before, :V] = CARRIED_BEFORE * spoken
    value[votes, :V] = CARRIED_BRAKE * spoken
    out[:V, votes] = LOOKED_UP * words
    # 1.1, own word: a word seldom follows itself.
    Q, K, value, out = head(1, 1)
    Q[here, :V] = match * words
    K[here, :V] = words
    value[here, :V] = spoken
    out[:V, votes] = OWN_WORD * words


def _lookup(table: dict[str, str], value: float) -> Float[Tensor, "word follower"]:
    rows = torch.zeros(len(INDUCTION_WORDS), len(INDUCTION_WORDS))
    for word, followers in table.items():
        for follower in followers.split():
            rows[INDUCTION_WORDS.index(word), INDUCTION_WORDS.index(follower)] = value
    return rows


def _word_tokenizer(
    words: Sequence[str], splitter: pre_tokenizers.PreTokenizer
) -> HuggingFaceTokenizer:
    """One token a word; any other word is refused."""
    tokenizer = HuggingFaceTokenizer(
        models.WordLevel({word: token for token, word in enumerate(words)})
    )
    tokenizer.pre_tokenizer = splitter
    # This decoder puts a space before every piece that lacks its prefix, which no word has.
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return tokenizer
