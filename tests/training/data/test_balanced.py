from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from training.data.balanced import BalancedBatches
from training.data.labelled import LabelledFile
from training.errors import DataError


def files(sizes):
    """Sizes of classes by source."""
    return [
        LabelledFile(Path(f"{source}-{name}-{number}.jpg"), name, source, "train")
        for source, classes in sizes.items()
        for name, count in classes.items()
        for number in range(count)
    ]


DATA = files({"plants": {f"p{n}": 10 for n in range(20)}, "birds": {f"b{n}": 30 for n in range(3)} | {"rare": 3}})


def test_a_batch_is_balanced_and_of_one_source():
    batches = BalancedBatches(DATA, batch=32, per_class=4)
    random = np.random.default_rng(0)
    sources = Counter()
    for _ in range(60):
        batch = batches.draw(random)
        (source,) = {file.source for file in batch.files}
        sources[source] += 1
        counts = Counter(batch.labels)
        assert len(set(batch.files)) == len(batch.files)
        assert set(counts.values()) == ({4} if source == "plants" else {10})
        for file, label in zip(batch.files, batch.labels, strict=True):
            assert batches.numbers[file.source, file.class_name] == label
    assert sources["plants"] > sources["birds"] > 5  # 200 pictures to 90


def test_small_classes_are_left_out():
    batches = BalancedBatches(DATA, batch=32, per_class=4)
    assert ("birds", "rare") not in batches.classes
    assert batches.pictures == 290


def test_a_seed_gives_the_same_batch():
    batches = BalancedBatches(DATA, batch=32, per_class=4)
    first, second = (batches.draw(np.random.default_rng([7, 3])) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (DATA, {"batch": 7, "per_class": 4}, "two classes of two pictures"),
        (DATA, {"batch": 8, "per_class": 1}, "two classes of two pictures"),
        ([], {"batch": 8, "per_class": 4}, "no pictures"),
        (files({"plants": {"a": 9}}), {"batch": 8, "per_class": 4}, "each source needs two classes.*plants"),
    ],
)
def test_too_little_to_draw_from(data, options, message):
    with pytest.raises(DataError, match=message):
        BalancedBatches(data, **options)
