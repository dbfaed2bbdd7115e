"""The language: what it says of words, and its file."""

import math
from dataclasses import replace

import numpy as np
import pytest

from serving.errors import ModelCorrupt
from serving.language import Language, core, read_language

# Of letters: "ab" and "a" are spelled out, after nothing and after one letter.
LANGUAGE = Language(
    words={"ab": 0.3, "": 0.1},
    other=0.6,
    code=0.0,
    follows={"a": math.log(0.4), "b": math.log(0.2), "$": math.log(0.3), "^a": math.log(0.5), "ab": math.log(0.9)},
    falls_back={"": math.log(0.02), "^": math.log(0.25), "a": math.log(0.1), "b": math.log(1.0)},
    order=2,
    weight=0.5,
    bonus=2.0,
)


def test_a_core_is_letters_and_digits_without_case():
    assert [core(text) for text in ("It's", "N17-4GU", "&", "Café")] == ["its", "n174gu", "", "caf"]


@pytest.mark.parametrize(
    ("word", "probability"),
    [
        ("ab", 0.3 + 0.6 * 0.5 * 0.9 * 1.0 * 0.3),  # known, or spelled: a, b after a, the end
        ("ba", 0.6 * (0.25 * 0.2) * 0.4 * (0.1 * 0.3)),  # b never began a word; nothing is known of a after b
        ("", 0.1 + 0.6 * 0.25 * 0.3),
        ("a?", 0.6 * 0.5 * (0.1 * 0.02 / 37) * 0.3),  # a letter that was never seen
    ],
)
def test_scores_by_hand(word, probability):
    assert LANGUAGE.score(word) == pytest.approx(0.5 * math.log(probability) + 2.0 * len(word))


def test_a_word_that_nothing_speaks_for_has_a_score_all_the_same():
    assert math.isfinite(replace(LANGUAGE, other=0.0).score("zz" * 200))


def test_a_code_is_as_good_as_any_other():
    language = replace(LANGUAGE, code=0.01, other=0.0)
    assert language.score("n174gu") == pytest.approx(language.score("n174cu"), rel=1e-6)
    language = replace(LANGUAGE, code=0.01)
    assert language.score("b7") == pytest.approx(
        0.5 * math.log(0.01 / 37**3 + 0.6 * 0.05 * (0.02 / 37) * 0.3) + 4, rel=1e-6
    )


def test_what_is_written_is_read(tmp_path):
    LANGUAGE.write(tmp_path / "language.npz")
    found = read_language(tmp_path / "language.npz")
    assert found.words == pytest.approx(LANGUAGE.words)
    assert (found.other, found.code, found.order, found.weight, found.bonus) == (0.6, 0.0, 2, 0.5, 2.0)
    for word in ("ab", "ba", "b", ""):
        assert found.score(word) == pytest.approx(LANGUAGE.score(word), abs=1e-6)


def test_empty_tables_are_kept(tmp_path):
    for words in ({}, {"": 0.5}):
        replace(LANGUAGE, words=words, falls_back={}).write(tmp_path / "language.npz")
        found = read_language(tmp_path / "language.npz")
        assert (found.words, found.falls_back) == (words, {})


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "half", "other arrays", "unequal tables", "not a number"])
def test_a_damaged_file_is_named(tmp_path, kind):
    file = tmp_path / "language.npz"
    LANGUAGE.write(file)
    whole = file.read_bytes()
    with np.load(file) as stored:
        arrays = dict(stored)
    if kind == "missing":
        file.unlink()
    elif kind in ("empty", "text", "half"):
        file.write_bytes({"empty": b"", "text": b"no archive", "half": whole[: len(whole) // 2]}[kind])
    else:
        changed = {
            "other arrays": {"words": arrays["words"]},
            "unequal tables": arrays | {"words_values": arrays["words_values"][1:]},
            "not a number": arrays | {"words_values": arrays["words_values"] * np.nan},
        }
        np.savez(file, **changed[kind])
    with pytest.raises(ModelCorrupt, match=r"language\.npz is no language that can be read"):
        read_language(file)


@pytest.mark.parametrize("changes", [{"order": 0}, {"weight": math.nan}, {"code": -0.1}, {"words": {"a": math.inf}}])
def test_impossible_numbers_are_refused(changes):
    with pytest.raises(ValueError, match="a language needs finite numbers"):
        replace(LANGUAGE, **changes)
