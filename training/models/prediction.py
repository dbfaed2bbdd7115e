"""Prediction stage: columns of features become characters, with attention or with CTC.

Both speak of classes as `Alphabet` numbers them: its symbols, then the end sign. What CTC calls the blank has the end
sign's number, so that the same distribution means "no character here" in both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.alphabet import Alphabet

HIDDEN = 256


@dataclass(frozen=True)
class Reading:
    """A word, and how sure each of its characters is."""

    text: str
    confidences: tuple[float, ...]

    @property
    def confidence(self) -> float:
        """The probability of the whole word, its characters taken one by one; of no word, 0."""
        return math.prod(self.confidences) if self.confidences else 0.0

    @property
    def sureness(self) -> float:
        """The mean of its characters' confidences, which long words do not lower; of no word, 0."""
        return sum(self.confidences) / len(self.confidences) if self.confidences else 0.0


class Attention(nn.Module):
    """One character a step, each looking where it wants: [N, T, channels] → logits [N, steps, symbols + 1]."""

    def __init__(self, channels: int, alphabet: Alphabet, steps: int) -> None:
        super().__init__()
        self.alphabet, self.steps = alphabet, steps
        self.start = alphabet.end + 1  # what the first step is told in place of a character; never an answer
        classes = alphabet.end + 2
        self.keys = nn.Linear(channels, HIDDEN, bias=False)
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.score = nn.Linear(HIDDEN, 1, bias=False)
        self.cell = nn.LSTMCell(channels + classes, HIDDEN)
        self.generator = nn.Linear(HIDDEN, classes)

    def forward(self, columns: Tensor, told: Tensor | None = None) -> Tensor:
        """Logits; each step is told the character before, from `told` [N, steps] or from its own answer."""
        keys = self.keys(columns)
        hidden = memory = columns.new_zeros(columns.shape[0], HIDDEN)
        before = torch.full((columns.shape[0],), self.start, device=columns.device)
        logits = []
        for step in range(self.steps):
            weights = self.score(torch.tanh(keys + self.query(hidden).unsqueeze(1))).softmax(dim=1)  # [N, T, 1]
            seen = (weights * columns).sum(dim=1)
            told_as = F.one_hot(before, self.alphabet.end + 2).to(columns.dtype)
            hidden, memory = self.cell(torch.cat([seen, told_as], dim=1), (hidden, memory))
            logits.append(self.generator(hidden)[:, : self.start])
            before = logits[-1].argmax(dim=1) if told is None else told[:, step]
        return torch.stack(logits, dim=1)

    def loss(self, columns: Tensor, words: Sequence[str]) -> Tensor:
        """Cross-entropy of every character up to the end sign."""
        truth = self.alphabet.indices(words, self.steps).to(columns.device)
        logits = self(columns, truth)
        lengths = torch.tensor([len(word) for word in words], device=columns.device)
        counted = torch.arange(self.steps, device=columns.device) <= lengths[:, None]
        return F.cross_entropy(logits[counted], truth[counted])

    def read(self, logits: Tensor) -> list[Reading]:
        """The most probable character of each step, up to the end sign."""
        best, classes = logits.softmax(dim=2).max(dim=2)
        readings = []
        for row, sure in zip(classes.tolist(), best.tolist(), strict=True):
            length = row.index(self.alphabet.end) if self.alphabet.end in row else len(row)
            text = "".join(self.alphabet.symbols[number] for number in row[:length])
            readings.append(Reading(text, tuple(sure[:length])))
        return readings


class Ctc(nn.Module):
    """One answer a column, most of them "no character": [N, T, channels] → logits [N, T, symbols + 1]."""

    def __init__(self, channels: int, alphabet: Alphabet) -> None:
        super().__init__()
        self.alphabet = alphabet
        self.generator = nn.Linear(channels, alphabet.end + 1)

    def forward(self, columns: Tensor) -> Tensor:
        """Logits of each column."""
        return self.generator(columns)

    def loss(self, columns: Tensor, words: Sequence[str]) -> Tensor:
        """CTC over all ways to write the word into the columns; a word that does not fit counts 0."""
        logits = self(columns)
        targets = torch.cat([self.alphabet.indices([word], len(word) + 1)[0, :-1] for word in words])
        lengths = torch.tensor([len(word) for word in words])
        widths = torch.full((len(words),), logits.shape[1])
        scores = logits.log_softmax(dim=2).transpose(0, 1)
        return F.ctc_loss(scores, targets, widths, lengths, blank=self.alphabet.end, zero_infinity=True)

    def read(self, logits: Tensor) -> list[Reading]:
        """The most probable answer of each column; equal neighbours are one character, blanks none."""
        best, classes = logits.softmax(dim=2).max(dim=2)
        readings = []
        for row, sure in zip(classes.tolist(), best.tolist(), strict=True):
            runs: list[list[float]] = []  # [class, confidence]
            for number, confidence in zip(row, sure, strict=True):
                if runs and runs[-1][0] == number:
                    runs[-1][1] = max(runs[-1][1], confidence)
                else:
                    runs.append([number, confidence])
            kept = [run for run in runs if run[0] != self.alphabet.end]
            text = "".join(self.alphabet.symbols[int(number)] for number, _ in kept)
            readings.append(Reading(text, tuple(confidence for _, confidence in kept)))
        return readings


Prediction = Attention | Ctc
