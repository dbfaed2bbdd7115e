"""Learning a language: counting words and letters, and the file."""

import math

import pytest
from typer.testing import CliRunner

import readleaf
from export.language import LABELLED, LISTED, debian_lists, learn_language
from serving.language import BEGIN, END, LETTERS, core, read_language
from training.errors import DataError
from training.metrics.edit_distance import alphanumeric_only

LABELS = ["Exit", "EXIT!", "sale", "&"]
LISTS = [(0.8, ["exit", "leaf", "leaf's"]), (0.2, ["exit", "leaves", "leavers", "---", "café"])]


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


def test_letters_by_hand():
    """One word: after nothing e, x, i, t and the end are equally likely; after e comes x, unless something new does."""
    learned = learn_language(["exit"], [], order=2)
    alone = (1 + 5 / LETTERS) / (5 + 5)
    assert math.exp(learned.follows["x"]) == pytest.approx(alone)
    assert math.exp(learned.follows["ex"]) == pytest.approx((1 + 1 * alone) / (1 + 1))
    assert math.exp(learned.falls_back["e"]) == pytest.approx(1 / 2)
    assert math.exp(learned.follows["t" + END]) == pytest.approx((1 + 1 * alone) / (1 + 1))


def test_a_core_is_what_is_scored():
    """The service may not import training; both must judge the same letters."""
    for text in ("It's", "N17-4GU", "&", "Café", "ÄÖß", "İ", "١٢"):
        assert core(text) == alphanumeric_only(text)


def test_nothing_to_learn_from():
    with pytest.raises(DataError, match="no label"):
        learn_language([], LISTS, order=3)


def test_lists_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("export.language.DICTIONARY", tmp_path)
    (tmp_path / "american-english").write_text("leaf\n")
    with pytest.raises(DataError, match="lacks american-english-small, american-english-large: install wamerican"):
        debian_lists()
    for name in ("american-english-small", "american-english-large"):
        (tmp_path / name).write_text("tree\nbush\n")
    assert [words[:1] for _, words in debian_lists()] == [["tree"], ["leaf"], ["tree"]]


def test_the_command_learns_from_training_labels_and_lists(tmp_path, monkeypatch):
    dictionary = tmp_path / "dict"
    dictionary.mkdir()
    for name in ("american-english-small", "american-english", "american-english-large"):
        (dictionary / name).write_text("leaf\nread\nroot\n")
    monkeypatch.setattr("export.language.DICTIONARY", dictionary)
    rows = ["file\ttext\tsource\tset", "a.jpg\tBotanic!\tmade\ttrain", "b.jpg\tUnseen\tmade\tval"]
    (tmp_path / "labels.tsv").write_text("\n".join(rows) + "\n")
    file = tmp_path / "made/language.npz"
    words = ["export", "language", "--data", str(tmp_path), "--out", str(file), "--weight", "0.3", "--bonus", "0.7"]
    answer = CliRunner().invoke(readleaf.app, words)
    assert answer.exit_code == 0, answer.output
    language = read_language(file)
    assert set(language.words) == {"botanic", "leaf", "read", "root"}  # nothing of val
    assert (language.weight, language.bonus) == (0.3, 0.7)
    assert language.score("leaf") > language.score("laef")
    assert language.score("roots") > language.score("rtsoo")  # spelled letter by letter
