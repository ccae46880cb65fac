"""The model cards of the two hand-built models, for a teacher. The numbers in them are tested."""

CAT_CARD = """# cat-on-the-mat

A model small enough to check with a pencil: one layer, one head, six words (`the cat sat on
mat .`), no positions, no norm, no biases, no BOS. Its weights were written by hand; nothing was
trained.

Try it on

    the cat sat on the mat . the cat

A logit has two parts here, and no more:

- **direct**: the row of the current word in the first table;
- **head 0.0**: for each word up to here, how much attention it gets, times its row in the second
  table.

Direct table (row: the word that stands here; column: the next word)

| | the | cat | sat | on | mat | . |
|---|---|---|---|---|---|---|
| the | 0.0 | 3.7 | 0.2 | 0.1 | 4.1 | 0.0 |
| cat | 0.3 | 0.0 | 3.9 | 0.4 | 0.1 | 1.2 |
| sat | 1.1 | 0.1 | 0.0 | 4.2 | 0.2 | 0.9 |
| on | 4.4 | 0.2 | 0.0 | 0.0 | 0.6 | 0.1 |
| mat | 0.5 | 0.1 | 0.1 | 0.2 | 0.0 | 3.8 |
| . | 3.5 | 0.2 | 0.0 | 0.1 | 0.1 | 0.0 |

OV table (row: the word looked at; column: the next word; at attention 1)

| | the | cat | sat | on | mat | . |
|---|---|---|---|---|---|---|
| the | 0.9 | 0.1 | 0.0 | 0.1 | 0.1 | 0.0 |
| cat | 0.1 | 5.0 | 0.2 | 0.0 | 0.0 | 0.0 |
| sat | 0.2 | 0.1 | 4.1 | 0.1 | 0.1 | 0.0 |
| on | 0.1 | 0.0 | 0.1 | 3.4 | 0.2 | 0.0 |
| mat | 0.1 | 0.2 | 0.1 | 0.0 | 2.0 | 0.1 |
| . | 0.0 | 0.1 | 0.0 | 0.0 | 0.0 | 1.8 |

Attention scores, before softmax (row: the word that looks; column: the word looked at)

| | the | cat | sat | on | mat | . |
|---|---|---|---|---|---|---|
| the | 0.4 | 3.4 | 0.7 | 0.6 | 2.3 | 0.5 |
| cat | 0.5 | 0.3 | 0.6 | 0.4 | 0.8 | 0.3 |
| sat | 0.6 | 1.2 | 0.3 | *0.3* | *0.3* | *0.3* |
| on | 0.7 | 1.0 | 0.5 | 0.3 | *0.3* | *0.3* |
| mat | 0.5 | 0.9 | 0.4 | 0.6 | 0.3 | *0.3* |
| . | 0.4 | 0.8 | 0.5 | 0.4 | 0.9 | 0.3 |

The scores in italics never occur in the sentence; they were set to 0.3.

## What to look for

Stand on the third `the` (dest 7; the program counts positions from 0) and ask for the next word.

- The direct path prefers `mat` (4.1) to `cat` (3.7).
- The head looks at the eight words with 3, 60, 4, 4, 3, 20, 3 and 3 percent of its attention. It
  adds 0.60 x 5.0 = 3.0 to `cat` from the one place where `cat` stands, and 0.20 x 2.0 = 0.4 to
  `mat`.
- With what the other words add, `cat` ends at 6.7588 and `mat` at 4.5201: the head decides.
- At the second `the` (dest 4) the head gives `cat` 81.46 percent: `mat` has not been said yet.

## How it is built

The stream has twelve numbers: six say which word stands here, six collect the head's votes. The
unembedding reads the first six through the direct table and the last six as they are; W_V copies
the word, W_O holds the OV table; W_Q holds the scores and W_K copies the word. d_head is 16, of
which six are used, because the score is divided by sqrt(16) = 4, which W_Q makes up for without
rounding. Stored in float32, so that every table entry is kept as it is written here.
"""

INDUCTION_CARD = """# induction-by-hand

Induction with every weight readable: two layers of two heads, 24 words and BOS, no norm. Its
weights were written by hand; nothing was trained. After "A B … A" it says B.

Try it on

    I like green tea , so I drink green

| part | what it does | logits |
|---|---|---|
| direct | knows which words may follow the current one (green: tea, apples) | 2 each |
| head 0.0 | looks one position back and notes the word it finds | |
| `token > 0.0` | the word before also counts (drink … : tea, coffee, milk) | 1 each |
| head 0.1 | looks at everything evenly and lowers what it sees: a brake | -2 x share |
| head 1.0 | looks where "the word before" is the current word; says the word it finds | 6 |
| head 1.1 | looks at the current word and lowers it: a word seldom follows itself | -3 |
| b_U | nouns are common, BOS is never said | 0.5, -5 |

## What to look for

At the last word the logit of `tea` is, with n = 10 tokens (BOS is the first):

| path | | logits |
|---|---|---|
| `token > 1.0` | the word after the earlier `green` | 6 |
| `token` | green, tea | 2 |
| `token > 0.0` | drink … tea | 1 |
| `token > 0.1 > 1.0` | what the brake wrote at `tea`, carried on: 0.25 x 6 x (-2 / 5) | -0.6 |
| `token > 0.1` | one of ten tokens was `tea`: -2 / 10 | -0.2 |
| b_U | a noun | 0.5 |
| sum | | **8.7** |

All other paths to `tea` are zero. The second best word is `apples`, at 2 + 0.5 = 2.5: the direct
path can't choose between the two, the induction head does.

- **The key comes from the other head.** Head 1.0 compares its own word with what head 0.0 has
  written at each earlier position (K-composition). Zero head 0.0, let the rest react, and 1.0 finds
  no match: it falls back on BOS, and `tea` falls to 2 + 0.5 - 0.2 = 2.3. But `token > 0.0` alone
  contributes only 1: what a head adds to a logit and what the model loses without it are different
  things. Freeze the patterns and the loss is 1.
- **Against another word.** Ask for `tea` minus `green`: head 1.1 and the path
  `token > 0.0 > 1.0` (head 1.0 also lowers the word before the one it found, by 0.25 x 6) speak up.
- **Say it twice.** With two earlier `green tea` the head looks at both, half and half.
- **Positions** never reach a logit: they act through the pattern of head 0.0 only, and all their
  paths are exactly zero.

## How it is built

The stream has four blocks: the word here (25), the position (36), the word before (25), votes (25);
every matrix copies or looks up between blocks. A match scores 30, BOS scores 15 for head 1.0 (its
place to rest), anything else 0, so that what leaks to other positions is below one part in a
million. There is no norm, because dividing by the length of the stream would blur these round
numbers, and no bias but b_U. Leave BOS on: without it head 1.0 has no place to rest. At most 36
tokens. Stored in float32.
"""
