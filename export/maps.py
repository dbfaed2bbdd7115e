"""The detector's graph: raw pixels in; for each cell a score and a box out."""

from torch import Tensor, nn

from export.wrapper import FromPixels
from training.models.dense_detector import DenseDetector, box_maps


class Maps(nn.Module):
    """uint8 [N, H, W, 3] → [N, H / 4, W / 4, 7]."""

    def __init__(self, model: DenseDetector) -> None:
        super().__init__()
        self.raw = FromPixels(model)

    def forward(self, images: Tensor) -> Tensor:
        """Look."""
        return box_maps(self.raw(images))
