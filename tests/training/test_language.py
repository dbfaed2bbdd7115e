"""Counting words and letters."""

import math

import pytest

from training.errors import DataError
from training.language import BEGIN, END, LABELLED, LETTERS, LISTED, debian_lists, learn_language

LABELS = ["Exit", "EXIT!", "sale", "&"]
LISTS = [(0.8, ["exit", "leaf", "leaf's"]), (0.2, ["exit", "leaves", "leavers", "---"])]


@pytest.fixture(scope="module")
def learned():
    return learn_language(LABELS, LISTS, order=3)


def test_words_come_from_labels_and_lists(learned):
    assert learned.words == pytest.approx(
        {
            "exit": LABELLED * 2 / 4 + LISTED * 0.8 / 2,
            "sale": LABELLED / 4,
            "": LABELLED / 4,  # signs alone
            "leaf": LISTED * 0.8 / 2,
            "leaves": LISTED * 0.2 / 2,  # exit belongs to the list of commoner words
            "leavers": LISTED * 0.2 / 2,
        }
    )
    assert sum(learned.words.values()) == pytest.approx(LABELLED + LISTED)


def after(learned, context, letter):
    """The probability of a letter, falling back by hand."""
    if context + letter in learned.follows:
        return math.exp(learned.follows[context + letter])
    if not context:
        return None
    shorter = after(learned, context[1:], letter)
    return None if shorter is None else math.exp(learned.falls_back.get(context, 0.0)) * shorter


@pytest.mark.parametrize("context", ["", "e", "le", "ea", BEGIN, BEGIN * 2, "zz", "ve"])
def test_what_may_follow_a_context_adds_up(learned, context):
    seen = {letters[-1] for letters in learned.follows if len(letters) == 1}
    total = sum(after(learned, context, letter) for letter in seen)
    unseen = (LETTERS - len(seen)) / LETTERS  # what Witten and Bell leave to letters that never came up
    room = unseen * math.exp(learned.falls_back[""])
    for shorter in range(1, len(context) + 1):
        room *= math.exp(learned.falls_back.get(context[-shorter:], 0.0))
    assert total + room == pytest.approx(1.0)


def test_a_letter_that_follows_often_is_likely(learned):
    assert learned.follows["exi"] > learned.follows["ale"] > learned.follows["sal"] - 1
    assert math.exp(learned.follows["it" + END]) > 0.5


def test_nothing_to_learn_from():
    with pytest.raises(DataError, match="no label"):
        learn_language([], LISTS, order=3)


def test_lists_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("training.language.DICTIONARY", tmp_path)
    (tmp_path / "american-english").write_text("leaf\n")
    with pytest.raises(DataError, match="lacks american-english-small, american-english-large: install wamerican"):
        debian_lists()
    for name in ("american-english-small", "american-english-large"):
        (tmp_path / name).write_text("tree\nbush\n")
    assert [words[:1] for _, words in debian_lists()] == [["tree"], ["leaf"], ["tree"]]
