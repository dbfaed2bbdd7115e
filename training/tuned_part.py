"""The part of a recogniser that is tuned on edit distance, and what it is tuned on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from training.errors import DataError
from training.models.prediction import Ctc
from training.models.recognizer import Recognizer
from training.models.text_backbone import TextBackbone
from training.surrogates.ctc_paths import align, as_distributions, fill_up
from training.surrogates.pairs import Pair

LENGTH = 40  # columns of CTC that the surrogate sees: a canvas of 320


@dataclass(frozen=True)
class Views:
    """Inputs of the part that is tuned, by their width, with their words."""

    inputs: list[Tensor]  # [N, 384, 1, T] each, half precision
    words: list[list[str]]

    def draw(self, random: np.random.Generator, count: int) -> tuple[Tensor, list[str]]:
        """A batch of one width, which comes up as often as crops have it."""
        shares = np.array([len(part) for part in self.inputs], dtype=float)
        part = random.choice(len(shares), p=shares / shares.sum())
        places = random.integers(len(self.inputs[part]), size=count)
        return self.inputs[part][torch.from_numpy(places)].float(), [self.words[part][place] for place in places]


class Tuned(nn.Module):
    """The part of a recogniser that is tuned, and what it answers as distributions over characters."""

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        if not isinstance(model.features, TextBackbone):
            raise DataError("tuning needs features text")
        self.model = model
        self.neck = model.features.neck
        self.sequence, self.prediction = model.sequence, model.prediction
        self.length = LENGTH if isinstance(model.prediction, Ctc) else model.shape.steps

    def fixed(self, images: Tensor) -> Tensor:
        """From images to what is kept of a view."""
        backbone = self.model.features
        assert isinstance(backbone, TextBackbone)
        return backbone.local(self.model.transformation(images))

    def columns(self, inputs: Tensor) -> Tensor:
        """From a view to columns."""
        return self.sequence(self.neck(inputs))

    def proxy(self, inputs: Tensor, words: Sequence[str]) -> Tensor:
        """The proxy loss."""
        return self.prediction.loss(self.columns(inputs), words)

    def pair(self, inputs: Tensor, words: Sequence[str]) -> Pair:
        """Predictions, with a graph, and truths: [N, symbols + 1, length] each."""
        alphabet = self.model.shape.alphabet
        logits = self.prediction(self.columns(inputs))  # [N, T, classes]
        distributions = logits.softmax(dim=2).transpose(1, 2)
        if isinstance(self.prediction, Ctc):
            path = align(logits.detach().log_softmax(dim=2), words, alphabet)
            truth = as_distributions(path, alphabet.end + 1)
            return fill_up(distributions, self.length), fill_up(truth, self.length)
        return alphabet.close(distributions), alphabet.encode(words, self.length)

    def tuned_parameters(self) -> list[nn.Parameter]:
        """What learns."""
        return [*self.neck.parameters(), *self.sequence.parameters(), *self.prediction.parameters()]
