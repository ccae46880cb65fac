"""Completion from the vocabulary."""

import time

from circuitview.session.vocabulary import completions, typed_label, untyped_label

LABELS = ("BOS", "Tea", "tea", "␣tea", "␣team", "steam", "␣a␣tea", "↵")


def test_exact_then_spaced_then_beginning_then_anywhere():
    assert completions(LABELS, "tea") == ("tea", "Tea", "␣tea", "␣team", "steam", "␣a␣tea")


def test_typed_space_finds_only_what_has_it():
    assert completions(LABELS, " tea") == ("␣tea", "␣team", "␣a␣tea")


def test_capital_counts_where_it_is_typed():
    assert completions(LABELS, "Tea") == ("Tea",)


def test_nothing_typed_offers_the_first():
    assert completions(LABELS, "", limit=2) == ("BOS", "Tea")
    assert typed_label("\n ") == "↵␣"


def test_what_was_typed_is_read_back_from_what_is_seen():
    assert untyped_label(typed_label("\tso I\n drink")) == "\tso I\n drink"


def test_fifty_thousand_labels_are_searched_while_one_types():
    labels = tuple(f"␣word{number}" for number in range(50_000))
    begin = time.perf_counter()
    found = completions(labels, "word12")
    assert found[0] == "␣word12"
    assert time.perf_counter() - begin < 1.0  # about a hundredth of it on a quiet machine
