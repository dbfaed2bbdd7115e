from collections import Counter
from pathlib import Path

import pytest

from training.data.hard_settings import HardSetting
from training.data.labelled import LabelledFile
from training.errors import DataError

FILES = [
    LabelledFile(Path(f"{kind}-{number}.jpg"), f"kind {kind}", "made", "train")
    for kind in range(10)
    for number in range(40)
]


def sizes(files):
    return Counter(file.class_name for file in files)


def test_nothing_is_done_unless_asked_for():
    assert HardSetting().applied_to(FILES, seed=3) == FILES


@pytest.mark.parametrize("few", [1, 4, 40, 99])
def test_few(few):
    left = HardSetting(few=few).applied_to(FILES, seed=0)
    assert set(sizes(left).values()) == {min(few, 40)}
    assert len(sizes(left)) == 10
    assert set(left) <= set(FILES)


@pytest.mark.parametrize(("share", "rare"), [(0.5, 20), (0.1, 4), (0.01, 1)])
def test_half_of_the_classes_are_rare(share, rare):
    left = HardSetting(imbalance=share).applied_to(FILES, seed=0)
    assert sorted(sizes(left).values()) == [rare] * 5 + [40] * 5


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_shuffled_labels_keep_the_sizes_of_classes(share):
    given = HardSetting(noise=share).applied_to(FILES, seed=0)
    assert [file.path for file in given] == [file.path for file in FILES]
    assert sizes(given) == sizes(FILES)
    changed = sum(one.class_name != other.class_name for one, other in zip(given, FILES, strict=True))
    assert 0.75 * share * 400 < changed <= share * 400  # one in ten is shuffled into its own place


def test_a_seed_is_a_choice():
    setting = HardSetting(few=8, imbalance=0.5, noise=0.3)
    assert setting.applied_to(FILES, seed=1) == setting.applied_to(FILES, seed=1)
    assert setting.applied_to(FILES, seed=1) != setting.applied_to(FILES, seed=2)


@pytest.mark.parametrize(
    "wrong", [{"few": -1}, {"imbalance": 0.0}, {"imbalance": 1.5}, {"noise": -0.1}, {"noise": 2.0}]
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(DataError, match=f"{next(iter(wrong))} must be"):
        HardSetting(**wrong)
