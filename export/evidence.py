"""The classifier as it is served: calibrated probabilities, and where they come from."""

import torch
from torch import Tensor, nn

from training.models.classifier import Classifier


class Probabilities(nn.Module):
    """Normalised images → probabilities [N, K] and evidence [N, h, w, K].

    Evidence is what a place adds to a class's score beyond the mean over classes: a soft-max does not see what is added
    to all of them.
    """

    def __init__(self, model: Classifier, temperature: float) -> None:
        super().__init__()
        self.model, self.temperature = model, temperature

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, divided by the temperature that makes them believable."""
        scores, parts = self.model.explained(images)
        evidence = (parts - parts.mean(dim=3, keepdim=True)) / self.temperature
        return torch.softmax(scores / self.temperature, dim=1), evidence
