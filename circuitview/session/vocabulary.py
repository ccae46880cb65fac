"""Finding a token by typing: spaces are visible, the best matches come first."""

from collections.abc import Sequence

SPACE = "␣"


def typed_label(text: str) -> str:
    """What is typed, as labels write it: a space as "␣", a newline as "↵"."""
    return text.replace(" ", SPACE).replace("\n", "↵").replace("\t", "⇥")


def untyped_label(label: str) -> str:
    """What was typed, where typed_label made `label` of it."""
    return label.replace(SPACE, " ").replace("↵", "\n").replace("⇥", "\t")


def completions(labels: Sequence[str], typed: str, limit: int = 50) -> tuple[str, ...]:
    """The labels that hold `typed`: itself, itself after a space, those that begin so, the rest.

    Within each group short labels come first, then the vocabulary's own order, in which frequent
    tokens stand early as a rule. Case counts only where a capital is typed.

    Cost: one pass over the labels.
    """
    wanted = typed_label(typed)
    if not wanted:
        return tuple(labels[:limit])
    spaced = SPACE + wanted
    loose = wanted == wanted.lower()
    found = []
    for place, label in enumerate(labels):
        seen = label.lower() if loose else label
        if wanted not in seen:
            continue
        if seen == wanted:
            rank = 0
        elif seen == spaced:
            rank = 1
        elif seen.startswith((wanted, spaced)):
            rank = 2
        else:
            rank = 3
        found.append((rank, seen != label, len(label), place, label))
    found.sort()
    return tuple(label for *_, label in found[:limit])
