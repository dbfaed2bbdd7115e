import pytest

from training.errors import DataError
from training.evaluate_embedder import EmbedderFigures, evaluate_embedder
from training.models.embedder import load_embedder


@pytest.fixture
def folder(tmp_path, photo):
    """Two kinds of pictures that anyone can tell apart."""
    rows = ["file\tclass_name\tsource\tset"]
    for number in range(8):
        name = f"{number}.jpg"
        shade = 1 - 0.02 * number
        photo(90, 70, seed=number % 2).point(lambda value, shade=shade: value * shade).save(tmp_path / name)
        rows.append(f"{name}\tkind {number % 2}\tmade\tval_unseen_class")
    for number in range(2):
        rows.append(f"{number}.jpg\tkind {number}\tmade\ttrain")
        rows.append(f"{number + 2}.jpg\tkind {number}\tmade\tval")
    (tmp_path / "labels.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_figures(folder, tmp_path):
    figures = evaluate_embedder(load_embedder("imagenet"), 64, [folder])
    assert figures.metrics["made/val_unseen_class/r@1"] == 1.0
    assert figures.metrics["made/val_unseen_class/mAP@R"] == 1.0
    assert figures.metrics["made/val/1-nn"] == 1.0
    assert figures.metrics["made/val_unseen_class/strangers refused"] == 1.0
    assert figures.different[100] < figures.reject_below < 1
    assert figures.measured_on == "8 pictures of 2 classes never trained on (made)"
    assert figures.same[50] > figures.different[50]
    file = tmp_path / "run/metrics.json"
    figures.write(file)
    assert EmbedderFigures.read(file) == figures


def test_without_unseen_classes_known_ones_are_measured(folder):
    table = folder / "labels.tsv"
    table.write_text(table.read_text().replace("val_unseen_class", "train"))
    figures = evaluate_embedder(load_embedder("imagenet"), 64, [folder])
    assert figures.metrics == {"made/val/1-nn": 1.0}
    assert figures.measured_on == "12 pictures of 2 classes (made)"
    assert figures.reject_below is None


def test_no_pictures_to_measure(folder):
    table = folder / "labels.tsv"
    table.write_text(table.read_text().replace("val", "train"))
    with pytest.raises(DataError, match="no picture of the set val_unseen_class or val"):
        evaluate_embedder(load_embedder("imagenet"), 64, [folder])


def test_nothing_to_compare_known_classes_with(folder):
    table = folder / "labels.tsv"
    table.write_text(table.read_text().replace("\ttrain", "\tother"))
    with pytest.raises(DataError, match="none of train to compare them with"):
        evaluate_embedder(load_embedder("imagenet"), 64, [folder])


def test_one_class_has_no_neighbours_to_tell_apart(folder):
    table = folder / "labels.tsv"
    table.write_text(table.read_text().replace("kind 1", "kind 0"))
    with pytest.raises(DataError, match="all pictures are of one class"):
        evaluate_embedder(load_embedder("imagenet"), 64, [folder])


def test_figures_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match="`readleaf evaluate` writes them"):
        EmbedderFigures.read(tmp_path / "nothing.json")
