"""LS-ED: it learns the edit distance of words it has not seen, on this machine, in about a minute."""

import pydoc_data.topics
import re

import numpy as np
import pytest
import torch
from rapidfuzz.distance import Levenshtein

from training.alphabet import Alphabet
from training.surrogates.edit_distance import CharacterNetwork, EditDistance, WordDistorter, by_offset
from training.surrogates.learning import Surrogate, learn
from training.surrogates.pairs import Sources
from training.surrogates.quality import EDIT_DISTANCE_EDGES, measure

ALPHABET = Alphabet()
LENGTH = 26
METRIC = EditDistance(ALPHABET)
LIMIT = 0.3


@pytest.fixture(scope="module")
def words():
    """English words that come with Python, in two parts: to learn from, and held back."""
    text = " ".join(pydoc_data.topics.topics.values()).lower()
    found = sorted({word for word in re.findall("[a-z0-9]+", text) if 3 <= len(word) <= 16})
    np.random.default_rng(5).shuffle(found)
    return found[500:], found[:500]


@pytest.fixture(scope="module")
def held_back(words):
    return WordDistorter(words[1], ALPHABET, length=LENGTH, batch=2000, seed=2)()


@pytest.mark.timeout(900)  # a minute on an idle machine
def test_learns_within_minutes(words, held_back):
    torch.manual_seed(0)
    surrogate = Surrogate(CharacterNetwork(LENGTH), METRIC, by_offset)
    generator = WordDistorter(words[0], ALPHABET, length=LENGTH, seed=1)
    rounds = list(learn(surrogate, Sources(generator), steps=1600, gradient_weight=0.01, steps_a_round=400))
    quality = measure(surrogate, *held_back, EDIT_DISTANCE_EDGES)
    assert len(quality.by_bin) == 5
    assert not np.isnan(quality.by_bin).any()
    assert quality.mean < LIMIT
    assert rounds[-1].error < rounds[0].error


def test_a_surrogate_that_answers_zero_fails(held_back):
    class Nothing(torch.nn.Module):
        def forward(self, words):
            return words.sum(dim=2) * 0

    quality = measure(Surrogate(Nothing(), METRIC, by_offset), *held_back, EDIT_DISTANCE_EDGES)
    assert quality.mean > LIMIT
    assert quality.by_bin[0] < 1e-5  # and looks perfect where words are read right


def test_distances_of_the_distorter_are_uniform(words):
    generator = WordDistorter(words[0], ALPHABET, length=LENGTH, batch=1800, farthest=8)
    prediction, truth = generator()
    counts = np.bincount(METRIC(prediction, truth).long().numpy(), minlength=9)
    assert len(counts) == 9
    assert counts.min() > 140
    assert counts.max() < 260


def test_distorted_words_are_distributions(words):
    prediction, truth = WordDistorter(words[0], ALPHABET, length=LENGTH, batch=300, softness=0.5)()
    torch.testing.assert_close(prediction.sum(dim=1), torch.ones(300, LENGTH))
    assert (prediction >= 0).all()
    assert ((prediction > 0.01) & (prediction < 0.49)).any()
    assert ((truth == 0) | (truth == 1)).all()
    sharp, _ = WordDistorter(words[0], ALPHABET, length=LENGTH, batch=300, softness=0)()
    assert ((sharp == 0) | (sharp == 1)).all()


def test_a_seed_gives_the_same_pairs(words):
    first, second = (WordDistorter(words[0], ALPHABET, length=LENGTH, seed=7)() for _ in range(2))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


def test_the_metric_is_the_edit_distance_of_the_decoded_words():
    readings, truths = ["kitten", "", "flaw"], ["sitting", "abc", "flaw"]
    found = METRIC(ALPHABET.encode(readings, LENGTH), ALPHABET.encode(truths, LENGTH))
    assert found.tolist() == [Levenshtein.distance(a, b) for a, b in zip(readings, truths, strict=True)]


def test_offsets_from_the_definition():
    prediction, truth = (ALPHABET.encode([word], 6) for word in ("cart", "cat"))
    seen, _ = by_offset(prediction, truth, reach=2)
    padded_word, padded_truth = "cart$$", "cat$$$"
    for offset in range(-2, 3):
        for place in range(6):
            other = place + offset
            expected = 0 <= other < 6 and padded_word[place] == padded_truth[other]
            assert seen[0, offset + 2, place] == expected


def test_offsets_do_not_know_letters():
    one, other = (
        by_offset(ALPHABET.encode([a], 10), ALPHABET.encode([b], 10)) for a, b in (("noon", "moon"), ("deed", "keed"))
    )
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"words": []}, "words holds none"),
        ({"words": ["ÄÖÜ", "x" * 30]}, "words holds none"),
        ({"farthest": 0}, "farthest must be 1 to 25"),
        ({"farthest": 26}, "farthest must be 1 to 25"),
        ({"softness": 0.6}, "softness must be 0 to 0.5"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        WordDistorter(**{"words": ["word"], "alphabet": ALPHABET, "length": LENGTH, **settings})
