"""The thesis' feature extractors for a line of text: [N, C, 32, W] → [N, T, 512], one row of features a column."""

from torch import Tensor, nn
from torch.nn import functional as F


class Columns(nn.Module):
    """Convolutions, then the mean over what is left of the height."""

    channels = 512

    def __init__(self, convolutions: nn.Module) -> None:
        super().__init__()
        self.convolutions = convolutions

    def forward(self, images: Tensor) -> Tensor:
        """Features of each column."""
        return self.convolutions(images).mean(dim=2).transpose(1, 2)


class VggColumns(Columns):
    """Seven convolutions, as in CRNN."""

    def __init__(self, channels: int) -> None:
        super().__init__(
            nn.Sequential(
                *_plain(channels, 64),
                nn.MaxPool2d(2),
                *_plain(64, 128),
                nn.MaxPool2d(2),
                *_plain(128, 256),
                *_plain(256, 256),
                nn.MaxPool2d((2, 1)),
                *_normed(256, 512),
                *_normed(512, 512),
                nn.MaxPool2d((2, 1)),
                nn.Conv2d(512, 512, 2),
                nn.ReLU(),
            )
        )


class ResNetColumns(Columns):
    """29 layers of convolutions with blocks 1, 2, 5, 3; the width is kept where the height is halved late."""

    def __init__(self, channels: int) -> None:
        super().__init__(
            nn.Sequential(
                *_normed(channels, 32),
                *_normed(32, 64),
                nn.MaxPool2d(2),
                *_residuals(64, 128, 1),
                *_normed(128, 128),
                nn.MaxPool2d(2),
                *_residuals(128, 256, 2),
                *_normed(256, 256),
                nn.MaxPool2d(2, stride=(2, 1), padding=(0, 1)),
                *_residuals(256, 512, 5),
                *_normed(512, 512),
                *_residuals(512, 512, 3),
                *_normed(512, 512, 2, stride=(2, 1), padding=(0, 1)),
                *_normed(512, 512, 2, padding=0),
            )
        )


class Residual(nn.Module):
    """Two convolutions beside a way around them."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.first = nn.Sequential(*_normed(channels, out))
        self.second = nn.Sequential(*_normed(out, out)[:-1])
        self.around = nn.Sequential(*_normed(channels, out, 1, padding=0)[:-1]) if channels != out else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        """[N, channels, H, W] → [N, out, H, W]."""
        return F.relu(self.second(self.first(features)) + self.around(features))


def _plain(channels: int, out: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU()]


def _normed(
    channels: int, out: int, size: int = 3, stride: tuple[int, int] = (1, 1), padding: int | tuple[int, int] = 1
) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, out, size, stride=stride, padding=padding, bias=False)
    return [convolution, nn.BatchNorm2d(out), nn.ReLU()]


def _residuals(channels: int, out: int, count: int) -> list[nn.Module]:
    return [Residual(channels if number == 0 else out, out) for number in range(count)]
