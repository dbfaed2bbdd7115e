"""The thesis' feature extractors for a line of text: [N, C, 32, W] → [N, T, out], one row of features a column."""

from torch import Tensor, nn
from torch.nn import functional as F


class Columns(nn.Module):
    """Convolutions, then the mean over what is left of the height."""

    def __init__(self, convolutions: nn.Module) -> None:
        super().__init__()
        self.convolutions = convolutions

    def forward(self, images: Tensor) -> Tensor:
        """Features of each column."""
        return self.convolutions(images).mean(dim=2).transpose(1, 2)


class VggColumns(Columns):
    """Seven convolutions, as in CRNN; `out` channels at the end, an eighth of it at the start."""

    def __init__(self, channels: int, out: int = 512) -> None:
        first, second, third = out // 8, out // 4, out // 2
        super().__init__(
            nn.Sequential(
                *_plain(channels, first),
                nn.MaxPool2d(2),
                *_plain(first, second),
                nn.MaxPool2d(2),
                *_plain(second, third),
                *_plain(third, third),
                nn.MaxPool2d((2, 1)),
                *_normed(third, out),
                *_normed(out, out),
                nn.MaxPool2d((2, 1)),
                nn.Conv2d(out, out, 2),
                nn.ReLU(),
            )
        )


class ResNetColumns(Columns):
    """29 layers of convolutions with blocks 1, 2, 5, 3; the width is kept where the height is halved late."""

    def __init__(self, channels: int, out: int = 512) -> None:
        first, second, third, fourth = out // 16, out // 8, out // 4, out // 2
        super().__init__(
            nn.Sequential(
                *_normed(channels, first),
                *_normed(first, second),
                nn.MaxPool2d(2),
                *_residuals(second, third, 1),
                *_normed(third, third),
                nn.MaxPool2d(2),
                *_residuals(third, fourth, 2),
                *_normed(fourth, fourth),
                nn.MaxPool2d(2, stride=(2, 1), padding=(0, 1)),
                *_residuals(fourth, out, 5),
                *_normed(out, out),
                *_residuals(out, out, 3),
                *_normed(out, out, 2, stride=(2, 1), padding=(0, 1)),
                *_normed(out, out, 2, padding=0),
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
