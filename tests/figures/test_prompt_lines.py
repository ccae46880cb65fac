"""Prompts on one line, and texts cut so that what matters stays."""

import pytest

from circuitview.figures.freezing.prompts import quoted, quoted_pair
from circuitview.figures.text_width import elide, elide_middle, width

SIZE = 12.0
LONG = "When Mary and John went to the shop in the old town by the sea, {} gave a drink to Mary"


@pytest.mark.parametrize("room", [60.0, 140.0, 300.0, 2000.0])
def test_a_prompt_is_cut_in_the_middle_and_fits(room):
    text = LONG.format("John")
    shown = elide_middle(text, SIZE, room)
    assert width(shown, SIZE) <= room
    head, cut, tail = shown.partition("…")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert bool(cut) == (room < 2000)
    assert width(shown, SIZE) > room - 40 or not cut  # no more than a few letters too little


def test_a_joined_sign_is_not_torn_in_the_middle():
    family = "👩\u200d👩\u200d👧"
    shown = elide_middle(f"ab{family}cd" * 8, SIZE, 120.0)
    assert "\u200d…" not in shown
    assert "…\u200d" not in shown


@pytest.mark.parametrize("room", [200.0, 340.0])
def test_two_prompts_keep_the_words_that_differ(room):
    prompts = LONG.format("Susan"), LONG.format("Peter")
    shown = quoted_pair(("A: ", "B: "), prompts, SIZE, room)
    for line, lead, name in zip(shown, "AB", ("Susan", "Peter"), strict=True):
        assert line.startswith(f"{lead}: “When")
        assert name in line
        assert line.endswith("ry”")
        assert width(line, SIZE) <= room
    assert shown[0][1:].replace("Susan", "Peter") == shown[1][1:]


def test_a_word_that_goes_on_differently_is_shown_whole():
    shown = quoted_pair(("", ""), (LONG.format("Johnny"), LONG.format("John")), SIZE, 260.0)
    assert "Johnny gave" in shown[0] or " Johnny…" in shown[0]
    assert "John" in shown[1]


@pytest.mark.parametrize(
    "prompts", [("", "a"), ("same", "same"), ("x" * 300, "y" * 300), ("a b" * 90, "a b" * 91)]
)
def test_any_two_prompts_fit(prompts):
    for line in quoted_pair(("A: ", "B: "), prompts, SIZE, 150.0):
        assert width(line, SIZE) <= 150.0 + width("…", SIZE)


def test_a_prompt_of_several_lines_is_one_line():
    assert quoted("", "two\n lines", SIZE, 300.0) == "“two lines”"


@pytest.mark.parametrize("room", [88.0, 94.0, 100.0])
def test_of_two_tokens_both_keep_their_beginnings(room):
    shown = elide("3 ␣green → ␣blackberry", SIZE, room)
    before, after = (part.strip() for part in shown.split("→"))
    assert after.startswith("␣b")
    assert before.startswith("3 ␣g")
    assert width(shown, SIZE) <= room


def test_a_token_that_fits_beside_a_long_one_stays_whole():
    assert elide("␣tea → ␣blackberries", SIZE, 100.0).startswith("␣tea → ␣bl")
    assert elide("␣blackberries → ␣tea", SIZE, 100.0).endswith("… → ␣tea")


def test_without_room_for_two_the_first_is_shown():
    assert elide("␣green → ␣black", SIZE, 28.0) == "␣g…"
