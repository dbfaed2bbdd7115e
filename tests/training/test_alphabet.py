import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.alphabet import ALPHANUMERIC, Alphabet

ALPHABET = Alphabet()


@given(st.lists(st.text(ALPHANUMERIC, max_size=9), min_size=1, max_size=5))
def test_words_come_back(words):
    encoded = ALPHABET.encode(words, 10)
    assert encoded.shape == (len(words), 37, 10)
    assert (encoded.sum(dim=1) == 1).all()
    assert ALPHABET.decode(encoded) == words


def test_the_end_sign_fills_the_rest():
    assert ALPHABET.indices(["ab"], 5).tolist() == [[10, 11, 36, 36, 36]]


def test_what_comes_after_the_end_is_not_read():
    classes = torch.tensor([[10, 36, 11, 12, 36]])
    prediction = torch.nn.functional.one_hot(classes, 37).float().transpose(1, 2) * 0.6 + 0.4 / 37
    assert ALPHABET.decode(prediction) == ["a"]
    closed = ALPHABET.close(prediction)
    assert torch.equal(closed[:, :, :2], prediction[:, :, :2])  # the first end sign may still be doubted
    assert torch.equal(closed[:, :, 2:], ALPHABET.encode([""], 3))


@pytest.mark.parametrize(
    ("word", "message"), [("toolong", "'toolong' has 7 characters; length 5 leaves room for 4"), ("aä", "holds 'ä'")]
)
def test_words_that_do_not_fit(word, message):
    with pytest.raises(ValueError, match=message):
        ALPHABET.indices([word], 5)


@pytest.mark.parametrize("symbols", ["", "aa"])
def test_bad_symbols(symbols):
    with pytest.raises(ValueError, match="symbols must be different"):
        Alphabet(symbols)
