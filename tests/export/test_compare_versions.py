"""Two versions of a model, measured on the same labelled pictures."""

import re
import shutil

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from typer.testing import CliRunner

import readleaf
from export.compare_versions import compare_versions
from serving.errors import ModelsMissing
from serving.manifest import read_manifest
from serving.settings import Settings
from training.errors import DataError


@pytest.fixture
def settings(models, tmp_path):
    return Settings(models_dir=models, data_dir=tmp_path / "data")


@pytest.fixture
def pictures(tmp_path, kinds):
    """Four kinds, five pictures each, in folders: of each kind one is for validation."""
    for kind in range(4):
        place = tmp_path / f"pictures/val/kind {kind}"
        place.mkdir(parents=True)
        (tmp_path / f"pictures/train/kind {kind}").mkdir(parents=True)
        kinds(kind, 0).save(tmp_path / f"pictures/train/kind {kind}/0.png")
        for number in range(1, 5):
            kinds(kind, number).save(place / f"{number}.png")
    return tmp_path / "pictures"


@pytest.fixture
def words(tmp_path):
    """Words as pictures, one of them mislabelled."""
    folder = tmp_path / "words"
    folder.mkdir()
    rows = ["file\ttext\tsource\tset"]
    for number, word in enumerate(("Bakery", "moss", "OPEN", "Platform", "learned")):
        picture = Image.new("RGB", (260, 60), (240, 240, 240))
        ImageDraw.Draw(picture).text((8, 4), word, (10, 10, 10), ImageFont.load_default(42))
        picture.save(folder / f"{number}.png")
        rows.append(f"{number}.png\t{'wrong' if word == 'moss' else word}\tdrawn\t{'train' if number == 4 else 'val'}")
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    return folder


def test_embedders_that_find_the_same(settings, models, add_version, pictures):
    add_version(models, "embedder")
    found = compare_versions(settings, "embedder", (1, 2), [pictures])
    assert found.pictures == 16  # of the set train none
    assert found.figures[0] == found.figures[1] == {"r@1": 1.0, "precision at R": 1.0}
    assert (found.gain, found.between) == (0, (0, 0))
    assert "no difference in r@1 that 16 pictures could show" in found.verdict
    assert min(found.milliseconds) > 0


def test_a_classifier_that_knows_too_little(settings, models, trees_models, kinds, tmp_path):
    """Version 1 knows ash, elm and oak; version 2 has the names of the first two the wrong way round."""
    shutil.copytree(trees_models / "trees", models / "trees")
    shutil.copytree(models / "trees/1", models / "trees/2")
    manifest = read_manifest(trees_models / "trees/1")
    manifest.model_copy(update={"version": 2, "labels": ["elm", "ash", "oak"]}).write(models / "trees/2")
    for number, name in enumerate(("ash", "elm", "oak")):
        for part in range(20):
            place = tmp_path / f"data/val/{name}"
            place.mkdir(parents=True, exist_ok=True)
            (tmp_path / f"data/train/{name}").mkdir(parents=True, exist_ok=True)
            kinds(number, part % 4).save(place / f"{part}.png")
            kinds(number, 0).save(tmp_path / f"data/train/{name}/0.png")
    found = compare_versions(settings, "trees", (1, 2), [tmp_path / "data"])
    assert found.figures[0]["accuracy"] == 1
    assert found.figures[1]["accuracy"] == pytest.approx(1 / 3)
    assert found.gain == pytest.approx(-2 / 3)
    low, high = found.between
    assert low < -2 / 3 < high < 0
    assert found.verdict == "version 1 is better than version 2 in accuracy"


def test_recognizers(settings, models, add_version, words):
    add_version(models, "recognizer")
    found = compare_versions(settings, "recognizer", (1, 2), [words])
    assert found.pictures == 4
    assert found.figures[0]["accuracy"] == found.figures[1]["accuracy"] == 0.75


def test_detectors_with_the_recognizer_in_use(settings, models, add_version, tmp_path):
    picture = Image.new("RGB", (320, 128), (240, 240, 240))
    font = ImageFont.load_default(48)
    pen = ImageDraw.Draw(picture)
    pen.text((20, 30), "Bakery", (10, 10, 10), font)
    left, top, right, bottom = pen.textbbox((20, 30), "Bakery", font)
    (tmp_path / "scenes").mkdir()
    picture.save(tmp_path / "scenes/a.png")
    corners = "\t".join(str(round(each)) for each in (left, top, right, top, right, bottom, left, bottom))
    (tmp_path / "scenes/labels.tsv").write_text(
        f"file\tx1\ty1\tx2\ty2\tx3\ty3\tx4\ty4\ttext\tset\na.png\t{corners}\tbakery\tval\n"
    )
    add_version(models, "detector")
    found = compare_versions(settings, "detector", (1, 2), [tmp_path / "scenes"])
    assert found.figures[0] == found.figures[1] == {"end to end f1": 1.0, "detection f1": 1.0}


def test_what_cannot_be_compared(settings, models, add_version, pictures, tmp_path, trees_models):
    with pytest.raises(ModelsMissing, match="embedder has no version 2; there is 1"):
        compare_versions(settings, "embedder", (1, 2), [pictures])
    with pytest.raises(DataError, match="no data folder"):
        compare_versions(settings, "embedder", (1, 1), [tmp_path / "nowhere"])
    shutil.rmtree(pictures / "val")
    with pytest.raises(DataError, match="all are of the set train"):
        compare_versions(settings, "embedder", (1, 1), [pictures])


def test_a_few_of_many(settings, models, add_version, pictures):
    """Pictures that are left without another of their kind cannot have it as a neighbour, and are left out."""
    found = compare_versions(settings, "embedder", (1, 1), [pictures], limit=6)
    assert 2 <= found.pictures <= 6
    assert np.isfinite(list(found.figures[0].values())).all()


def test_the_command(models, add_version, pictures, tmp_path):
    add_version(models, "embedder")
    arguments = ["models", "compare", "embedder", "1", "2", "--data", str(pictures), "--folder", str(models)]
    answer = CliRunner().invoke(readleaf.app, arguments, env={"READLEAF_DATA_DIR": str(tmp_path / "data")})
    assert answer.exit_code == 0, answer.output
    assert re.search(r"r@1 +1\.0000 +1\.0000 +\+0\.0000", answer.output)
    assert "16 pictures: no difference" in answer.output
