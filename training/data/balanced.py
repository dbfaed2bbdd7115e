"""Batches with several pictures of each class, all of one source."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.data.labelled import LabelledFile
from training.errors import DataError


@dataclass(frozen=True)
class Batch:
    """Which files to look at, and their classes as numbers."""

    files: list[LabelledFile]
    labels: list[int]


class BalancedBatches:
    """Random batches of `batch` pictures: `per_class` of as many classes as that takes, or more of each if too few.

    A batch comes from one source (its collection): flowers and groceries are told apart without learning. Sources
    are drawn by their number of pictures. Classes with fewer than `per_class` pictures are left out.
    """

    def __init__(self, files: Sequence[LabelledFile], *, batch: int, per_class: int) -> None:
        if per_class < 2 or batch < 2 * per_class:
            raise DataError(f"a batch needs two classes of two pictures: batch {batch}, per_class {per_class}")
        classes: dict[tuple[str, str], list[LabelledFile]] = defaultdict(list)
        for file in files:
            classes[file.source, file.class_name].append(file)
        self.classes = {name: members for name, members in sorted(classes.items()) if len(members) >= per_class}
        self.sources: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for name in self.classes:
            self.sources[name[0]].append(name)
        lonely = [source for source, names in self.sources.items() if len(names) < 2]
        if lonely or not self.sources:
            raise DataError(
                f"each source needs two classes of {per_class} pictures: {', '.join(lonely) or 'no pictures'}"
            )
        self.numbers = {name: number for number, name in enumerate(self.classes)}
        self.batch, self.per_class = batch, per_class
        self.pictures = sum(map(len, self.classes.values()))
        sizes = [sum(len(self.classes[name]) for name in names) for names in self.sources.values()]
        self.weights = np.array(sizes) / sum(sizes)

    def draw(self, random: np.random.Generator) -> Batch:
        """The next batch."""
        source = list(self.sources)[random.choice(len(self.weights), p=self.weights)]
        names = self.sources[source]
        count = min(self.batch // self.per_class, len(names))
        each = self.batch // count
        chosen: list[LabelledFile] = []
        labels: list[int] = []
        for index in random.choice(len(names), size=count, replace=False):
            members = self.classes[names[index]]
            for place in random.choice(len(members), size=min(each, len(members)), replace=False):
                chosen.append(members[place])
                labels.append(self.numbers[names[index]])
        return Batch(chosen, labels)
