import pytest

from training.errors import DataError
from training.evaluate import EmbedderFigures, evaluate_embedder
from training.models.embedder import imagenet_embedder


@pytest.fixture
def folder(tmp_path, photo):
    """Two kinds of pictures that anyone can tell apart, and one of a set that must not be used."""
    rows = ["file\tclass_name\tsource\tset"]
    for number in range(8):
        name = f"{number}.jpg"
        shade = 1 - 0.02 * number
        photo(90, 70, seed=number % 2).point(lambda value, shade=shade: value * shade).save(tmp_path / name)
        rows.append(f"{name}\tkind {number % 2}\tmade\tval_unseen_class")
    rows.append("never-read.jpg\tkind 0\tmade\ttrain")
    (tmp_path / "labels.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_figures(folder, tmp_path):
    figures = evaluate_embedder(imagenet_embedder(), 64, [folder])
    assert figures.metrics["made/val_unseen_class/r@1"] == 1.0
    assert figures.measured_on == "8 pictures of 2 classes never trained on (made)"
    assert figures.same[50] > figures.different[50]
    file = tmp_path / "run/metrics.json"
    figures.write(file)
    assert EmbedderFigures.read(file) == figures


def test_no_pictures_to_measure(folder):
    table = folder / "labels.tsv"
    table.write_text(table.read_text().replace("val_unseen_class", "train"))
    with pytest.raises(DataError, match="no picture of the set val_unseen_class"):
        evaluate_embedder(imagenet_embedder(), 64, [folder])


def test_one_class_has_no_neighbours_to_tell_apart(folder):
    table = folder / "labels.tsv"
    table.write_text(table.read_text().replace("kind 1", "kind 0"))
    with pytest.raises(DataError, match="made: neighbours need two classes"):
        evaluate_embedder(imagenet_embedder(), 64, [folder])


def test_figures_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match="readleaf evaluate embedder"):
        EmbedderFigures.read(tmp_path / "nothing.json")
