"""The recogniser's graph: raw pixels in, characters out, its decoder inside."""

import torch
from torch import Tensor, nn

from export.wrapper import FromPixels
from training.models.prediction import Ctc
from training.models.recognizer import Recognizer

ANSWERS = 3  # at each place: the best and two others
LONGEST_RUN = 6  # columns that one letter may last


class Words(nn.Module):
    """uint8 [N, H, W, C] → classes and probabilities [N, places, 3], the best answer first.

    A class is a place in the alphabet, or one more for "no character". Where no character begins, the best is −1.
    """

    def __init__(self, model: Recognizer, temperature: float = 1.0) -> None:
        super().__init__()
        self.logits = FromPixels(model)
        self.temperature = temperature
        self.blank = model.shape.alphabet.end
        self.by_column = isinstance(model.prediction, Ctc)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Read."""
        probabilities = (self.logits(images) / self.temperature).softmax(dim=2)
        best = probabilities.argmax(dim=2)  # [N, places]
        if self.by_column:
            repeats = torch.zeros_like(best, dtype=torch.bool)
            repeats[:, 1:] = best[:, 1:] == best[:, :-1]
            begins = (best != self.blank) & ~repeats
            probabilities = _surest_of_run(probabilities, best)
        else:  # one step a character, up to the first end sign
            begins = ((best == self.blank).long().cumsum(dim=1)) == 0
        values, classes = probabilities.topk(ANSWERS, dim=2)
        first = torch.where(begins, classes[:, :, 0], -1)
        return torch.cat([first.unsqueeze(2), classes[:, :, 1:]], dim=2), values


def _surest_of_run(probabilities: Tensor, best: Tensor) -> Tensor:
    """Each column speaks as the surest of those that go on with its letter does."""
    top = probabilities.amax(dim=2)
    length = best.shape[1]
    places = torch.arange(length, device=best.device).expand_as(best)
    chosen, surest = places, top
    linked = torch.ones_like(best, dtype=torch.bool)
    for ahead in range(1, LONGEST_RUN):
        there = (places + ahead).clamp(max=length - 1)
        linked = linked & (places + ahead < length) & (best.gather(1, there) == best)
        value = top.gather(1, there)
        better = linked & (value > surest)
        chosen, surest = torch.where(better, there, chosen), torch.where(better, value, surest)
    return probabilities.gather(1, chosen.unsqueeze(2).expand_as(probabilities))
