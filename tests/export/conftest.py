"""What tests of the detector's export share: a detector that knows one photograph by heart."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from training.alphabet import PRINTABLE
from training.data.fonts import OWN, Font, plainly_written
from training.data.pixels import normalised
from training.models.dense_detector import DetectorShape, published_detector
from training.models.detector import Quads, Truth
from training.models.detectors import save_detector
from training.models.provenance import Provenance

# Text, left, top, height, and quarter turns clockwise.
WORDS = (("leaf", 10, 10, 28, 0), ("Oak42", 80, 12, 24, 2), ("moss", 150, 40, 20, 1), ("fern", 20, 80, 32, 0))


@dataclass(frozen=True)
class ByHeart:
    """A photograph, its words, and a checkpoint that knows them."""

    folder: Path
    weights: str
    pixels: np.ndarray  # [H, W, 3]
    quads: Quads
    texts: list[str]


@pytest.fixture(scope="session")
def by_heart(tmp_path_factory) -> ByHeart:
    """The head alone is trained, on what the published backbone sees."""
    folder = tmp_path_factory.mktemp("by-heart")
    pixels, quads = _photograph()
    texts = [word[0] for word in WORDS]
    cv2.imwrite(str(folder / "a.png"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    rows = ["file\tx1\ty1\tx2\ty2\tx3\ty3\tx4\ty4\ttext\tset"]
    for set_name in ("train", "val"):
        for text, quad in zip(texts, quads, strict=True):
            numbers = "\t".join(f"{number:g}" for number in quad.flatten())
            rows.append(f"{'a' if set_name == 'val' else 'b'}.png\t{numbers}\t{text}\t{set_name}")
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    (folder / "b.png").symlink_to(folder / "a.png")
    save_detector(_learned(pixels, quads), folder / "run/best.pt")
    return ByHeart(folder, str(folder / "run/best.pt"), pixels, quads, texts)


def _photograph():
    font = Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)
    pixels, quads = np.full((128, 192, 3), 230, dtype=np.uint8), []
    for text, left, top, height, turns in WORDS:
        crop = plainly_written(text, font)
        width = round(crop.shape[1] * height / crop.shape[0])
        crop = np.rot90(cv2.resize(crop, (width, height), interpolation=cv2.INTER_AREA), -turns)
        right, bottom = left + crop.shape[1], top + crop.shape[0]
        pixels[top:bottom, left:right] = crop
        # Turned clockwise, the text's own top left is the picture's top right, then its bottom right.
        quads.append(np.roll([(left, top), (right, top), (right, bottom), (left, bottom)], -turns, axis=0))
    return pixels, np.array(quads, dtype=float)


def _learned(pixels, quads):
    torch.manual_seed(0)
    model = published_detector(DetectorShape())
    model.provenance = Provenance((*model.provenance.data, "icdar15: 1 photograph"), ("smooth-L1", "ls_iou"))
    truth = Truth.of(quads, np.zeros(len(quads), dtype=bool))
    with torch.no_grad():
        features = model.backbone(normalised(torch.from_numpy(pixels)[None]))
    optimizer = torch.optim.Adam([*model.first.parameters(), *model.last.parameters()], 3e-3)
    for _ in range(150):
        learned = model.judge(model.head(features), [truth])
        optimizer.zero_grad()
        (learned.rest + learned.proxy).backward()
        optimizer.step()
    return model
