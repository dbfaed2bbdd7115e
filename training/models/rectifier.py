"""TPS: straightens curved or tilted text with a thin-plate spline whose twenty points the network places itself."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

POINTS = 20  # half of them along the upper edge of the text, half along the lower
Floats = NDArray[np.float64]


class Rectifier(nn.Module):
    """[N, C, H, W] → the same size, with the points that the network finds moved to the edges of the picture."""

    mixture: Tensor  # [H · W, 20]: how much each point has a say in where a pixel comes from

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        self.size = height, width
        self.points = PointFinder(channels)
        spline, pixels = spline_matrices(height, width)
        # The last three columns belong to conditions that are 0: bending must not move or tilt the whole.
        mixture = (pixels @ spline)[:, :POINTS]
        self.register_buffer("mixture", torch.from_numpy(mixture).float(), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """The rectified images."""
        places = self.places(self.points(images)).view(images.shape[0], *self.size, 2)
        return F.grid_sample(images, places, padding_mode="border", align_corners=False)

    def places(self, points: Tensor) -> Tensor:
        """Where each pixel of the result comes from, for points [N, 20, 2]: [N, H · W, 2], −1…1, x first."""
        return self.mixture @ points


class PointFinder(nn.Module):
    """A small network that looks at the whole picture and places the points: [N, C, H, W] → [N, 20, 2]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for after in (64, 128, 256, 512):
            layers += [nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            layers.append(nn.AdaptiveAvgPool2d(1) if after == 512 else nn.MaxPool2d(2))
            channels = after
        self.features = nn.Sequential(*layers)
        self.hidden = nn.Sequential(nn.Linear(512, 256), nn.ReLU())
        self.points = nn.Linear(256, 2 * POINTS)
        nn.init.zeros_(self.points.weight)
        self.points.bias.data = torch.from_numpy(first_points()).float().flatten()

    def forward(self, images: Tensor) -> Tensor:
        """Points in −1…1, x first, the upper ten before the lower ten."""
        return self.points(self.hidden(self.features(images).flatten(1))).view(-1, POINTS, 2)


class GentleRectifier(Rectifier):
    """A rectifier that at first changes nothing: for a network that can read already."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__(channels, height, width)
        self.points.points.bias.data = torch.from_numpy(edge_points()).float().flatten()


def edge_points() -> Floats:
    """Where the points are moved to: ten along the upper edge, ten along the lower."""
    along = np.linspace(-1, 1, POINTS // 2)
    return np.concatenate([np.stack([along, np.full_like(along, y)], axis=1) for y in (-1.0, 1.0)])


def first_points() -> Floats:
    """Where a new network places the points: the upper ones rise to the right, the lower ones, too."""
    along = np.linspace(-1, 1, POINTS // 2)
    fall = np.linspace(0, -1, POINTS // 2)
    return np.concatenate([np.stack([along, fall], axis=1), np.stack([along, 1 + fall], axis=1)])


def spline_matrices(height: int, width: int) -> tuple[Floats, Floats]:
    """The spline's coefficients from the points' places [23, 23], and its terms for every pixel [H · W, 23]."""
    edges = edge_points()
    ones = np.ones((POINTS, 1))
    upper = np.concatenate([ones, edges, _bending(edges, edges)], axis=1)
    lower = np.concatenate([np.zeros((3, 3)), np.concatenate([edges, ones], axis=1).T], axis=1)
    spline = np.linalg.inv(np.concatenate([upper, lower]))
    columns, rows = ((np.arange(-size, size, 2) + 1.0) / size for size in (width, height))
    pixels = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    return spline, np.concatenate([np.ones((len(pixels), 1)), pixels, _bending(pixels, edges)], axis=1)


def _bending(places: Floats, points: Floats) -> Floats:
    """r² log r of every place and point, 0 where they meet."""
    distance = np.linalg.norm(places[:, None] - points[None], axis=2)
    return distance**2 * np.log(np.where(distance > 0, distance, 1.0))
