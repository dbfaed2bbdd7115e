"""The detector that ships: each place of a picture says whether it is the heart of a word, and what box that word has.

    pixels → picture backbone → head → for each cell of 4 × 4 pixels: score, offset from the word's middle in units of
    its width (x, y), log w, log h, (cos 2θ, sin 2θ) and (cos θ, sin θ)

θ and θ + 180° are the same rectangle: (cos 2θ, sin 2θ) gives its axis, which has no jump anywhere, and (cos θ, sin θ)
only says which of the axis' two ends is the end of the text. So a word that may stand on its head still has its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.models.detector import Learned, Truth
from training.models.picture_backbone import FEATURES, STRIDE, PictureBackbone, published_picture_backbone
from training.models.provenance import Provenance
from training.models.word_cells import assign

SIZE_UNIT = 32.0  # pixels: what log w and log h are counted from
NEGATIVES = 3  # cells without a word that count, for each with one: the hardest
LEAST_NEGATIVES = 256  # a picture, even without words
OUTPUTS = 9


@dataclass(frozen=True)
class DetectorShape:
    """What a dense detector is made of."""

    hidden: int = 64  # channels of the head
    heart: float = 0.3  # how much of the height is cut off all around a word, to leave its heart


class DenseDetector(nn.Module):
    """[N, 3, H, W] in −1…1 → [N, 9, H / 4, W / 4]."""

    def __init__(self, shape: DetectorShape) -> None:
        super().__init__()
        self.shape = shape
        self.provenance = Provenance()
        self.backbone = PictureBackbone()
        self.first = nn.Conv2d(FEATURES, shape.hidden, 3, padding=1)
        self.last = nn.Conv2d(shape.hidden, OUTPUTS, 1)
        nn.init.normal_(self.last.weight, std=0.01)
        bias = torch.zeros(OUTPUTS)
        bias[0] = -3.0  # most cells are no word
        self.last.bias = nn.Parameter(bias)

    def forward(self, images: Tensor) -> Tensor:
        """Raw maps of normalised images."""
        return self.head(self.backbone(images))

    def head(self, features: Tensor) -> Tensor:
        """Raw maps of features [N, 96, H / 4, W / 4]."""
        return self.last(F.relu(self.first(features)))

    def learn(self, images: Tensor, truths: Sequence[Truth]) -> Learned:
        """Losses of a batch."""
        return self.judge(self(images), truths)

    def judge(self, maps: Tensor, truths: Sequence[Truth]) -> Learned:
        """Losses of raw maps."""
        size = maps.shape[2:]
        cells = [assign(truth, (size[0], size[1]), STRIDE, self.shape.heart).to(maps.device) for truth in truths]
        rest = score_loss(maps[:, 0], torch.stack([each.kinds for each in cells]))
        rows = torch.cat(
            [maps[number, 1:].permute(1, 2, 0)[each.hearts] for number, each in enumerate(cells)]
        )  # [P, 8]
        places = torch.cat([each.places for each in cells])
        truth = torch.cat([each.boxes for each in cells])
        weights = torch.cat([each.weights for each in cells])
        weights = weights / weights.sum().clamp(min=1)  # each word counts the same, large or small
        proxy = (box_proxy(rows, places, truth) * weights).sum()
        heading = (F.smooth_l1_loss(rows[:, 6:], truth[:, 4:], reduction="none").sum(dim=1) * weights).sum()
        return Learned(rest + heading, proxy, boxes_at(rows, places), truth, weights)


def score_loss(scores: Tensor, kinds: Tensor) -> Tensor:
    """How well hearts of words are told from the rest: cross-entropy over hearts and the hardest others, and Dice.

    scores [N, h, w] are logits; kinds [N, h, w]: 1 a heart, 0 none, −1 not asked for.
    """
    asked, hearts = kinds >= 0, kinds == 1
    each = F.binary_cross_entropy_with_logits(scores, hearts.to(scores), reduction="none")
    others = each.masked_fill(hearts | ~asked, 0.0).flatten()
    count = min(max(NEGATIVES * int(hearts.sum()), LEAST_NEGATIVES * len(kinds)), len(others))
    hardest = others.topk(count).values.sum()
    entropy = (each[hearts].sum() + hardest) / (hearts.sum() + count)
    chance = torch.sigmoid(scores) * asked
    dice = 1 - (2 * (chance * hearts).sum() + 1) / (chance.square().sum() + hearts.sum() + 1)
    return 2 * entropy + dice


def box_proxy(rows: Tensor, places: Tensor, truth: Tensor) -> Tensor:
    """Smooth-L1 of a box's parameters, summed: rows [P, 8], cells' centres [P, 2], boxes [P, 6] → [P].

    Errors of the offset count in the word's own frame, along it in units of its width, across in units of its height.
    """
    width, height, cosine, sine = truth[:, 2:].unbind(1)
    x, y = (rows[:, :2] - (places - truth[:, :2]) / width[:, None]).unbind(1)
    slimness = (width / height).clamp(0.5, 8)
    errors = torch.stack(
        [
            x * cosine + y * sine,
            (y * cosine - x * sine) * slimness,
            rows[:, 2] - torch.log(width / SIZE_UNIT),
            rows[:, 3] - torch.log(height / SIZE_UNIT),
            rows[:, 4] - (cosine**2 - sine**2),
            rows[:, 5] - 2 * cosine * sine,
        ],
        dim=1,
    )
    return F.smooth_l1_loss(errors, torch.zeros_like(errors), reduction="none", beta=0.1).sum(dim=1)


def boxes_at(rows: Tensor, places: Tensor) -> Tensor:
    """Boxes that cells answer: rows [P, 8] of raw maps without the score, cells' centres [P, 2] → [P, 6]."""
    log_sizes, double_cosine, double_sine, cosine, sine = rows[:, 2:4], *rows[:, 4:].unbind(1)
    sizes = SIZE_UNIT * torch.exp(log_sizes.clamp(-4, 4))
    # Half the angle of (cos 2θ, sin 2θ) by cos² θ = (1 + cos 2θ) / 2; then the end that (cos θ, sin θ) points to.
    straight = double_cosine / torch.sqrt(double_cosine**2 + double_sine**2 + 1e-8)
    axis_cosine = torch.sqrt(((1 + straight) / 2).clamp(min=1e-6))
    axis_sine = torch.sqrt(((1 - straight) / 2).clamp(min=1e-6)) * torch.where(double_sine < 0, -1.0, 1.0)
    ahead = torch.where(axis_cosine * cosine + axis_sine * sine < 0, -1.0, 1.0)
    centres = places - rows[:, :2] * sizes[:, :1]
    return torch.cat([centres, sizes, torch.stack([axis_cosine * ahead, axis_sine * ahead], dim=1)], dim=1)


