import itertools

import pytest
import torch

from training.alphabet import Alphabet
from training.models.prediction import Attention, Ctc

ALPHABET = Alphabet("abc")


def test_ctc_loss_is_the_probability_of_all_ways_to_write_a_word():
    torch.manual_seed(0)
    head = Ctc(5, ALPHABET)
    columns = torch.randn(1, 4, 5)
    probabilities = head(columns).softmax(dim=2)[0].detach()
    for word in ("a", "ab", "aa"):
        total = 0.0
        for path in itertools.product(range(4), repeat=4):
            runs = [number for number, _ in itertools.groupby(path)]
            if "".join("abc"[number] for number in runs if number != ALPHABET.end) == word:
                total += float(torch.stack([probabilities[place, number] for place, number in enumerate(path)]).prod())
        expected = -torch.tensor(total).log() / len(word)  # torch divides by the length of the word
        torch.testing.assert_close(head.loss(columns, [word]), expected, atol=1e-4, rtol=1e-4)


def test_ctc_reads_runs_once_and_blanks_not_at_all():
    path = [0, 0, 3, 0, 1, 1, 3]
    logits = torch.nn.functional.one_hot(torch.tensor([path]), 4) * 9.0
    [reading] = Ctc(5, ALPHABET).read(logits)
    assert reading.text == "aab"
    assert all(confidence > 0.99 for confidence in reading.confidences)
    assert reading.confidence == pytest.approx(reading.confidences[0] ** 3)


def test_a_blank_line_is_read_as_nothing_and_surely_not():
    logits = torch.zeros(1, 3, 4)
    logits[:, :, ALPHABET.end] = 9
    [reading] = Ctc(5, ALPHABET).read(logits)
    assert (reading.text, reading.confidence, reading.sureness) == ("", 0.0, 0.0)


def test_attention_stops_at_the_end_sign():
    logits = torch.nn.functional.one_hot(torch.tensor([[0, 2, 3, 1]]), 4) * 9.0
    [reading] = Attention(5, ALPHABET, 4).read(logits)
    assert reading.text == "ac"
    assert len(reading.confidences) == 2


def test_attention_is_told_its_own_answers_unless_it_is_told_the_truth():
    torch.manual_seed(0)
    head = Attention(5, ALPHABET, 4)
    columns = torch.randn(2, 6, 5)
    free = head(columns)
    torch.testing.assert_close(head(columns, free.argmax(dim=2)), free)
    assert not torch.allclose(head(columns, (free.argmax(dim=2) + 1) % 4)[:, 1:], free[:, 1:])


def test_attention_loss_counts_the_end_sign_and_nothing_after_it():
    torch.manual_seed(0)
    head = Attention(5, ALPHABET, 5)
    columns = torch.randn(1, 6, 5)
    logits = head(columns, ALPHABET.indices(["ab"], 5))[0, :3]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, ALPHABET.end]))
    torch.testing.assert_close(head.loss(columns, ["ab"]), expected)
