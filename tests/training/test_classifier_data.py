import pytest

from training.classifier_data import classifier_data
from training.data.hard_settings import HardSetting
from training.errors import DataError


@pytest.fixture
def folder(tmp_path, photo):
    """Two kinds with ten pictures each."""

    def make(**counts):
        for kind, count in counts.items():
            (tmp_path / "data" / kind).mkdir(parents=True)
            for number in range(count):
                photo(20, 20, seed=number).save(tmp_path / "data" / kind / f"{number}.png")
        return tmp_path / "data"

    return make


def test_classes_and_their_numbers(folder):
    data = classifier_data([folder(oak=10, ash=5)])
    assert data.classes == ("ash", "oak")
    assert (len(data.train), len(data.val)) == (12, 3)
    assert sorted(data.val_labels.tolist()) == [0, 1, 1]
    assert data.train == data.all_train


def test_a_table_without_val_gives_every_fifth(folder):
    place = folder(oak=10, ash=5)
    files = sorted(file.relative_to(place) for file in place.rglob("*.png"))
    rows = [f"{file}\t{file.parent}\tmine\ttrain" for file in files]
    (place / "labels.tsv").write_text("\n".join(["file\tclass_name\tsource\tset", *rows]) + "\n")
    data = classifier_data([place])
    assert (len(data.train), len(data.val)) == (12, 3)


def test_a_setting_touches_training_pictures_alone(folder):
    data = classifier_data([folder(oak=10, ash=10)], setting=HardSetting(few=2))
    assert (len(data.all_train), len(data.train), len(data.val)) == (16, 4, 4)


def test_one_class(folder):
    with pytest.raises(DataError, match="needs two classes, not 1: put the pictures of each into a folder"):
        classifier_data([folder(oak=10)])


def test_an_empty_class(folder):
    place = folder(oak=10, ash=10)
    (place / "elm").mkdir()
    with pytest.raises(DataError, match="the class elm has no picture"):
        classifier_data([place])


@pytest.mark.parametrize("twin", ["Oak", "OAK", " oak", "o ak"])
def test_names_that_differ_in_case_or_blanks(folder, twin):
    place = folder(oak=6, ash=6, **{twin: 6})
    if twin == "o ak":
        assert len(classifier_data([place]).classes) == 3
        return
    with pytest.raises(DataError, match="differ in case or blanks alone; give them one name"):
        classifier_data([place])


def test_unreadable_files_are_named_or_left_out(folder):
    place = folder(oak=10, ash=10)
    for number in range(7):
        (place / "oak" / f"broken-{number}.jpg").write_bytes(b"not a picture")
    with pytest.raises(DataError, match=r"broken-\d\.jpg.* and 2 more cannot be read .* --skip-unreadable"):
        classifier_data([place])
    data = classifier_data([place], skip_unreadable=True)
    assert not any("broken" in file.path.name for file in [*data.train, *data.val])


def test_a_class_that_cannot_be_read_does_not_vanish(folder):
    place = folder(oak=10, ash=10)
    (place / "elm").mkdir()
    (place / "elm/broken.jpg").write_bytes(b"not a picture")
    with pytest.raises(DataError, match="no picture of the class elm can be read"):
        classifier_data([place], skip_unreadable=True)


def test_names_that_cannot_be_shown(folder):
    with pytest.raises(DataError, match=r"'o\\nak' cannot be the name of a class"):
        classifier_data([folder(**{"o\nak": 6, "ash": 6})])


def test_nothing_to_validate_on(folder):
    with pytest.raises(DataError, match="no picture is left for validation"):
        classifier_data([folder(oak=3, ash=4)])


def test_a_class_with_a_single_picture(folder):
    with pytest.raises(DataError, match="the class ash has one picture to train on"):
        classifier_data([folder(oak=10, ash=1)])


def test_sources(folder):
    place = folder(oak=10, ash=10)
    assert len(classifier_data([place], ["data"]).train) == 16
    with pytest.raises(DataError, match="no picture of the source birds; the data have data"):
        classifier_data([place], ["birds"])