def box_maps(maps: Tensor) -> Tensor:
    """Raw maps [N, 9, h, w] → what is served [N, h, w, 7]: score 0…1 and a box in pixels for each cell."""
    count, _, height, width = maps.shape
    rows = maps[:, 1:].permute(0, 2, 3, 1)
    across = (torch.arange(width, device=maps.device) + 0.5) * STRIDE
    down = (torch.arange(height, device=maps.device) + 0.5) * STRIDE
    places = torch.stack([across[None, :].expand(height, width), down[:, None].expand(height, width)], dim=2)
    boxes = boxes_at(rows.reshape(-1, OUTPUTS - 1), places.expand(count, height, width, 2).reshape(-1, 2))
    return torch.cat([torch.sigmoid(maps[:, 0])[..., None], boxes.view(count, height, width, 6)], dim=3)


def published_detector(shape: DetectorShape) -> DenseDetector:
    """A detector with the published backbone, and a head that begins with the first layer of the published one."""
    model = DenseDetector(shape)
    published = published_picture_backbone()
    model.backbone.load_state_dict(published.backbone.state_dict())
    taken = min(shape.hidden, len(published.bias))
    for own, theirs in zip(model.first.parameters(), (published.weight, published.bias), strict=True):
        own.data[:taken] = theirs[:taken]
    model.provenance = Provenance(("PP-OCRv6 small: the start, rapidocr 3.10.0, Apache-2.0",))
    return model.eval()
