"""From answers at places to words, beside a slow twin that tries every path."""

import math
from collections import defaultdict
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.language import Language
from serving.pipelines.spelling import LEAST, Speller, Spelling, surest, written_in_columns, written_in_steps

SYMBOLS = "aB1-"
# `aa` is the only word, and all letters are equally likely.
LANGUAGE = Language({"aa": 0.5}, 0.5, 0.0, {letter: math.log(0.2) for letter in "ab1$"}, {}, 1, weight=1.0, bonus=0.0)


def every_path(columns, joined):
    """The probability of each word, summed over all ways to write it."""
    words = defaultdict(float)
    for path in product(*columns):
        letters = [symbol for symbol, _ in path]
        if joined:
            word = "".join(symbol for symbol, _ in groupby(letters))
        else:
            word = "".join(letters[: letters.index("")] if "" in letters else letters)
        words[word] += math.prod(probability for _, probability in path)
    return words


def some_columns(places):
    row = st.lists(st.floats(0.01, 1), min_size=4, max_size=4)
    rows = st.lists(row, min_size=1, max_size=places)
    return rows.map(
        lambda rows: [
            [(s, value / sum(row)) for s, value in zip(["a", "b", "1", ""], row, strict=True)] for row in rows
        ]
    )


@given(some_columns(5))
def test_words_in_columns_have_the_probability_of_all_their_paths(columns):
    assert written_in_columns(columns, width=2000) == pytest.approx(every_path(columns, joined=True), rel=1e-9)


@given(some_columns(4))
def test_words_in_steps_end_at_the_first_end(columns):
    assert written_in_steps(columns, width=2000) == pytest.approx(every_path(columns, joined=False), rel=1e-9)


def test_a_beam_keeps_the_best():
    columns = [[("a", 0.6), ("b", 0.3), ("", 0.1)]] * 6
    whole = written_in_columns(columns, width=2000)
    few = written_in_columns(columns, width=24)
    assert len(few) <= 24
    assert max(few, key=few.get) == max(whole, key=whole.get)


def test_long_lines_do_not_vanish():
    found = written_in_columns([[("a", 1e-3), ("", 1e-4)]] * 400)
    assert sum(found.values()) == pytest.approx(1.0)


def answers(*places):
    """Classes and probabilities of places given as {symbol: probability}; "" is no character."""
    symbols = [*SYMBOLS, ""]
    classes = [[symbols.index(symbol) for symbol in place] for place in places]
    return classes, [list(place.values()) for place in places]


UNSURE = answers({"a": 0.9, "B": 0.1}, {"": 0.99, "a": 0.01}, {"1": 0.6, "a": 0.4})


def test_without_a_language_the_most_probable_word_is_taken():
    assert Speller(SYMBOLS, "ctc")(*UNSURE).text == "a1"


def test_a_language_decides_where_the_picture_does_not():
    assert Speller(SYMBOLS, "ctc", LANGUAGE)(*UNSURE).text == "aa"
    clear = answers({"a": 0.9999, "B": 0.0001}, {"": 1.0, "a": 0.0}, {"1": 0.9997, "a": 0.0003})
    assert Speller(SYMBOLS, "ctc", LANGUAGE)(*clear).text == "a1"


def test_case_and_signs_are_the_pictures_business():
    """Texts with the same letters stand for one another; the likeliest of them is shown."""
    places = answers({"-": 0.45, "": 0.55}, {"B": 1.0, "": 0.0})
    spelling = Speller(SYMBOLS, "ctc")(*places)
    assert spelling.text == "B"
    assert spelling.confidence == pytest.approx(1.0)  # "-B" has the same letters
    assert dict(spelling.candidates) == pytest.approx({"B": 0.55, "-B": 0.45})


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_shares_are_probabilities(temperature):
    spelling = Speller(SYMBOLS, "ctc", LANGUAGE, temperature)(*UNSURE)
    assert sum(share for _, share in spelling.candidates) == pytest.approx(1.0)
    assert spelling.text == "aa"  # whatever the temperature
    shares = [share for _, share in spelling.candidates]
    assert shares == sorted(shares, reverse=True)


def test_a_higher_temperature_is_less_sure():
    sure = [Speller(SYMBOLS, "ctc", LANGUAGE, each)(*UNSURE).confidence for each in (0.5, 1.0, 3.0)]
    assert sure == sorted(sure, reverse=True)


def test_nothing_is_read_with_confidence_0():
    spelling = Speller(SYMBOLS, "ctc", LANGUAGE)(*answers({"": 1.0, "a": 0.0}, {"": 1.0, "a": 0.0}))
    assert (spelling.text, spelling.confidence, spelling.characters()) == ("", 0.0, ())


def test_what_may_be_nothing_has_no_characters():
    spelling = Speller(SYMBOLS, "ctc")(*answers({"": 0.9, "a": 0.1}))
    assert (spelling.text, spelling.confidence, spelling.characters()) == ("", 0.0, ())
    assert dict(spelling.candidates) == pytest.approx({"": 0.9, "a": 0.1})


def test_signs_alone_are_no_surer_than_they_look():
    """A letter seen with 0.6 must not lose to the dash that it is on its side."""
    dash = Speller(SYMBOLS, "ctc")(*answers({"-": 0.6, "": 0.4}))
    assert (dash.text, dash.confidence) == ("-", pytest.approx(0.6))
    letter = Speller(SYMBOLS, "ctc")(*answers({"1": 0.6, "": 0.4}))
    assert surest({0: letter, 1: dash, 3: dash}, 0.1) == 0


def test_answers_that_are_hardly_possible_are_not_followed():
    spelling = Speller(SYMBOLS, "ctc")(*answers({"a": 1.0, "B": LEAST / 2}))
    assert spelling.candidates == (("a", 1.0),)


def test_what_was_not_followed_is_doubt():
    spelling = Speller(SYMBOLS, "ctc")(*answers({"a": 0.99, "B": 0.01}, {"": 0.985, "a": 0.015}))
    assert spelling.text == "a"
    assert spelling.confidence == pytest.approx(0.99 * 0.985)


def test_attention_reads_up_to_the_end():
    places = answers({"a": 0.9, "B": 0.1}, {"a": 0.8, "": 0.2}, {"": 1.0, "a": 0.0}, {"B": 1.0, "a": 0.0})
    spelling = Speller(SYMBOLS, "attention")(*places)
    assert spelling.text == "aa"
    assert spelling.confidence == pytest.approx(0.72)


def test_characters_say_what_else_may_stand_there():
    candidates = (("corn", 0.6), ("com", 0.2), ("Corn", 0.1), ("cor", 0.06), ("scorn", 0.04))
    first, second, third, last = Spelling("corn", 0.9, candidates).characters()
    assert (first.text, first.confidence) == ("c", pytest.approx(0.86))
    assert first.alternatives == (("C", pytest.approx(0.1)), ("sc", pytest.approx(0.04)))
    assert second.confidence == pytest.approx(1.0)
    assert third.alternatives == (("m", pytest.approx(0.2)),)
    assert last.alternatives == (("", pytest.approx(0.26)),)


def test_a_crop_is_read_as_it_is_unless_another_turn_is_clearly_surer():
    def spelled(confidence):
        return Spelling("a", confidence)

    assert surest({0: spelled(0.5), 1: spelled(0.59), 3: spelled(0.1)}, 0.1) == 0
    assert surest({0: spelled(0.5), 1: spelled(0.1), 3: spelled(0.61)}, 0.1) == 3
    assert surest({0: spelled(0.0)}, 0.1) == 0
