import json
import re
import shutil

import pytest

from serving.errors import ManifestInvalid
from serving.manifest import read_manifest
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture
def copied(tmp_path):
    """`copied(name)`: the folder of a version with the manifest of a shipped model."""

    def copy(name):
        target = tmp_path / name / "1"
        target.mkdir(parents=True)
        shutil.copy(SHIPPED / name / "1/manifest.json", target)
        return target

    return copy


@pytest.fixture
def folder(copied):
    """A copy of the shipped embedder's manifest."""
    return copied("embedder")


@pytest.fixture
def detector(copied):
    """A copy of the shipped detector's manifest."""
    return copied("detector")


def edit(folder, **changes):
    file = folder / "manifest.json"
    content = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({name: value for name, value in content.items() if value is not ...}))


@pytest.mark.parametrize("name", ["embedder", "recognizer", "detector", "classifier"])
def test_round_trip(copied, name):
    folder = copied(name)
    manifest = read_manifest(folder)
    manifest.write(folder)
    assert read_manifest(folder) == manifest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": ...}, "sha256: Field required"),
        ({"colour": "green"}, "colour: Extra inputs"),
        ({"version": 0}, "version: "),
        ({"sha256": "abc"}, "sha256: "),
        ({"dim": 7}, "outputs[0].shape is [-1, 512], but dim is 7"),
        ({"preprocessing": {"width": 10, "height": 10}}, "preprocessing makes [-1, 10, 10, 3]"),
        ({"task": "fly"}, "task: "),
        (
            {"name": "other"},
            "describes version 1 of 'other', but lies in embedder/1; rename the folders to other/1",
        ),
        (
            {"version": 2},
            "describes version 2 of 'embedder', but lies in embedder/1; rename the folders to embedder/2",
        ),
        ({"probe": {"shape": [224, 224], "answers": [0.5]}}, "probe.shape: List should have at least 3 items"),
        ({"probe": {"shape": [224, 224, 3], "answers": []}}, "probe.answers: List should have at least 1 item"),
    ],
)
def test_what_does_not_fit_is_named(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        read_manifest(folder)


def tensor(*shape, name="maps"):
    return {"name": name, "dtype": "float32", "shape": list(shape)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stride": ...}, "stride: Field required"),
        ({"stride": 0}, "stride: Input should be greater than 0"),
        ({"multiple": ...}, "multiple: Field required"),
        ({"multiple": -32}, "multiple: Input should be greater than 0"),
        ({"multiple": 30, "stride": 4}, "multiple is 30, which is no multiple of the stride 4"),
        ({"thresholds": ...}, "thresholds: Field required"),
        ({"thresholds": {"heart": 0.5}}, "thresholds.word: Field required"),
        ({"thresholds": {"heart": 0, "word": 0.5}}, "thresholds.heart: Input should be greater than 0"),
        ({"thresholds": {"heart": 0.5, "word": 1}}, "thresholds.word: Input should be less than 1"),
        ({"thresholds": {"heart": 0.5, "word": 0.5, "line": 0.5}}, "thresholds.line: Extra inputs"),
        (
            {"inputs": [tensor(-1, 640, 640, 3)]},
            "inputs[0].shape is [-1, 640, 640, 3]; a detector takes [-1, -1, -1, 3]",
        ),
        ({"inputs": []}, "inputs: "),
        (
            {"outputs": [tensor(-1, -1, -1, 6)]},
            "outputs[0].shape is [-1, -1, -1, 6]; a detector answers [-1, -1, -1, 7]",
        ),
        ({"outputs": [tensor(-1, 7)]}, "outputs[0].shape is [-1, 7]"),
        ({"task": "recognize"}, "Field required"),
        ({"dim": 512}, "dim: Extra inputs"),
    ],
)
def test_what_does_not_fit_a_detector_is_named(detector, changes, message):
    edit(detector, **changes)
    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        read_manifest(detector)


def test_a_detector_has_one_output(detector):
    edit(detector, outputs=[tensor(-1, -1, -1, 7), tensor(-1, -1, -1, 7, name="more")])
    with pytest.raises(ManifestInvalid, match=r"outputs are maps, more; a detector has one"):
        read_manifest(detector)


def test_a_small_picture_for_a_detector(detector):
    edit(detector, multiple=32, stride=4)
    assert read_manifest(detector).example_shape == (64, 64, 3)


def test_missing_and_broken_files(folder):
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ManifestInvalid, match="the file: Invalid JSON"):
        read_manifest(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ManifestInvalid, match="cannot be read"):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("classifier", {"val/accuracy"}),
        ("detector", {"reading/end to end f1"}),
        ("recognizer", {"all/accuracy"}),
    ],
)
def test_what_versions_are_compared_by(copied, name, figures):
    manifest = read_manifest(copied(name))
    assert manifest.figures == {name: manifest.metrics[name] for name in figures}


def test_embedders_are_compared_by_their_nearest_neighbours(folder):
    """On each of the sets that they were measured on."""
    edit(folder, metrics={"r@1": 0.1, "sop/r@1": 0.2, "val_unseen_class/r@1": 0.3, "r@10": 0.4, "mAP@R": 0.5})
    assert read_manifest(folder).figures == {"r@1": 0.1, "sop/r@1": 0.2, "val_unseen_class/r@1": 0.3}


def test_a_shipped_embedder_has_figures(folder):
    manifest = read_manifest(folder)
    assert manifest.figures
    assert all(name.endswith("r@1") for name in manifest.figures)


def test_files_that_must_be_what_they_were(copied):
    recognizer, embedder = read_manifest(copied("recognizer")), read_manifest(copied("embedder"))
    assert embedder.files == {"model.onnx": embedder.sha256}
    assert recognizer.files == {"model.onnx": recognizer.sha256, "language.npz": recognizer.language}
    assert recognizer.model_copy(update={"language": None}).files == {"model.onnx": recognizer.sha256}
