"""What the stages of a dense detector see in many views: computed once, and kept for every arm of a comparison."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.progress import track
from torch import Tensor

from training.data.pixels import normalised
from training.data.scene_feed import SceneFeed
from training.figures import sha256_of
from training.kept_files import kept_file
from training.models.detector import Truth
from training.models.detectors import load_dense_detector


@dataclass(frozen=True)
class SeenViews:
    """What the stages see, and the words of the views."""

    levels: list[Tensor]  # [N, C, H, W] each, half precision, from the finest to the coarsest
    truths: list[Truth]

    def draw(self, random: torch.Generator, count: int) -> tuple[list[Tensor], list[Truth]]:
        """A batch."""
        chosen = torch.randint(len(self.truths), (count,), generator=random)
        parts = [level[chosen].float().contiguous(memory_format=torch.channels_last) for level in self.levels]
        return parts, [self.truths[number] for number in chosen.tolist()]


def look(weights: str, feed: Callable[[], SceneFeed], batches: int, known: Any) -> SeenViews:
    """The stages' output for the first batches of a feed; kept for the same weights and for what else is `known`."""
    file = kept_file("seen-views.pt", [sha256_of(weights), batches, known])
    if not file.exists():
        model = load_dense_detector(weights).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        source = feed()
        parts, truths = [], []
        with torch.inference_mode():
            for step in track(range(batches), description="looking at views", transient=True):
                batch = source.draw(step)
                images = normalised(torch.from_numpy(batch.pixels)).contiguous(memory_format=torch.channels_last)
                parts.append([level.half() for level in model.backbone.levels(images)])
                truths += batch.truths
        kept = {
            "levels": [torch.cat(own) for own in zip(*parts, strict=True)],
            "boxes": [truth.boxes for truth in truths],
            "ignored": [truth.ignored for truth in truths],
        }
        torch.save(kept, file.with_suffix(".part"))
        file.with_suffix(".part").replace(file)
    stored = torch.load(file, weights_only=True, mmap=True)
    return SeenViews(stored["levels"], [Truth(*pair) for pair in zip(stored["boxes"], stored["ignored"], strict=True)])
