"""Paths of CTC: the alignment against all paths, and a surrogate that learns their edit distance."""

import itertools

import pytest
import torch

from training.alphabet import Alphabet
from training.surrogates.ctc_paths import (
    CHANNELS,
    PathDistance,
    PathDistorter,
    align,
    as_distributions,
    by_column,
    collapse,
    fill_up,
)
from training.surrogates.edit_distance import CharacterNetwork
from training.surrogates.learning import Surrogate, learn
from training.surrogates.pairs import RecentPairs, Sources
from training.surrogates.quality import measure

SMALL = Alphabet("abc")
WORDS = ["leaf", "read", "letter", "oak", "moss", "book", "willow", "fern"]


@pytest.mark.parametrize("word", ["", "a", "ab", "aa", "abca"])
def test_no_path_is_more_probable_than_the_alignment(word):
    torch.manual_seed(len(word))
    scores = torch.randn(2, 6, 4).log_softmax(dim=2)
    found = align(scores, [word, word], SMALL)
    assert collapse(as_distributions(found, 4), SMALL) == [word, word]
    for row in range(2):
        best = max(
            sum(float(scores[row, place, number]) for place, number in enumerate(path))
            for path in itertools.product(range(4), repeat=6)
            if collapse(as_distributions(torch.tensor([path]), 4), SMALL) == [word]
        )
        own = sum(float(scores[row, place, number]) for place, number in enumerate(found[row]))
        assert own == pytest.approx(best, abs=1e-5)


def test_a_word_too_long_is_cut_short():
    scores = torch.zeros(2, 4, 4).log_softmax(dim=2)
    found = align(scores, ["abcabc", "aabb"], SMALL)
    assert collapse(as_distributions(found, 4), SMALL) == ["abca", "aab"]


def test_words_of_different_lengths_in_one_batch():
    torch.manual_seed(0)
    scores = torch.randn(3, 8, 4).log_softmax(dim=2)
    together = align(scores, ["a", "abc", ""], SMALL)
    for row, word in enumerate(["a", "abc", ""]):
        assert torch.equal(align(scores[row : row + 1], [word], SMALL)[0], together[row])


def test_where_prediction_and_truth_agree_they_look_the_same():
    path = as_distributions(torch.tensor([[0, 0, 3, 1, 3, 2]]), 4)
    seen, own = by_column(path, path)
    assert seen.shape == (1, CHANNELS, 6)
    torch.testing.assert_close(seen, own)
    wrong = as_distributions(torch.tensor([[0, 0, 3, 2, 3, 2]]), 4)
    changed = (by_column(wrong, path)[0] != own).any(dim=1)[0]
    assert changed.tolist() == [False, False, False, True, False, False]


def test_blanks_fill_up():
    path = as_distributions(torch.tensor([[0, 3, 1]]), 4)
    filled = fill_up(path, 5)
    assert filled.argmax(dim=1).tolist() == [[0, 3, 1, 3, 3]]
    assert collapse(filled, SMALL) == ["ab"]


def test_distorted_paths_spread_over_distances():
    alphabet = Alphabet()
    prediction, truth = PathDistorter(WORDS, alphabet, length=40, batch=400, seed=1)()
    assert set(collapse(truth, alphabet)) == set(WORDS)
    torch.testing.assert_close(prediction.sum(dim=1), torch.ones(400, 40))
    counts = torch.bincount(PathDistance(alphabet)(prediction, truth).long(), minlength=5)
    assert (counts[:5] > 20).all(), counts
    again, _ = PathDistorter(WORDS, alphabet, length=40, batch=400, seed=1)()
    assert torch.equal(prediction, again)


def test_a_surrogate_learns_the_distance_of_paths():
    torch.manual_seed(0)
    alphabet = Alphabet()
    surrogate = Surrogate(CharacterNetwork(40, CHANNELS), PathDistance(alphabet), by_column)
    held_back = PathDistorter(["garden", "market", "sunset"], alphabet, length=40, batch=500, seed=9)()
    generator = PathDistorter(WORDS, alphabet, length=40, seed=1)
    before = measure(surrogate, *held_back, (1, 2, 3)).mean
    list(learn(surrogate, Sources(generator), steps=400, gradient_weight=0.01, steps_a_round=100))
    after = measure(surrogate, *held_back, (1, 2, 3))
    assert after.mean < 0.5 < before
    assert max(after.by_bin) < 0.8, after.by_bin


def test_a_missed_letter_gets_a_gradient():
    """The truth says b in a column where the prediction is blank: the surrogate must feel that column."""
    torch.manual_seed(0)
    alphabet = Alphabet()
    surrogate = Surrogate(CharacterNetwork(40, CHANNELS), PathDistance(alphabet), by_column)
    list(learn(surrogate, Sources(PathDistorter(WORDS, alphabet, length=40)), steps=200, steps_a_round=100))
    logits = torch.full((1, 10, 37), 0.0)
    for place, letter in ((1, "o"), (6, "k")):
        logits[0, place, alphabet.symbols.index(letter)] = 8
    logits[0, [0, 2, 3, 4, 5, 7, 8, 9], alphabet.end] = 8
    logits[0, 4, alphabet.symbols.index("a")] = 6  # nearly seen
    logits.requires_grad_(True)
    truth = as_distributions(align(logits.detach().log_softmax(dim=2), ["oak"], alphabet), 37)
    prediction = fill_up(logits.softmax(dim=2).transpose(1, 2), 40)
    surrogate(prediction, fill_up(truth, 40)).sum().backward()
    assert logits.grad[0, 4, alphabet.symbols.index("a")] < 0


def test_recent_pairs_are_even_over_mistakes_and_forget_the_oldest():
    alphabet = Alphabet("abc")
    recent = RecentPairs(100, PathDistance(alphabet), batch=400)
    right = as_distributions(torch.tensor([[0, 3, 1, 3]] * 90), 4)
    wrong = as_distributions(torch.tensor([[2, 3, 1, 3]] * 10), 4)
    recent.add(right, right)
    recent.add(wrong, right[:10])
    prediction, truth = recent()
    share = float((PathDistance(alphabet)(prediction, truth) == 1).float().mean())
    assert 0.4 < share < 0.6
    recent.add(right, right)
    assert len(recent) == 100
    assert (recent.exact == 1).sum() == 10
