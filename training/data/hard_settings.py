"""What users' data are like, made on purpose of good ones: few, unbalanced, mislabelled. The same for the same seed."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from training.data.labelled import LabelledFile
from training.errors import DataError


@dataclass(frozen=True)
class HardSetting:
    """What is done to the training pictures; by itself, nothing."""

    few: int = 0  # at most so many pictures a class; 0: all
    imbalance: float = 1.0  # every second class, drawn at random, keeps this share of its pictures
    noise: float = 0.0  # this share of the pictures swap their labels among themselves

    def __post_init__(self) -> None:
        if self.few < 0:
            raise DataError(f"few must be 0 or more, not {self.few}")
        if not 0 < self.imbalance <= 1:
            raise DataError(f"imbalance must be above 0 and at most 1, not {self.imbalance}")
        if not 0 <= self.noise <= 1:
            raise DataError(f"noise must be between 0 and 1, not {self.noise}")

    def applied_to(self, files: Sequence[LabelledFile], seed: int) -> list[LabelledFile]:
        """Training pictures as this setting leaves them, in their order; a class keeps one picture at least."""
        random = np.random.default_rng([seed, 6])
        left = _some(files, lambda name, count: min(count, self.few) if self.few else count, random)
        if self.imbalance < 1:
            names = sorted({file.class_name for file in left})
            rare = set(random.permutation(names)[: len(names) // 2].tolist())
            left = _some(
                left, lambda name, count: max(1, round(count * self.imbalance)) if name in rare else count, random
            )
        return _mislabelled(left, self.noise, random) if self.noise else left


def _some(
    files: Sequence[LabelledFile], keep: Callable[[str, int], int], random: np.random.Generator
) -> list[LabelledFile]:
    """A random choice of each class's pictures, as many as `keep` says of its name and size."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, file in enumerate(files):
        places[file.class_name].append(place)
    chosen: set[int] = set()
    for name in sorted(places):
        own = places[name]
        chosen |= {own[index] for index in random.permutation(len(own))[: keep(name, len(own))]}
    return [file for place, file in enumerate(files) if place in chosen]


def _mislabelled(files: Sequence[LabelledFile], share: float, random: np.random.Generator) -> list[LabelledFile]:
    """Labels of a random share of the pictures are shuffled among these, so that classes keep their sizes."""
    given = list(files)
    chosen = random.permutation(len(given))[: round(share * len(given))]
    for place, source in zip(chosen, random.permutation(chosen), strict=True):
        given[place] = replace(files[place], class_name=files[source].class_name)
    return given
