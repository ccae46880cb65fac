"""Prompts in one line each, cut in the middle, so that what differs between two is seen."""

from circuitview.figures.text_width import ELLIPSIS, elide_middle, width

_TAIL = 0.4  # of what is left beside the words that differ, for what comes after them


def quoted(lead: str, prompt: str, size: float, room: float) -> str:
    """`lead` and the prompt in quotes, in `room` pixels."""
    left = room - width(f"{lead}“”", size)
    return f"{lead}“{elide_middle(_one_line(prompt), size, left)}”"


def quoted_pair(
    leads: tuple[str, str], prompts: tuple[str, str], size: float, room: float
) -> tuple[str, str]:
    """Two leads with their prompts in quotes, both cut at the same places: what they share gives
    way to the words that differ."""
    one, other = (_one_line(prompt) for prompt in prompts)
    left = room - max(width(f"{lead}“”", size) for lead in leads)
    cut = _cut_alike(one, other, size, left)
    first, second = (f"{lead}“{text}”" for lead, text in zip(leads, cut, strict=True))
    return first, second


def _one_line(prompt: str) -> str:
    return " ".join(prompt.split())


def _cut_alike(one: str, other: str, size: float, room: float) -> tuple[str, str]:
    if max(width(one, size), width(other, size)) <= room:
        return one, other
    start, end = _shared(one, other)
    texts = (one, other)
    differing = [text[start : len(text) - end] for text in texts]
    before, after = one[:start], one[len(one) - end :]
    ellipses = 2 * width(ELLIPSIS, size)
    needed = min(max(width(words, size) for words in differing), max(room - ellipses, 0.0))
    left = room - needed
    after_room = min(width(after, size), max(_TAIL * left, left - width(before, size)))
    head = elide_middle(before, size, left - after_room)
    tail = elide_middle(after, size, after_room)
    made = [f"{head}{elide_middle(words, size, needed)}{tail}" for words in differing]
    return made[0], made[1]


def _shared(one: str, other: str) -> tuple[int, int]:
    """How many characters two texts share at the start and at the end, whole words each."""
    most = min(len(one), len(other))
    start = 0
    while start < most and one[start] == other[start]:
        start += 1
    if start < max(len(one), len(other)):  # a word that goes on otherwise is not shared
        start = one.rfind(" ", 0, start) + 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    shared = one[len(one) - end :]
    # The words after it begin with a space.
    end = len(shared) - shared.find(" ") if " " in shared else 0
    return start, end
