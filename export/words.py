"""The recogniser's graph: raw pixels in, and at each place the few most probable characters out."""

import torch
from torch import Tensor, nn

from export.wrapper import FromPixels
from training.models.recognizer import Recognizer

ANSWERS = 8  # at each place: the best and seven others


class Words(nn.Module):
    """uint8 [N, H, W, C] → classes and probabilities [N, places, 8], the best answer first.

    Places are columns of the crop (CTC) or steps of the decoder (attention, whose loop is part of the graph). A class
    is a place in the alphabet, or one more for "no character": the blank, or the end.
    """

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.logits = FromPixels(model)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Read."""
        return best_answers(self.logits(images))


def best_answers(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Classes and probabilities of the best answers: [..., classes] → [..., 8] each."""
    values, classes = torch.softmax(logits, dim=-1).topk(min(ANSWERS, logits.shape[-1]), dim=-1)
    return classes, values
