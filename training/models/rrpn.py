"""RRPN, the detector of the thesis: Faster R-CNN with rotated anchors (Ma et al. 2018), in plain torch.

    pixels → ResNet, stride 16 → each cell's 54 anchors: text or not, moved and turned → the best of them are proposals
    → rotated RoI align → two layers → text or not, moved and turned once more

Which anchors and proposals count as text is a matter of IoU and, other than in Faster R-CNN, of angle: a long box 15°
off can be refined, one 60° off may overlap as much and cannot. Boxes lie with their longer side along their angle;
where the text begins on that axis RRPN does not learn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import timm
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.errors import DataError
from training.models.detector import Learned, Truth
from training.models.provenance import Provenance
from training.models.rotated_boxes import (
    angle_difference,
    cell_anchors,
    decode,
    encode,
    grid_anchors,
    longer_side_first,
    overlap,
    pointing_right,
    rotated_nms,
    with_degrees,
    with_direction,
)
from training.models.rotated_roi_align import rotated_roi_align

BACKBONES = ("resnet18", "resnet50", "resnet101")  # timm's names; weights come from whoever trains
STRIDE = 16
STRIDE_16 = 3  # which of a ResNet's feature maps that is
BINS = 7  # of a proposal, in each direction
SMALLEST = 4.0  # pixels: thinner words cannot be seen and are not asked for
MOST_TURNED = 15.0 + 1e-3  # degrees between a box and its text; anchors are 30° apart, so exactly 15° must count
COVERED = 0.5  # share of a box in a don't-care region from which on nobody can say what it is
SAME_PROPOSAL, SAME_WORD = 0.7, 0.3  # IoU above which the better of two boxes is enough
UNLIKELY = -2.0  # the logit that scores start from: most boxes are no text
STRETCH = (10.0, 10.0, 5.0, 5.0, 1.0)  # of the second stage's targets: what is left to refine is small


@dataclass(frozen=True)
class RrpnShape:
    """What an RRPN is made of."""

    backbone: str = "resnet50"
    scales: tuple[float, ...] = (8, 16, 32)  # of anchors, in cells
    ratios: tuple[float, ...] = (0.2, 0.5, 1)  # h / w
    angles: tuple[float, ...] = (-30, 0, 30, 60, 90, 120)
    hidden: int = 512  # channels of the first stage
    pooled: int = 256  # channels that proposals are cut from: ResNet-50's 1024 would make a layer of 51 M weights
    units: int = 1024  # of the second stage's two layers
    candidates: int = 6000  # anchors a picture that go into suppression
    proposals: int = 1000  # that come out of it
    sampled_anchors: int = 256  # a picture, half of them text
    sampled_proposals: int = 256  # a picture, a quarter of them text
    score: float = 0.05  # below it nothing is found
    found: int = 100  # at most, a picture

    def __post_init__(self) -> None:
        if self.backbone not in BACKBONES:
            raise DataError(f"backbone is {self.backbone!r}; it must be one of {', '.join(BACKBONES)}")
        for name in ("scales", "ratios"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise DataError(f"{name} is {getattr(self, name)}; it must hold numbers above 0")
        if not self.angles:
            raise DataError("angles is empty; it must hold degrees, 30 apart or less")


@dataclass(frozen=True)
class Rule:
    """What counts as text: IoU from `positive` on; as none: IoU below `negative`. Between them nothing is asked."""

    positive: float
    negative: float
    best_counts: bool  # the best box of a text counts as text at any IoU, so that every text has one


ANCHORS = Rule(positive=0.7, negative=0.3, best_counts=True)
PROPOSALS = Rule(positive=0.5, negative=0.5, best_counts=False)


class Rrpn(nn.Module):
    """[N, 3, H, W] in −1…1 to rotated boxes. BatchNorm keeps the statistics it came with, as batches are small."""

    backbone: Any  # timm's feature list
    cell: Tensor
    stretch: Tensor

    def __init__(self, shape: RrpnShape) -> None:
        super().__init__()
        self.shape = shape
        self.provenance = Provenance()
        self.backbone = timm.create_model(
            shape.backbone, pretrained=False, features_only=True, out_indices=(STRIDE_16,)
        )
        channels: int = self.backbone.feature_info.channels()[0]
        cell = cell_anchors(shape.scales, shape.ratios, shape.angles, STRIDE)
        self.register_buffer("cell", cell, persistent=False)
        self.register_buffer("stretch", torch.tensor(STRETCH), persistent=False)
        self.first = nn.Conv2d(channels, shape.hidden, 3, padding=1)
        self.anchor_scores = nn.Conv2d(shape.hidden, len(cell), 1)
        self.anchor_moves = nn.Conv2d(shape.hidden, len(cell) * 5, 1)
        self.reduce = nn.Conv2d(channels, shape.pooled, 1)
        self.second = nn.Sequential(
            nn.Linear(shape.pooled * BINS * BINS, shape.units),
            nn.ReLU(),
            nn.Linear(shape.units, shape.units),
            nn.ReLU(),
        )
        self.box_scores = nn.Linear(shape.units, 1)
        self.box_moves = nn.Linear(shape.units, 5)
        for layer in (self.anchor_scores, self.anchor_moves, self.box_scores, self.box_moves):
            nn.init.normal_(layer.weight, std=0.01)  # at first boxes stay where anchors are
        for scores in (self.anchor_scores, self.box_scores):
            nn.init.constant_(scores.get_parameter("bias"), UNLIKELY)
        self.train()

    def train(self, mode: bool = True) -> "Rrpn":
        """As always, but BatchNorm stays in evaluation."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def learn(self, images: Tensor, truths: Sequence[Truth]) -> Learned:
        """Losses of a batch, means over what was sampled; each positive proposal counts the same."""
        features = self.backbone(images)[0]
        anchors, scores, moves = self.judge_anchors(features)
        extent = images.new_tensor(images.shape[:1:-1])  # (W, H)
        rest = features.new_zeros(())
        boxes, kinds, texts, given = [], [], [], []
        for truth, own_scores, own_moves in zip(truths, scores, moves, strict=True):
            all_words = truth.boxes.to(features)
            asked = ~truth.ignored.to(features.device) & (all_words[:, 2:4] >= SMALLEST).all(dim=1)
            words = longer_side_first(with_degrees(all_words[asked]))
            ignored = with_degrees(all_words[~asked])
            rest = rest + self.anchor_loss(anchors, own_scores, own_moves, words, ignored) / len(truths)
            # The words are proposals too: the second stage has something to learn from the first step on.
            proposals = torch.cat([self.propose(anchors, own_scores, own_moves, extent), words])
            labels, matched = label(proposals, words, ignored, PROPOSALS)
            positive, negative = draw(labels, self.shape.sampled_proposals, share=0.25)
            boxes.append(proposals[torch.cat([positive, negative])])
            kinds.append(labels[torch.cat([positive, negative])])
            texts.append(words[matched[positive]])
            given.append(all_words[asked][matched[positive]])
        chances, refinements = self.judge_boxes(features, boxes)
        kind, text = torch.cat(kinds), torch.cat(texts)
        start, refinement = torch.cat(boxes)[kind == 1], refinements[kind == 1]
        rest = rest + F.binary_cross_entropy_with_logits(chances, kind.float(), reduction="sum") / max(len(kind), 1)
        wanted = encode(start, text) * self.stretch
        proxy = F.smooth_l1_loss(refinement, wanted, reduction="sum") / max(len(kind), 1)
        prediction = with_direction(decode(start, refinement / self.stretch))
        weights = torch.full_like(start[:, 0], 1 / max(len(start), 1))
        return Learned(rest, proxy, prediction, torch.cat(given), weights)

    @torch.no_grad()
    def find(self, images: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Boxes [K, 6] and scores [K] of each picture, best first; w ≥ h, and directions point right or down."""
        features = self.backbone(images)[0]
        anchors, scores, moves = self.judge_anchors(features)
        extent = images.new_tensor(images.shape[:1:-1])  # (W, H)
        proposals = [self.propose(anchors, *each, extent) for each in zip(scores, moves, strict=True)]
        chances, refinements = self.judge_boxes(features, proposals)
        boxes = longer_side_first(decode(torch.cat(proposals), refinements / self.stretch))
        counts = [len(each) for each in proposals]
        found = []
        for own, chance in zip(boxes.split(counts), torch.sigmoid(chances).split(counts), strict=True):
            sure = chance >= self.shape.score
            own, chance = own[sure], chance[sure]
            kept = rotated_nms(own, chance, SAME_WORD, self.shape.found)
            found.append((with_direction(pointing_right(own[kept])), chance[kept]))
        return found

    def judge_anchors(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors [A, 5]; of each picture their scores as logits [N, A] and how they should move [N, A, 5]."""
        count, _, rows, columns = features.shape
        hidden = F.relu(self.first(features))
        scores = self.anchor_scores(hidden).permute(0, 2, 3, 1).reshape(count, -1)
        moves = self.anchor_moves(hidden).permute(0, 2, 3, 1).reshape(count, -1, 5)
        return grid_anchors(self.cell, rows, columns, STRIDE), scores, moves

    def judge_boxes(self, features: Tensor, boxes: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Logits [R] and stretched refinements [R, 5] of the boxes [R_n, 5] of each picture."""
        cut = rotated_roi_align(F.relu(self.reduce(features)), boxes, STRIDE, BINS)
        hidden = self.second(cut.flatten(1))
        return self.box_scores(hidden)[:, 0], self.box_moves(hidden)

    @torch.no_grad()
    def propose(self, anchors: Tensor, scores: Tensor, moves: Tensor, extent: Tensor) -> Tensor:
        """The best anchors of one picture, moved, without those that are much alike: [proposals, 5].

        What has moved its middle out of the picture, extent (W, H), would be judged by features that are not there.
        """
        best, places = scores.topk(min(self.shape.candidates, len(scores)))
        boxes = decode(anchors[places], moves[places])
        inside = ((boxes[:, :2] >= 0) & (boxes[:, :2] <= extent)).all(dim=1)
        sound = inside & boxes.isfinite().all(dim=1) & (boxes[:, 2:4] >= 1).all(dim=1)
        boxes, best = boxes[sound], best[sound]
        return boxes[rotated_nms(boxes, best, SAME_PROPOSAL, self.shape.proposals)]

    def anchor_loss(self, anchors: Tensor, scores: Tensor, moves: Tensor, words: Tensor, ignored: Tensor) -> Tensor:
        """Classification and regression of one picture's anchors."""
        labels, matched = label(anchors, words, ignored, ANCHORS)
        positive, negative = draw(labels, self.shape.sampled_anchors, share=0.5)
        chosen = torch.cat([positive, negative])
        kinds = F.binary_cross_entropy_with_logits(scores[chosen], labels[chosen].float(), reduction="sum")
        wanted = encode(anchors[positive], words[matched[positive]])
        places = F.smooth_l1_loss(moves[positive], wanted, reduction="sum", beta=1 / 9)
        return (kinds + places) / max(len(chosen), 1)


@torch.no_grad()
def label(boxes: Tensor, words: Tensor, ignored: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """1 text, 0 none, −1 not asked: [N]; and the word that each text belongs to: [N].

    boxes [N, 5], words [M, 5], don't-care regions [I, 5]. A box turned too far for its word is no text.
    """
    labels = torch.zeros(len(boxes), dtype=torch.int64, device=boxes.device)
    matched = torch.zeros_like(labels)
    labels[(overlap(boxes, ignored, rule.negative) >= rule.negative).any(dim=1)] = -1
    labels[(overlap(boxes, ignored, COVERED, of_first=True) >= COVERED).any(dim=1)] = -1
    if not len(words):
        return labels, matched
    iou = overlap(boxes, words, rule.negative)  # [N, M]
    most, matched = iou.max(dim=1)
    straight = angle_difference(boxes[:, 4], words[matched, 4]).abs() <= MOST_TURNED
    labels[(most >= rule.negative) & (most < rule.positive)] = -1
    labels[(most >= rule.positive) & straight] = 1
    if rule.best_counts:
        for number, word in enumerate(words):
            best = best_boxes(boxes, word, iou[:, number], rule.negative)
            labels[best], matched[best] = 1, number
    return labels, matched


def best_boxes(boxes: Tensor, word: Tensor, iou: Tensor, floor: float) -> Tensor:
    """Those of the boxes [N, 5] turned like a word [5] that overlap it most, and all that are as good: their numbers.

    iou [N] is only known from `floor` on; a small word reaches it with none, and is then compared with all.
    """
    straight = torch.nonzero(angle_difference(boxes[:, 4], word[4]).abs() <= MOST_TURNED)[:, 0]
    own = iou[straight]
    if not (own >= floor).any():
        own = overlap(boxes[straight], word[None], 0.0)[:, 0]
    return straight[(own > 0) & (own >= own.amax() - 1e-6)] if len(own) else straight


def draw(labels: Tensor, count: int, share: float) -> tuple[Tensor, Tensor]:
    """A random sample of `count` boxes, at most that share of them texts: numbers of texts, numbers of others."""
    positive, negative = (torch.nonzero(labels == kind)[:, 0] for kind in (1, 0))
    positive = positive[torch.randperm(len(positive), device=labels.device)][: int(count * share)]
    negative = negative[torch.randperm(len(negative), device=labels.device)][: count - len(positive)]
    return positive, negative
